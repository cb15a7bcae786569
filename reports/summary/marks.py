"""Which cells are bold and which red: the paper's rule, made exact where the paper leaves it open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Literal

from reports.summary.summarise import CellSummary, difference_of_means

Bold = Literal["paper", "significant"]
"""Which cells are bold: those with a better mean, or those whose better mean survives Holm's correction."""


class Mark(Enum):
    """How a test metric is set: plain, bold (better than its baseline), or red and bold (best of its dataset)."""

    PLAIN = "plain"
    BETTER = "better"
    BEST = "best"


Size = Literal["budget", "width", "either", "neither"]
"""What cells of one size share: a budget, a width, one or the other, or not even that."""

_SAME: Mapping[Size, str] = {
    "budget": "backbone, layers and budget",
    "width": "backbone, layers and width",
    "either": "backbone, layers, and budget or width",
    "neither": "backbone and layers",
}
_OVER: Mapping[Size, str] = {
    "budget": "layers and budgets",
    "width": "layers and widths",
    "either": "layers, budgets and widths",
    "neither": "layers and widths",
}
SIZES: tuple[Size, ...] = tuple(_SAME)


def rules(bold: Bold, size: Size) -> tuple[str, str]:
    """What is bold and what is red, in words; ``size`` is what a model shares with the vanilla one that it faces."""
    better = f"a better mean test metric than the vanilla model that it faces (same {_SAME[size]})"
    best = (
        f"the best mean test metric of its dataset (of two or more models, over all {_OVER[size]}), marked only where "
        "it belongs to a bilateral gate (a uniform gate can be bold, never red; equal bests are all marked, or none if "
        "one is not bilateral)"
    )
    if bold == "paper":
        return better, best
    return (
        f"{better}, by a two-sided test (paired over folds, Welch's over seeds) below 0.05 after Holm's correction "
        "over all comparisons printed together",
        f"{best}, and only where it is bold",
    )


def size_of(summaries: Sequence[CellSummary]) -> Size:
    """By what the models of one table are alike in size."""
    by_width = [summary.chosen.hidden_dim is not None and summary.chosen.budget is None for summary in summaries]
    if not any(by_width):
        return "budget"
    if not all(by_width):
        return "either"
    widths: dict[bool, set[int | None]] = {True: set(), False: set()}
    for summary in summaries:
        widths[summary.cell.placement == "none"].add(summary.chosen.hidden_dim)
    return "width" if widths[False] <= widths[True] else "neither"


FAIRNESS_RULE = (
    "Means are compared unrounded; a model with missing runs, or of a single run, is neither marked nor compared"
)


def better(left: CellSummary, right: CellSummary) -> bool:
    """Whether ``left``'s mean test metric is strictly better: of two that are complete, on the same data and folds."""
    if not (_may_be_marked(left) and _may_be_marked(right) and left.ground == right.ground):
        return False
    if left.test is None or right.test is None:
        return False
    difference = difference_of_means(left.test, right.test)
    return difference < 0 if left.cell.direction == "min" else difference > 0


def best_cells(summaries: Sequence[CellSummary]) -> frozenset[str]:
    """Ids of the cells of one dataset that are red: the best, if all of the best have a bilateral gate.

    None where they ran on different data or folds: nobody knows which is the best then.
    """
    complete = [summary for summary in summaries if _may_be_marked(summary)]
    if len({summary.ground for summary in complete}) > 1:
        return frozenset()
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
