"""What a table does not need of the records, but what its evidence and its check do: read once, kept as columns."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reports.records.load import RECORDS_FOLDER, StudyResults, load_results_with
from study.records import RECORD_FILE, SCHEMA

CURVES = ("val_metric", "gate_std")
"""What is read of every epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialDetails:
    """One record without its configuration, times and curves; fields as in ``study.records.TrialRecord``.

    ``record_file`` is the name of the file in which it lies, alone or with others.
    """

    key: str
    study: str
    cell: str
    phase: str
    status: str
    reason: str | None
    number: int | None
    chosen_from: str | None
    metric: str
    budget: int | None
    params: int
    gate: str | None
    max_epochs: int
    seed: int
    fold: int | None
    train_metric: float | None
    val_metric: float | None
    test_metric: float | None
    test_loss: float | None
    seconds: float
    device: str
    threads: int
    git_commit: str | None
    git_dirty: bool | None
    data_fingerprint: str
    versions_json: str
    record_file: str
    num_epochs: int

    @property
    def file(self) -> str:
        """Where the record lies in the results folder."""
        return f"{RECORDS_FOLDER}/{self.record_file}"

    @property
    def versions(self) -> tuple[tuple[str, str], ...]:
        """Version by library, ordered by name."""
        return tuple((name, str(version)) for name, version in sorted(json.loads(self.versions_json).items()))


@dataclass(frozen=True, kw_only=True)
class Details:
    """All records of a study, ordered by key."""

    trials: tuple[TrialDetails, ...]
    table: pa.Table

    def rows(self, keys: Collection[str]) -> dict[str, dict[str, Any]]:
        """Every column but the epochs of the trials ``keys``, by key."""
        chosen = pc.is_in(self.table.column("key"), value_set=pa.array(list(keys), pa.string()))
        rows = self.table.drop_columns(["epochs"]).filter(chosen).to_pylist()
        return {row["key"]: row for row in rows}

    def curves(self, keys: Collection[str], value: str) -> Iterator[tuple[str, tuple[tuple[int, float | None], ...]]]:
        """Of the trials ``keys``, ordered by key: (epoch, ``value``, one of :data:`CURVES`) of every epoch."""
        chosen = pc.is_in(self.table.column("key"), value_set=pa.array(list(keys), pa.string()))
        for row in self.table.select(["key", "epochs"]).filter(chosen).to_pylist():
            yield row["key"], tuple((epoch["epoch"], epoch[value]) for epoch in row["epochs"])


def load_details(results: Path) -> tuple[StudyResults, Details]:
    """The study in the folder ``results``, and its records in detail.

    Raises:
        ResultsError, study.records.RecordError: as :func:`reports.records.load.load_results`.
    """
    plain = [name for name in SCHEMA.names if name != "epochs"]
    study, table = load_results_with(
        results, (*plain, RECORD_FILE, *(f"epochs.list.element.{name}" for name in CURVES))
    )
    counts = pc.list_value_length(table.column("epochs")).to_pylist()
    names = [entry.name for entry in fields(TrialDetails) if entry.name != "num_epochs"]
    columns = (table.column(name).to_pylist() for name in names)
    trials = (
        TrialDetails(**dict(zip(names, values, strict=True)), num_epochs=count)
        for *values, count in zip(*columns, counts, strict=True)
    )
    return study, Details(trials=tuple(trials), table=table)
