"""What pictures are drawn from: the trials of each cell with their curves, from the records alone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from reports.layout import Entry, build_table
from reports.load import load_records, load_results
from reports.plain_text import plain
from reports.plan import PlanCell
from reports.search_plan import SearchPlan, load_search_plans
from reports.study_facts import cell_name
from study.records import SCHEMA

CURVES = ("epoch", "val_metric", "gate_min", "gate_max", "gate_std")
_PLAIN = ("key", "cell", "phase", "status", "number", "seed", "fold", "val_metric", "test_metric")


@dataclass(frozen=True, kw_only=True)
class DrawnTrial:
    """A trial; ``settings`` are its record's columns by name, ``curves`` an array an epoch, NaN where unknown."""

    key: str
    status: str
    number: int | None
    val_metric: float | None
    settings: Mapping[str, Any]
    curves: Mapping[str, np.ndarray]

    @property
    def finished(self) -> bool:
        """Whether its last value may be compared with that of others: it was trained to its end."""
        return self.status == "finished" and is_number(self.val_metric)


@dataclass(frozen=True, kw_only=True)
class DrawnCell:
    """A cell of the table with its search trials, by number, and the confirm trials behind its row."""

    entry: Entry
    search_plan: SearchPlan
    search: tuple[DrawnTrial, ...]
    confirm: tuple[DrawnTrial, ...]

    @property
    def cell(self) -> PlanCell:
        """What was planned."""
        return self.entry.summary.cell

    @property
    def label(self) -> str:
        """The model's name in the table."""
        return plain(self.entry.label)

    @property
    def name(self) -> str:
        """A name that tells it apart in the study."""
        chosen = self.entry.summary.chosen
        return cell_name(self.cell.dataset_title, self.label, chosen.budget, self.cell.hidden_dim, chosen.layers)

    @property
    def best(self) -> float | None:
        """The best last validation value of its finished search trials, as a fraction."""
        values = [trial.val_metric for trial in self.search if trial.finished and trial.val_metric is not None]
        return None if not values else min(values) if self.cell.direction == "min" else max(values)


@dataclass(frozen=True, kw_only=True)
class Material:
    """A study and its cells in the table's order."""

    study: str
    results: Path
    cells: tuple[DrawnCell, ...]

    def facing(self, cell: DrawnCell) -> DrawnCell | None:
        """The vanilla cell that a gated one is compared with."""
        return next((other for other in self.cells if other.cell.id == cell.entry.faces), None)

    def uniform_twin(self, cell: DrawnCell) -> DrawnCell | None:
        """The control of a bilateral cell: the same but for the gate."""
        same = ("dataset", "backbone", "layers", "budget", "hidden_dim", "placement", "num_clusters", "departures")
        return next(
            (
                other
                for other in self.cells
                if other.cell.gate == "uniform"
                and all(getattr(other.cell, key) == getattr(cell.cell, key) for key in same)
                and other.cell.unsupervised_weight == cell.cell.unsupervised_weight
            ),
            None,
        )


def load_material(results: Path) -> Material:
    """The material of the study in the folder ``results``.

    Raises:
        ResultsError: not the results folder of a study. study.records.RecordError: a record cannot be read.
    """
    study = load_results(results)
    searches = load_search_plans(results)
    searched = {search_range.name for plan in searches.values() for search_range in plan.ranges or ()}
    settings = sorted((searched | {"placement", "budget", "num_clusters", "sigma_m", "gate"}) & set(SCHEMA.names))
    table = load_records(results, (*_PLAIN, *settings, *(f"epochs.list.element.{name}" for name in CURVES)))
    trials: defaultdict[tuple[str, str], list[DrawnTrial]] = defaultdict(list)
    for row in table.to_pylist():
        trials[row["cell"], row["phase"]].append(_trial(row, settings))
    cells = []
    for entry in build_table(study).entries:
        cell, counted = entry.summary.cell.id, [run.key for run in entry.summary.runs]
        confirm = {trial.key: trial for trial in trials[cell, "confirm"]}
        search = sorted(trials[cell, "search"], key=lambda trial: (trial.number or 0, trial.key))
        cells.append(
            DrawnCell(
                entry=entry,
                search_plan=searches[cell],
                search=tuple(search),
                confirm=tuple(confirm[key] for key in counted),
            )
        )
    return Material(study=study.plan.study, results=results, cells=tuple(cells))


def _trial(row: Mapping[str, Any], settings: Sequence[str]) -> DrawnTrial:
    epochs = row["epochs"]
    return DrawnTrial(
        key=row["key"],
        status=row["status"],
        number=row["number"],
        val_metric=row["val_metric"],
        settings={name: row[name] for name in settings},
        curves={
            name: np.array([np.nan if epoch[name] is None else epoch[name] for epoch in epochs], dtype=np.float64)
            for name in CURVES
        },
    )


def is_number(value: float | None) -> TypeGuard[float]:
    """Whether it is there and finite."""
    return value is not None and math.isfinite(value)
