"""Our cells beside published numbers: the paper's, its benchmark's and later ones, and in what they are unlike."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from reports.compare.against_vanilla import independent_values
from reports.compare.inference import Outcome, welch_of_printed
from reports.layout.result_table import ResultTable, build_table
from reports.published.protocol_flags import Flag, OurSide, gated_layers, model_flags, other_flags, paper_flags
from reports.published.rows import OtherRow, PaperRow, benchmark_rows, later_rows, paper_rows
from reports.records.load import StudyResults, Trial
from reports.records.used_data import UsedData
from reports.summary.labels import Label
from reports.summary.summarise import ROUNDING, CellSummary, current_configuration, spread
from reports.words.units import scale_of

BENCHMARK_RUNS = 4
"""Runs behind each number of the benchmark's leaderboard."""

BUDGETS = (100_000, 500_000)
"""The benchmark's budgets."""

Kind = Literal["paper", "benchmark", "later"]


@dataclass(frozen=True, kw_only=True)
class BesidePublished:
    """A cell of ours beside one published row; metrics as fractions.

    Attributes:
        study: whose cell it is. label: the cell's name in the study's table. summary: the cell.
        published: the row. kind: where it stands.
        counterpart: whether the row is of this very model: depth, place and kind of the gate, no departing setting;
            else it is the nearest row that there is, and ``flags`` say why.
        printed_mean, printed_std, printed_runs: of the row; None where its source does not say.
        outcome: ours - printed, and Welch's p-value from both means and standard deviations (ddof 0). Several seeds on
            a fold are one value of it, as against vanilla models: they say nothing new about folds.
        flags: every setting that is known to differ.
        data_fingerprint: names the data of our runs, which records cannot tell from the published row's; None: no runs.
    """

    study: str
    label: Label
    summary: CellSummary
    published: PaperRow | OtherRow
    kind: Kind
    counterpart: bool
    printed_mean: float
    printed_std: float | None
    printed_runs: int | None
    outcome: Outcome
    flags: tuple[Flag, ...]
    data_fingerprint: str | None

    @property
    def difference(self) -> float | None:
        """Ours - printed; None without a complete number of ours."""
        return self.outcome.difference

    @property
    def within_spread(self) -> bool | None:
        """Whether the two ranges mean ± standard deviation meet: the difference is no larger than the sum of the two.

        None where one is not known: of a single run, whose spread nobody knows, they surely meet where the printed
        range holds it, and else may. With four runs a side and equal spreads, this is where Welch's p crosses 0.05.
        """
        if self.difference is None or self.printed_std is None or self.summary.test is None:
            return None
        meet = abs(self.difference) <= self.printed_std + (self.summary.test.std or 0.0) + ROUNDING
        return None if not meet and self.summary.test.std is None else meet

    @property
    def name(self) -> str:
        """What the published row is called."""
        row = self.published
        return f"{row.row} L{row.layers}" if isinstance(row, PaperRow) else row.model

    @property
    def origin(self) -> str:
        """Who ran the published row, in words."""
        if self.kind != "paper" or not isinstance(self.published, PaperRow):
            return {"benchmark": "the benchmark's authors", "later": "later authors"}.get(self.kind, "")
        return {
            "own": "the paper's authors",
            "copied": "the benchmark's authors; the paper took it over",
            "differs": "not the paper's authors, and not the benchmark's number",
            "unlisted": "not the paper's authors; the benchmark has no such row",
        }[self.published.origin]


def beside_published(results: StudyResults, table: ResultTable | None = None) -> tuple[BesidePublished, ...]:
    """Each cell of a study beside the published rows of its dataset, in the order of the study's table.

    First the paper's row of the model, else the nearest of the same backbone, gated or not as the cell is; for vanilla
    cells then the benchmark's rows of that backbone and budget, where they say more than the paper's; then later
    results of the backbone, or, where there is none, the best of the dataset. Cells without any are left out.

    Args:
        results: of the study.
        table: the study's table, if it is built already; cells that are not in it are left out.
    """
    trials: dict[str, list[Trial]] = {}
    for trial in results.trials:
        trials.setdefault(trial.cell, []).append(trial)
    sides = [
        (entry.label, _our_side(entry.summary, trials.get(entry.summary.cell.id, []), results.data))
        for entry in (build_table(results) if table is None else table).entries
    ]
    return tuple(_beside(results.plan.study, label, ours, row) for label, ours in sides for row in published_rows(ours))


def published_rows(ours: OurSide) -> tuple[PaperRow | OtherRow, ...]:
    """The rows that stand beside a cell, as :func:`beside_published` says."""
    paper = paper_row_of(ours)
    return (*((paper,) if paper else ()), *_benchmark_rows_of(ours, paper), *_later_rows_of(ours))


def paper_row_of(ours: OurSide) -> PaperRow | None:
    """The paper's row of the cell's model, or the nearest; None without one of dataset, backbone and sort."""
    cell, layers = ours.summary.cell, ours.summary.chosen.layers
    if layers is None or ours.gated_layers is None:
        return None
    rows = [
        row
        for row in paper_rows()
        if row.dataset.casefold() == cell.dataset.casefold()
        and row.backbone == cell.backbone
        and (row.placement == "none") == (not ours.gated_layers)
    ]
    # The first of equals: Table S1 repeats rows of Table 2, and boosting stands before the other placements.
    return min(
        rows,
        key=lambda row: (
            abs(math.log(row.layers / layers)),
            gated_layers(row.placement, layers) != ours.gated_layers,
        ),
        default=None,
    )


def _our_side(summary: CellSummary, trials: Sequence[Trial], data: Mapping[str, UsedData]) -> OurSide:
    current = current_configuration(trial for trial in trials if trial.phase == "confirm")
    config = json.loads(current[0].config_json) if current else {}
    counted = {run.key for run in summary.runs}
    return OurSide(
        summary=summary,
        model=config.get("model", {}),
        train=config.get("train", {}),
        searched=sum(trial.phase == "search" for trial in trials),
        cut=sum(trial.key in counted and trial.reason == "time_limit" for trial in trials),
        data_fingerprint=current[0].data_fingerprint if current else None,
        data=data.get(current[0].data_fingerprint) if current else None,
    )


def _benchmark_rows_of(ours: OurSide, paper: PaperRow | None) -> Iterator[OtherRow]:
    chosen = ours.summary.chosen
    size = chosen.budget or chosen.params
    if ours.gate != "none" or size is None:
        return
    budget = min(BUDGETS, key=lambda budget: abs(math.log(size / budget)))
    for row in benchmark_rows():
        is_printed_there = paper is not None and (row.test_mean, row.test_std) == (paper.test_mean, paper.test_std)
        is_like = row.backbone == ours.summary.cell.backbone and row.budget == budget
        if _is_of(row, ours) and is_like and not is_printed_there:
            yield row


def _later_rows_of(ours: OurSide) -> tuple[OtherRow, ...]:
    rows = [row for row in later_rows() if _is_of(row, ours)]
    same = tuple(row for row in rows if row.backbone == ours.summary.cell.backbone)
    if same or not rows:
        return same
    best = min if ours.summary.cell.direction == "min" else max
    return (best(rows, key=lambda row: row.test_mean),)


def _is_of(row: OtherRow, ours: OurSide) -> bool:
    return row.dataset.casefold() == ours.summary.cell.dataset.casefold()


def _beside(study: str, label: Label, ours: OurSide, row: PaperRow | OtherRow) -> BesidePublished:
    is_paper = isinstance(row, PaperRow)
    kind: Kind = "paper" if is_paper else "benchmark" if row in benchmark_rows() else "later"
    runs = row.runs if isinstance(row, PaperRow) else BENCHMARK_RUNS if kind == "benchmark" else None
    scale = scale_of(row.metric)
    mean, std = row.test_mean / scale, None if row.test_std is None else row.test_std / scale
    flags = paper_flags(ours, row) if isinstance(row, PaperRow) else other_flags(ours, row, runs)
    return BesidePublished(
        study=study,
        label=label,
        summary=ours.summary,
        published=row,
        kind=kind,
        counterpart=isinstance(row, PaperRow) and not model_flags(ours, row),
        printed_mean=mean,
        printed_std=std,
        printed_runs=runs,
        outcome=_outcome(ours.summary, row.metric, mean, std, runs),
        flags=flags,
        data_fingerprint=ours.data_fingerprint,
    )


def _outcome(summary: CellSummary, metric: str, mean: float, std: float | None, runs: int | None) -> Outcome:
    if summary.cell.metric != metric:
        return Outcome(reason=f"not the same metric: {summary.cell.metric} and {metric}")
    if not summary.complete or summary.test is None:
        return Outcome(reason=f"incomplete: {summary.finished} of {summary.asked} runs")
    if std is None or runs is None:
        return Outcome(difference=summary.test.mean - mean, reason="the printed spread or number of runs is not known")
    values = independent_values(summary)
    ours = (summary.test.mean, spread(values).std or 0.0, len(values))
    return welch_of_printed(ours, (mean, std, runs), sides=("own", "published"))
