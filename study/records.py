"""The records of a study, the source of truth of every table: a Parquet file a trial, or many trials in one.

A folder of records holds ``KEY.parquet`` for each trial that ended, and, once it was compacted (``study.compaction``),
``compacted.parquet`` with the rows of many. Where both hold a trial, its own file counts: it was written later.

``reports`` reads records by it alone; it imports neither torch nor Ray.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from study.record_files import (
    COMPACTED_FILE,
    KEY,
    RECORD_FILE,
    CutRecordError,
    RecordError,
    read_record,
    read_singles,
    read_table,
    record_of,
    require_values,
    row_groups,
    write_record,
)
from study.trial_record import BEGUN_AGAIN, SCHEMA, SCHEMA_VERSION, EpochRecord, Status, TrialRecord

__all__ = [
    "BEGUN_AGAIN",
    "COMPACTED_FILE",
    "RECORD_FILE",
    "SCHEMA",
    "SCHEMA_VERSION",
    "CutRecordError",
    "EpochRecord",
    "RecordError",
    "Status",
    "TrialRecord",
    "is_single",
    "merged",
    "read_columns",
    "read_record",
    "read_records",
    "read_table",
    "record_tables",
    "records_in",
    "single_files",
    "write_record",
]

FILES_AT_ONCE = 500
"""Files of single records that become one table."""

_ROWS_AT_ONCE = 200
"""Rows that are Python objects at one time: a long trial's epochs take a hundred times the memory of its columns."""

_MOST_STARTS = 100


class _Vanished(Exception):  # noqa: N818 - no error: somebody compacted the folder
    pass


def read_records(folder: Path, phase: str | None = None, keys: Set[str] | None = None) -> Iterator[TrialRecord]:
    """Every record in ``folder``, or those of ``phase`` or ``keys`` alone, each trial once, ordered by key.

    Raises:
        RecordError: a file is cut, foreign, of another schema version, or misnamed.
    """
    for table in record_tables(folder, keys=keys):
        yield from records_in(table if phase is None else table.filter(pc.equal(table.column("phase"), phase)))


def records_in(table: pa.Table) -> Iterator[TrialRecord]:
    """The rows of ``table``, which has all columns, as records."""
    for start in range(0, table.num_rows, _ROWS_AT_ONCE):
        for row in table.slice(start, _ROWS_AT_ONCE).to_pylist():
            yield record_of(row)


def read_columns(folder: Path, columns: Sequence[str]) -> pa.Table:
    """The given ``columns`` of every record in ``folder``, a row a trial, ordered by key.

    Columns are those of :data:`SCHEMA` and :data:`RECORD_FILE`; a part of the epochs may be named alone, as
    ``epochs.list.element.val_metric`` (the column ``epochs`` then holds only what was named).

    Raises:
        RecordError: as :func:`read_records`.
    """
    names = list(dict.fromkeys(column.partition(".")[0] for column in columns))
    tables = [table.select(names) for table in record_tables(folder, columns)]
    if tables:
        return pa.concat_tables(tables)
    return SCHEMA.append(pa.field(RECORD_FILE, pa.string())).empty_table().select(names)


def record_tables(
    folder: Path, columns: Sequence[str] | None = None, keys: Set[str] | None = None
) -> Iterator[pa.Table]:
    """The rows of ``folder`` in tables that are not empty, ordered by key; ``columns`` as in :func:`row_groups`.

    ``keys``: of the trials that are asked for, whose files alone are read; None: all.

    Safe beside a compaction: what has moved from single files to the compacted one meanwhile is read there.

    Raises:
        RecordError: as :func:`read_records`.
    """
    last = ""
    for _ in range(_MOST_STARTS):
        # Listed before the compacted file is opened: a single file that is gone by then has its row there already.
        singles = [path for path in single_files(folder) if path.stem > last and (keys is None or path.stem in keys)]
        try:
            for table in merged(_compacted_groups(folder, columns, last, keys), singles, columns):
                yield table
                last = table.column("key")[-1].as_py()
        except _Vanished:
            continue
        return
    raise RecordError(f"{folder}: its files change faster than they can be read; try again once they are left alone")


def single_files(folder: Path) -> list[Path]:
    """The files of one record each, ordered by key; none where there is no folder.

    Raises:
        NotADirectoryError: it is a file.
    """
    if not folder.exists():
        return []
    return sorted(filter(is_single, folder.iterdir()), key=lambda path: path.stem)


def is_single(path: Path) -> bool:
    """Whether ``path``, in a folder of records, is the file of one; those that are being written are hidden."""
    return path.suffix == ".parquet" and path.name != COMPACTED_FILE and not path.name.startswith(".")


def merged(
    groups: Iterator[pa.Table], singles: Sequence[Path], columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """The rows of ``groups`` and of the files ``singles``, both ordered by key, in one order; of equal keys the file's.

    No table is longer than a group and :data:`FILES_AT_ONCE` rows.
    """
    left = list(singles)
    for group in groups:
        if not group.num_rows:
            continue
        end = group.column("key")[-1].as_py()
        while left and left[0].stem <= end:
            files = [path for path in left[:FILES_AT_ONCE] if path.stem <= end]
            left = left[len(files) :]
            count = pc.sum(pc.less_equal(group.column("key"), files[-1].stem)).as_py()
            older = group.slice(0, count)
            own = pc.is_in(older.column("key"), value_set=pa.array([path.stem for path in files], pa.string()))
            both = pa.concat_tables([older.filter(pc.invert(own)), _read_singles(files, columns)])
            yield both.take(pc.sort_indices(both.column("key")))
            group = group.slice(count)
        if group.num_rows:
            yield group
    for start in range(0, len(left), FILES_AT_ONCE):
        yield _read_singles(left[start : start + FILES_AT_ONCE], columns)


def _read_singles(files: Sequence[Path], columns: Sequence[str] | None) -> pa.Table:
    tables = []
    reader = read_singles(files, columns)
    for path in files:
        try:
            tables.append(next(reader))
        except CutRecordError as error:
            if path.exists() or path.is_symlink():  # a link that leads nowhere has not vanished
                raise
            raise _Vanished from error
    # One buffer a column: five hundred tiny ones each take many times the memory of what they hold.
    together = pa.concat_tables(tables).combine_chunks()
    require_values(together, files[0].parent)
    return together


def _compacted_groups(
    folder: Path, columns: Sequence[str] | None, after: str, asked: Set[str] | None
) -> Iterator[pa.Table]:
    """The rows of the compacted file, where there is one, whose keys are greater than ``after``, and of ``asked``."""
    path = folder / COMPACTED_FILE
    wanted = None if asked is None else pa.array(sorted(asked), pa.string())
    if not path.exists():
        return
    last = ""
    for group in row_groups(path, columns):
        keys = group.column("key").to_pylist()
        if any(one >= other for one, other in zip([last, *keys], keys, strict=False)):
            raise RecordError(f"{path}: its rows are not ordered by key; put back the file that `compact` wrote")
        nameless = [key for key in keys if not KEY.fullmatch(key)]
        if nameless:
            raise RecordError(
                f"{path}: found the key {nameless[0]!r}, which no file of a trial can be called; "
                "put back the file that `compact` wrote"
            )
        last = keys[-1] if keys else last
        rows = group.filter(pc.greater(group.column("key"), after)) if after else group
        rows = rows if wanted is None else rows.filter(pc.is_in(rows.column("key"), value_set=wanted))
        if rows.num_rows:
            yield rows
