"""The trials of a study, from its record files: the only input of every table beside the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from reports.records.plan import Plan, ResultsError, load_plan
from reports.records.used_data import UsedData, load_used_data
from study.records import CutRecordError, read_columns, record_tables

RECORDS_FOLDER = "records"


@dataclass(frozen=True, kw_only=True, slots=True)
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
    semantics: str
    departures: str | None
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
    """One study: its plan, all trials on record, ordered by key, and what is known of their data, by fingerprint."""

    plan: Plan
    trials: tuple[Trial, ...]
    data: Mapping[str, UsedData] = field(default_factory=dict)


def given_once(results: Sequence[Path]) -> None:
    """Refuse a results folder that stands twice among ``results``: no cell of it could be compared with itself.

    Raises:
        ResultsError: one does; the message names it.
    """
    seen: set[str] = set()
    for folder in results:
        place = str(folder.resolve())
        if place in seen:
            raise ResultsError(f"{folder}: given twice, expected each results folder once")
        seen.add(place)


def load_results(results: Path) -> StudyResults:
    """The plan and the records of the folder ``results``; an empty records folder is an empty study.

    Raises:
        ResultsError: no such folder, no readable plan or data file, no records folder, or a record that is cut or
            misnamed.
        study.records.RecordError: a file of another project or schema version.
    """
    plan, data = load_plan(results), load_used_data(results)
    # Table by table: of a hundred thousand trials the columns need not be in memory beside what is made of them.
    with _refused_records():
        tables = record_tables(_records_of(results), (*_PLAIN_COLUMNS, _EPOCH_COLUMN))
        return StudyResults(plan=plan, trials=tuple(trial for table in tables for trial in _trials(table)), data=data)


def load_results_with(results: Path, columns: Sequence[str]) -> tuple[StudyResults, pa.Table]:
    """As :func:`load_results`, and a table of these further ``columns``, as :func:`load_records` gives it.

    The records, which may be a hundred thousand files, are read once for both.

    Raises:
        ResultsError, study.records.RecordError: as :func:`load_results`.
    """
    plan, data = load_plan(results), load_used_data(results)
    table = load_records(results, (*_PLAIN_COLUMNS, _EPOCH_COLUMN, *columns))
    return StudyResults(plan=plan, trials=tuple(_trials(table)), data=data), table


def load_records(results: Path, columns: Sequence[str]) -> pa.Table:
    """The given ``columns`` of every record of a study, a row a trial, ordered by key; read from the files alone.

    Columns are those of ``study.records.SCHEMA``, and ``study.records.RECORD_FILE`` for the name of the file in which
    the row lies; a part of the epochs may be named alone, as ``epochs.list.element.val_metric`` (the column ``epochs``
    then holds only what was named).

    Raises:
        ResultsError: no records folder, or a record that is cut or misnamed.
        study.records.RecordError: a file of another project or schema version.
    """
    with _refused_records():
        return read_columns(_records_of(results), columns)


_PLAIN_COLUMNS = [entry.name for entry in fields(Trial) if entry.name != "num_epochs"]
_EPOCH_COLUMN = "epochs.list.element.epoch"


def _trials(table: pa.Table) -> Iterator[Trial]:
    # Lengths of lists: no epoch becomes an object.
    lengths = pc.list_value_length(table.column("epochs")).to_pylist()
    plain = (table.column(name).to_pylist() for name in _PLAIN_COLUMNS)
    for *values, num_epochs in zip(*plain, lengths, strict=True):
        yield Trial(**dict(zip(_PLAIN_COLUMNS, values, strict=True)), num_epochs=num_epochs)


def _records_of(results: Path) -> Path:
    folder = results / RECORDS_FOLDER
    if not folder.exists():
        raise ResultsError(f"{folder}: not found, so there is no record at all; start the study first")
    return folder


@contextmanager
def _refused_records() -> Iterator[None]:
    try:
        yield
    except CutRecordError as error:
        raise ResultsError(str(error)) from error
