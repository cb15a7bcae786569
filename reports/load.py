"""The trials of a study, from its record files: the only input of every table beside the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reports.plan import Plan, ResultsError, load_plan
from study.records import SCHEMA, SCHEMA_VERSION, read_table

RECORDS_FOLDER = "records"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What a table needs of one record; the fields are those of ``study.records.TrialRecord``.

    ``num_epochs`` counts the completed epochs.
    """

    key: str
    cell: str
    phase: str
    status: str
    reason: str | None
    layers: int
    hidden_dim: int
    budget: int | None
    params: int
    placement: str
    gate: str | None
    num_clusters: int | None
    sigma_m: float | None
    unsupervised_weight: float | None
    seed: int
    fold: int | None
    train_metric: float | None
    test_metric: float | None
    started_at: float
    data_fingerprint: str
    config_json: str
    num_epochs: int


@dataclass(frozen=True, kw_only=True)
class StudyResults:
    """One study: its plan and all trials on record, ordered by key."""

    plan: Plan
    trials: tuple[Trial, ...]


def load_results(results: Path) -> StudyResults:
    """The plan and the records of the folder ``results``; an empty records folder is an empty study.

    Raises:
        ResultsError: no such folder, no readable plan, no records folder, or a record that is cut or misnamed.
        study.records.RecordError: a file of another project or schema version.
    """
    plan = load_plan(results)
    rows = load_records(results, (*_PLAIN_COLUMNS, _EPOCH_COLUMN)).to_pylist()
    return StudyResults(plan=plan, trials=tuple(_trial(row) for row in rows))


def load_records(results: Path, columns: Sequence[str]) -> pa.Table:
    """The given ``columns`` of every record of a study, a row a trial, ordered by key; read from the files alone.

    Columns are those of ``study.records.SCHEMA``; a part of the epochs may be named alone, as
    ``epochs.list.element.val_metric`` (the column ``epochs`` then holds only what was named).

    Raises:
        ResultsError: no records folder, or a record that is cut or misnamed.
        study.records.RecordError: a file of another project or schema version.
    """
    folder = results / RECORDS_FOLDER
    if not folder.is_dir():
        raise ResultsError(f"{folder}: not found, so there is no record at all; start the study first")
    names = list(dict.fromkeys(column.partition(".")[0] for column in columns))
    tables = [_read_file(path, columns).select(names) for path in sorted(folder.glob("*.parquet"))]
    return pa.concat_tables(tables) if tables else SCHEMA.empty_table().select(names)


_PLAIN_COLUMNS = [entry.name for entry in fields(Trial) if entry.name != "num_epochs"]
_EPOCH_COLUMN = "epochs.list.element.epoch"


def _trial(row: dict[str, Any]) -> Trial:
    epochs = row.pop("epochs")
    return Trial(num_epochs=len(epochs), **row)


def _read_file(path: Path, columns: Sequence[str]) -> pa.Table:
    try:
        table = _read_columns(path, ("key", *columns))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ResultsError(
            f"{path}: not a readable Parquet file ({error}); remove it, and run the study again"
        ) from error
    if table.column("key").to_pylist() != [path.stem]:
        raise ResultsError(f"{path}: not the record of trial {path.stem}; move foreign files out of the folder")
    return table


def _read_columns(path: Path, columns: Sequence[str]) -> pa.Table:
    # A study has ten thousand files, and reading a file whole takes four times as long as some columns of it.
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        version = (schema.metadata or {}).get(b"bimp_record_schema")
        if version == str(SCHEMA_VERSION).encode() and schema.equals(SCHEMA):
            return file.read(columns=list(dict.fromkeys(columns)), use_threads=False)
    return read_table(path)  # which says what else the file is
