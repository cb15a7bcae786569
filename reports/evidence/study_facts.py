"""A study's cells with all that is on record of them: what evidence and check are worked out from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reports.layout.result_table import Entry, ResultTable, build_table
from reports.records.details import Details, TrialDetails, load_details
from reports.records.load import StudyResults
from reports.records.plan import PlanCell
from reports.records.search_plan import SearchPlan, load_search_plans
from reports.records.used_data import UsedData
from reports.summary.summarise import CellSummary, current_configuration
from reports.words.plain_text import plain


@dataclass(frozen=True, kw_only=True)
class CellFacts:
    """One cell of the plan and its trials.

    Attributes:
        entry: where it stands in the table, under which label, and what it faces there.
        search_plan: what the plan says of its search.
        confirm, search: its trials of that phase, ordered by key.
        current: those of ``confirm`` with the configuration that the table shows.
        counted: those of ``current`` behind the cell's number, in the plan's order.
        record: all columns but the epochs of a record of ``current``; None where there is none.
    """

    entry: Entry
    search_plan: SearchPlan
    confirm: tuple[TrialDetails, ...]
    search: tuple[TrialDetails, ...]
    current: tuple[TrialDetails, ...]
    counted: tuple[TrialDetails, ...]
    record: Mapping[str, Any] | None

    @property
    def summary(self) -> CellSummary:
        """Its numbers."""
        return self.entry.summary

    @property
    def cell(self) -> PlanCell:
        """What was planned."""
        return self.entry.summary.cell

    @property
    def id(self) -> str:
        """The cell's id."""
        return self.cell.id

    @property
    def label(self) -> str:
        """The model's name in the table."""
        return plain(self.entry.label)

    @property
    def name(self) -> str:
        """A name for people; see :func:`cell_name`."""
        chosen = self.summary.chosen
        return cell_name(self.cell.dataset_title, self.label, chosen.budget, self.cell.hidden_dim, chosen.layers)

    @property
    def faces(self) -> str | None:
        """Id of the vanilla cell that it is compared with."""
        return self.entry.faces


@dataclass(frozen=True, kw_only=True)
class StudyFacts:
    """A study: its cells in the plan's order, the trials of cells that are not in the plan, its data by fingerprint.

    ``results`` and ``table`` are what they were made of.
    """

    study: str
    results: StudyResults
    table: ResultTable
    cells: tuple[CellFacts, ...]
    outside: tuple[TrialDetails, ...]
    details: Details
    data: Mapping[str, UsedData] = field(default_factory=dict)

    def facing(self) -> tuple[tuple[CellFacts, CellFacts], ...]:
        """Every gated cell and the vanilla cell that it faces in the table."""
        by_id = {cell.id: cell for cell in self.cells}
        return tuple((cell, by_id[cell.faces]) for cell in self.cells if cell.faces is not None)


def gather(results: Path) -> StudyFacts:
    """The facts of the study in the folder ``results``.

    Raises:
        ResultsError: not the results folder of a study, or a record without a readable configuration.
        study.records.RecordError: a record of another project or schema version.
    """
    study, details = load_details(results)
    searches = load_search_plans(results)
    trials: defaultdict[str, list[TrialDetails]] = defaultdict(list)
    for trial in details.trials:
        trials[trial.cell].append(trial)
    current = _current_keys(study)
    rows = details.rows([min(keys) for keys in current.values() if keys])
    table = build_table(study)
    entries = {entry.summary.cell.id: entry for entry in table.entries}
    cells = tuple(
        _cell_facts(entries[cell.id], searches[cell.id], trials.pop(cell.id, []), current[cell.id], rows)
        for cell in study.plan.cells
    )
    outside = tuple(trial for found in trials.values() for trial in found)
    return StudyFacts(
        study=study.plan.study,
        results=study,
        table=table,
        cells=cells,
        outside=tuple(sorted(outside, key=lambda trial: (trial.cell, trial.key))),
        details=details,
        data=study.data,
    )


def cell_name(title: str, label: str, budget: int | None, hidden_dim: int | None, layers: int | None) -> str:
    """A name for people such as ``ZINC bi-GCN 500k L16``; ``hidden_dim`` is the width where the plan fixes it."""
    size = f" {budget_text(budget)}" if budget is not None else ""
    width = f" h{hidden_dim}" if hidden_dim is not None else ""
    return f"{title} {label}{size}{width}" + (f" L{layers}" if layers is not None else "")


def budget_text(budget: int) -> str:
    """``500k`` for 500,000."""
    return f"{budget // 1000}k" if budget % 1000 == 0 else str(budget)


def run_text(seed: int, fold: int | None) -> str:
    """A run of a cell in words."""
    return f"seed {seed}" if fold is None else f"seed {seed} fold {fold}"


def _current_keys(study: StudyResults) -> dict[str, frozenset[str]]:
    confirm: defaultdict[str, list[Any]] = defaultdict(list)
    for trial in study.trials:
        if trial.phase == "confirm":
            confirm[trial.cell].append(trial)
    return {
        cell.id: frozenset(trial.key for trial in current_configuration(confirm[cell.id])) for cell in study.plan.cells
    }


def _cell_facts(
    entry: Entry,
    search_plan: SearchPlan,
    trials: list[TrialDetails],
    current: frozenset[str],
    rows: Mapping[str, Mapping[str, Any]],
) -> CellFacts:
    by_key = {trial.key: trial for trial in trials}
    confirm = tuple(trial for trial in trials if trial.phase == "confirm")
    return CellFacts(
        entry=entry,
        search_plan=search_plan,
        confirm=confirm,
        search=tuple(trial for trial in trials if trial.phase == "search"),
        current=tuple(trial for trial in confirm if trial.key in current),
        counted=tuple(by_key[run.key] for run in entry.summary.runs),
        record=rows[min(current)] if current else None,
    )
