"""Which cells are bold and which red: the paper's rule, made exact where the paper leaves it open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Literal

from reports.summary.summarise import CellSummary

Bold = Literal["paper", "significant"]
"""Which cells are bold: those with a better mean, or those whose better mean survives Holm's correction."""


class Mark(Enum):
    """How a test metric is set: plain, bold (better than its baseline), or red and bold (best of its dataset)."""

    PLAIN = "plain"
    BETTER = "better"
    BEST = "best"


BETTER_RULE = "a better mean test metric than the vanilla model that it faces (same backbone, layers and budget)"
SIGNIFICANT_RULE = (
    "a better mean test metric than the vanilla model that it faces (same backbone, layers and budget), by a two-sided "
    "test (paired over folds, Welch's over seeds) below 0.05 after Holm's correction over all comparisons printed "
    "together"
)
BEST_RULE = (
    "the best mean test metric of its dataset (of two or more models, over all layers and budgets), marked only where "
    "it belongs to a bilateral gate (a uniform gate can be bold, never red; equal bests are all marked, or none if one "
    "is not bilateral)"
)
SIGNIFICANT_BEST_RULE = f"{BEST_RULE}, and only where it is bold"
RULES: Mapping[Bold, tuple[str, str]] = {
    "paper": (BETTER_RULE, BEST_RULE),
    "significant": (SIGNIFICANT_RULE, SIGNIFICANT_BEST_RULE),
}
"""What is bold and what is red, in words."""
FAIRNESS_RULE = (
    "Means are compared unrounded; a model with missing runs, or of a single run, is neither marked nor compared"
)


def better(left: CellSummary, right: CellSummary) -> bool:
    """Whether ``left``'s mean test metric is strictly better than ``right``'s, both being complete."""
    if not (left.test and right.test and _may_be_marked(left) and _may_be_marked(right)):
        return False
    if left.cell.direction == "min":
        return left.test.mean < right.test.mean
    return left.test.mean > right.test.mean


def best_cells(summaries: Sequence[CellSummary]) -> frozenset[str]:
    """Ids of the cells of one dataset that are red: the best, if all of the best have a bilateral gate."""
    complete = [summary for summary in summaries if _may_be_marked(summary)]
    best = [summary for summary in complete if not any(better(other, summary) for other in complete)]
    if len(complete) > 1 and all(_is_gated(summary) and summary.chosen.gate == "bilateral" for summary in best):
        return frozenset(summary.cell.id for summary in best)
    return frozenset()


def mark(summary: CellSummary, vanilla: CellSummary | None, best: frozenset[str]) -> Mark:
    """The mark of a cell that faces ``vanilla`` (None: nothing to compare with)."""
    if summary.cell.id in best:
        return Mark.BEST
    if vanilla is not None and _is_gated(summary) and better(summary, vanilla):
        return Mark.BETTER
    return Mark.PLAIN


def _may_be_marked(summary: CellSummary) -> bool:
    return summary.complete and summary.finished > 1


def _is_gated(summary: CellSummary) -> bool:
    return summary.chosen.placement not in (None, "none")
