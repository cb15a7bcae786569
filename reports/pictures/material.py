"""What pictures are drawn from: the trials of each cell with their curves, from the records alone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa

from reports.evidence.chosen import went_all_the_way
from reports.layout.result_table import Entry, build_table
from reports.pictures.names import CellNames, names_of, panel_of, panel_title
from reports.pictures.style import Styles
from reports.records.load import load_results_with
from reports.records.plan import PlanCell
from reports.records.search_plan import SearchPlan, load_search_plans
from study.records import SCHEMA

CURVES = ("epoch", "val_metric", "gate_min", "gate_max", "gate_std")
_PLAIN = ("key", "cell", "phase", "status", "number", "val_metric")


@dataclass(frozen=True, kw_only=True)
class DrawnTrial:
    """A trial.

    Attributes:
        complete: whether its last value may be compared with that of others: it is a number, and the trial finished
            or reached the last rung, as is asked of a trial that may be chosen.
        settings: its record's columns by name. curves: an array of one number an epoch each, NaN where unknown.
    """

    key: str
    status: str
    number: int | None
    val_metric: float | None
    complete: bool
    settings: Mapping[str, Any]
    curves: Mapping[str, np.ndarray]

    @property
    def num_epochs(self) -> int:
        """Epochs that it was trained for."""
        return len(self.curves["epoch"])


@dataclass(frozen=True, kw_only=True)
class DrawnCell:
    """A cell of the table with its search trials, by number, and the confirm trials behind its row."""

    entry: Entry
    names: CellNames
    search_plan: SearchPlan
    search: tuple[DrawnTrial, ...]
    confirm: tuple[DrawnTrial, ...]

    @property
    def cell(self) -> PlanCell:
        """What was planned."""
        return self.entry.summary.cell

    @property
    def name(self) -> str:
        """A name by itself."""
        return self.names.name

    @property
    def gate(self) -> str | None:
        """None of a vanilla cell."""
        return self.entry.summary.chosen.gate

    @property
    def complete_search(self) -> tuple[DrawnTrial, ...]:
        """The search trials whose last values may be compared."""
        return tuple(trial for trial in self.search if trial.complete)

    @property
    def best(self) -> float | None:
        """The best of their values, as a fraction; None where there is none."""
        values = [trial.val_metric for trial in self.complete_search if trial.val_metric is not None]
        return None if not values else min(values) if self.cell.direction == "min" else max(values)


Group = tuple[str, Sequence[DrawnCell]]
"""A panel's title and its cells."""


@dataclass(frozen=True, kw_only=True)
class Material:
    """A study's cells in the table's order."""

    cells: tuple[DrawnCell, ...]

    @property
    def styles(self) -> Styles:
        """Of each arm, in every picture of the study."""
        return Styles(names=tuple(dict.fromkeys(cell.names.arm for cell in self.cells)))

    def legend_name(self, cell: DrawnCell) -> str:
        """A cell's label where all cells have one backbone, else its arm's name, which then serves all panels."""
        backbones = {other.cell.backbone for other in self.cells}
        return cell.names.label if len(backbones) == 1 else cell.names.arm

    def facing(self, cell: DrawnCell) -> DrawnCell | None:
        """The vanilla cell that a gated one is compared with."""
        return next((other for other in self.cells if other.cell.id == cell.entry.faces), None)

    def uniform_twin(self, cell: DrawnCell) -> DrawnCell | None:
        """The control of a bilateral cell: the same but for the gate."""
        same = (
            *("dataset", "backbone", "layers", "budget", "hidden_dim", "placement", "num_clusters"),
            *("semantics", "departures", "pos_enc_dim", "other_settings"),
        )
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


def compared(cells: Sequence[DrawnCell]) -> list[Group]:
    """``cells`` by the panel in which they are compared, of one dataset, backbone and planned size, in their order."""
    groups: dict[object, list[DrawnCell]] = {}
    for cell in cells:
        groups.setdefault(panel_of(cell.cell), []).append(cell)
    return [(panel_title([cell.cell for cell in group]), group) for group in groups.values()]


def load_material(results: Path) -> Material:
    """The material of the study in the folder ``results``.

    Raises:
        ResultsError: not the results folder of a study. study.records.RecordError: a record cannot be read.
    """
    searches = load_search_plans(results)
    searched = {search_range.name for plan in searches.values() for search_range in plan.ranges or ()}
    settings = sorted((searched | {"placement", "budget", "num_clusters", "sigma_m"}) & set(SCHEMA.names))
    study, table = load_results_with(results, (*_PLAIN, *settings, *(f"epochs.list.element.{name}" for name in CURVES)))
    trials: defaultdict[tuple[str, str], list[DrawnTrial]] = defaultdict(list)
    rows = table.drop_columns("epochs").to_pylist()
    for row, curves in zip(rows, _curves(table.column("epochs")), strict=True):
        if row["cell"] in searches:
            trials[row["cell"], row["phase"]].append(_trial(row, settings, curves, searches[row["cell"]].rungs))
    entries = build_table(study).entries
    names = names_of(entries)
    return Material(
        cells=tuple(
            _cell(entry, names[entry.summary.cell.id], searches[entry.summary.cell.id], trials) for entry in entries
        )
    )


def _cell(
    entry: Entry, names: CellNames, search: SearchPlan, trials: Mapping[tuple[str, str], list[DrawnTrial]]
) -> DrawnCell:
    cell = entry.summary.cell.id
    confirm = {trial.key: trial for trial in trials.get((cell, "confirm"), ())}
    tried = trials.get((cell, "search"), ())
    return DrawnCell(
        entry=entry,
        names=names,
        search_plan=search,
        search=tuple(sorted(tried, key=lambda trial: (trial.number or 0, trial.key))),
        confirm=tuple(confirm[run.key] for run in entry.summary.runs),
    )


def _trial(
    row: Mapping[str, Any], settings: Sequence[str], curves: Mapping[str, np.ndarray], rungs: Sequence[int]
) -> DrawnTrial:
    all_the_way = went_all_the_way(row["status"], len(curves["epoch"]), rungs)
    return DrawnTrial(
        key=row["key"],
        status=row["status"],
        number=row["number"],
        val_metric=row["val_metric"],
        complete=all_the_way and is_number(row["val_metric"]),
        settings={name: row[name] for name in settings},
        curves=curves,
    )


def _curves(epochs: pa.ChunkedArray) -> list[dict[str, np.ndarray]]:
    """The curves of each row; of a million epochs none becomes an object."""
    found = []
    for lists in epochs.chunks:
        offsets = lists.offsets.to_numpy()
        whole = {name: _numbers(lists.values.field(name)) for name in CURVES}
        found += [
            {name: values[start:end] for name, values in whole.items()} for start, end in pairwise(offsets.tolist())
        ]
    return found


def _numbers(values: pa.Array) -> np.ndarray:
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def is_number(value: float | None) -> TypeGuard[float]:
    """Whether it is there and finite."""
    return value is not None and math.isfinite(value)
