"""Gated against vanilla models: paired over folds, Welch over seeds, Holm over all that is compared together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Generic, TypeVar

from reports.compare.inference import (
    SIGNIFICANCE,
    Interval,
    Outcome,
    Sides,
    holm,
    interval,
    paired,
    welch,
    welch_of_printed,
)
from reports.published.rows import PaperRow, paper_rows
from reports.summary.summarise import CellSummary, difference_of_means
from study.counted import counted

if TYPE_CHECKING:  # the layout may ask this module which differences are significant
    from reports.layout.result_table import ResultTable

__all__ = [
    "Comparison",
    "Interval",
    "Outcome",
    "compare_cells",
    "compare_published",
    "facing_pairs",
    "interval",
    "published_pairs",
]

Side = TypeVar("Side", CellSummary, PaperRow)
"""What is compared: cells of ours, or rows of the paper."""

Values = Mapping[tuple[int, int | None], float]
"""The test metric of each (seed, fold)."""

MAIN_TABLES = ("graph_level", "node_edge_level")
"""The paper's Tables 2 and 3."""


@dataclass(frozen=True, kw_only=True)
class Comparison(Generic[Side]):
    """A gated model against the vanilla one that it faces.

    Attributes:
        outcome: of the test of gated - vanilla; without a p-value its ``reason`` says why.
        p_holm: the p-value after Holm's correction; None where there is none.
        direction: ``min`` where a smaller metric is better, else ``max``.
    """

    gated: Side
    vanilla: Side
    outcome: Outcome
    p_holm: float | None
    direction: str

    @property
    def favours_gated(self) -> bool:
        """Whether the gated model's mean is strictly better, significantly or not; False where it cannot be told."""
        difference = self.outcome.difference
        if difference is None:
            return False
        return difference < 0 if self.direction == "min" else difference > 0

    @property
    def significant(self) -> bool:
        """Whether the difference, in either direction, survives the correction: p below 0.05 after Holm's."""
        return self.p_holm is not None and self.p_holm < SIGNIFICANCE


def compare_cells(pairs: Sequence[tuple[CellSummary, CellSummary]]) -> tuple[Comparison[CellSummary], ...]:
    """Test each (gated, vanilla) pair, in their order; Holm's correction is over all pairs of the call.

    Cells that are run on two or more folds are paired: runs are matched by (seed, fold), and the differences of a fold
    are averaged over its seeds, which are no further evidence about folds. Others are compared by Welch's test over
    seeds. A pair of which a cell is incomplete, or whose runs cannot be set against each other, gets a reason.
    """
    outcomes = [_test(gated, vanilla) for gated, vanilla in pairs]
    return tuple(
        Comparison(gated=gated, vanilla=vanilla, outcome=outcome, p_holm=corrected, direction=gated.cell.direction)
        for (gated, vanilla), outcome, corrected in zip(pairs, outcomes, holm(outcomes), strict=True)
    )


def facing_pairs(table: ResultTable) -> tuple[tuple[CellSummary, CellSummary], ...]:
    """Every gated cell of ``table`` with the vanilla cell that it faces there, in the order of reading."""
    summaries = {entry.summary.cell.id: entry.summary for entry in table.entries}
    return tuple((entry.summary, summaries[entry.faces]) for entry in table.entries if entry.faces is not None)


def published_pairs(tables: Sequence[str] = MAIN_TABLES) -> tuple[tuple[PaperRow, PaperRow], ...]:
    """Each gated row of the paper's ``tables`` with the vanilla row of the same table, dataset, backbone and depth."""
    rows = [row for row in paper_rows() if row.table in tables]
    vanillas = {_place(row): row for row in rows if row.placement == "none"}
    return tuple((row, vanillas[_place(row)]) for row in rows if row.placement != "none" and _place(row) in vanillas)


def compare_published(pairs: Sequence[tuple[PaperRow, PaperRow]]) -> tuple[Comparison[PaperRow], ...]:
    """Welch's test of each (gated, vanilla) pair of rows from printed mean and standard deviation (as ddof 0).

    Rows over folds are tested so too, for want of the values of each fold. Differences are fractions.
    """
    outcomes = [welch_of_printed(_printed(gated), _printed(vanilla), ("gated", "vanilla")) for gated, vanilla in pairs]
    return tuple(
        Comparison(
            gated=gated,
            vanilla=vanilla,
            outcome=outcome,
            p_holm=corrected,
            direction="min" if gated.metric == "mae" else "max",
        )
        for (gated, vanilla), outcome, corrected in zip(pairs, outcomes, holm(outcomes), strict=True)
    )


def _test(gated: CellSummary, vanilla: CellSummary) -> Outcome:
    for name in ("dataset", "metric"):
        one, other = getattr(gated.cell, name), getattr(vanilla.cell, name)
        if one != other:
            return Outcome(reason=f"not the same {name}: {one} and {other}")
    sides = _sides(gated, vanilla)
    missing = [summary.asked - summary.finished for summary in (gated, vanilla)]
    if any(missing) or gated.test is None or vanilla.test is None:
        return Outcome(reason=f"incomplete: {_lacking(sides, missing)}")
    if gated.data != vanilla.data:  # whose folds of one number are not one fold
        return Outcome(reason=f"not the same data: {gated.data} and {vanilla.data}")
    outcome = _test_runs(_values(gated), _values(vanilla), sides)
    if outcome.difference is None:
        return outcome
    # That of the means in the table: equal cells differ by 0.
    return replace(outcome, difference=difference_of_means(gated.test, vanilla.test))


def _test_runs(ours: Values, theirs: Values, sides: Sides) -> Outcome:
    folds = list(dict.fromkeys(fold for _, fold in ours))
    on_folds = len(folds) > 1
    if {fold for _, fold in theirs} != set(folds) or (on_folds and ours.keys() != theirs.keys()):
        return Outcome(reason="the two were not run from the same seeds on the same folds")
    if not on_folds:
        return welch(list(ours.values()), list(theirs.values()), sides)
    return paired(*([_mean_of_fold(side, fold) for fold in folds] for side in (ours, theirs)))


def independent_values(summary: CellSummary) -> list[float]:
    """The test metrics of a cell's runs that are evidence of their own: over folds the mean of each, else all."""
    values = _values(summary)
    folds = list(dict.fromkeys(fold for _, fold in values))
    return [_mean_of_fold(values, fold) for fold in folds] if len(folds) > 1 else list(values.values())


def _values(summary: CellSummary) -> Values:
    return {(run.seed, run.fold): run.test for run in summary.runs}


def _mean_of_fold(values: Values, fold: int | None) -> float:
    return fmean(value for (_, other), value in values.items() if other == fold)


def _sides(gated: CellSummary, vanilla: CellSummary) -> Sides:
    """What the two are called in a reason: by their gates, where these tell them apart."""
    one, other = (
        "vanilla" if summary.chosen.placement == "none" else summary.chosen.gate or "gated"
        for summary in (gated, vanilla)
    )
    return (one, other) if one != other else ("first", "second")


def _lacking(sides: Sides, missing: Sequence[int]) -> str:
    named = zip(sides, missing, strict=True)
    return ", ".join(f"{side} lacks {counted(count, 'run')}" for side, count in named if count)


def _place(row: PaperRow) -> tuple[str, str, str, int, int]:
    return row.table, row.dataset, row.backbone, row.layers, row.budget


def _printed(row: PaperRow) -> tuple[float, float, int]:
    return row.test.mean, row.test.std or 0.0, row.runs
