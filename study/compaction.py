"""Many record files become one: ``run_study.py compact``, which a crash at any moment and any reader beside it survive.

The new file is whole, checked and on the disk before it takes its name, and only then the files that went into it are
removed. Whoever reads in between finds a trial in both, and counts it once (``study.records``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from study.counted import counted
from study.found_study import require_study
from study.lease import Lease
from study.location import is_remote
from study.record_files import row_groups
from study.records import COMPACTED_FILE, SCHEMA, RecordError, merged, single_files
from study.results import ResultsFolder
from study.whole_files import replacing, stamp

ROW_GROUP_BYTES = 32_000_000
"""How much of a row group is in memory at least when it is written; a reader has a few of that size."""

_DICTIONARY = [
    *(entry.name for entry in SCHEMA if entry.type == pa.string() and entry.name not in ("key", "config_json")),
    *(entry.name for entry in SCHEMA if pa.types.is_integer(entry.type)),
]
"""Columns of few different values. Floats are written bit for bit as they are, never by way of a dictionary."""


@dataclass(frozen=True, kw_only=True)
class Compaction:
    """What a compaction did.

    Attributes:
        path: the compacted file. records: how many trials it holds.
        moved: how many files went into it. left: how many stay, of trials that have a live record too.
    """

    path: Path
    records: int
    moved: int
    left: int

    def describe(self) -> str:
        """In a line."""
        if not self.moved:
            return f"{self.path}: {counted(self.records, 'record')}; nothing to add{self._waiting}"
        held = counted(self.records, "record")
        return f"{self.path}: {held}, {self.moved} of them from files of their own{self._waiting}"

    @property
    def _waiting(self) -> str:
        return f"; {counted(self.left, 'record')} left alone, of trials that are to be tried again" if self.left else ""


def compact(results: Path) -> Compaction:
    """Move the sealed records of the study in ``results`` into ``records/compacted.parquet``; again adds what is new.

    No content changes. Live records stay, and so do those of failed trials whose next try has begun or can begin.

    Raises:
        NoStudyError, StoreAccessError: no study there. ResultsFolderError: a run works in it.
        RecordError: a record cannot be read; nothing is changed then. LeaseLostError: nor where another run has taken
            the folder meanwhile.
        OSError: the disk is full or may not be written; nothing is lost then.
    """
    folder = ResultsFolder(results)
    require_study(results, folder.records.name)
    with Lease(folder, "wait for it, then compact again") as lease:
        return _compact(folder, lease)


def _compact(folder: ResultsFolder, lease: Lease) -> Compaction:
    path = folder.records / COMPACTED_FILE
    _remove_leftovers(path)
    singles = single_files(folder.records)
    # A failed trial that is tried again has two records, and the newer file is the one that counts: keep its age.
    live = set(folder.live_keys())
    moving = [single for single in singles if single.stem not in live]
    left = len(singles) - len(moving)
    if not moving:
        return Compaction(path=path, records=_number_of_records(path), moved=0, left=left)
    stamps = [_stamp(single) for single in moving]
    with replacing(path, durable=True) as temporary:
        keys = _write(merged(row_groups(path) if path.exists() else iter(()), moving), temporary)
        _check(temporary, keys)
        # Who took the folder since, while this machine slept, may have compacted what has ended meanwhile.
        lease.require()
    for single, before in zip(moving, stamps, strict=True):
        if stamp(single) == before:
            single.unlink()
    return Compaction(path=path, records=len(keys), moved=len(moving), left=left)


def _write(tables: Iterator[pa.Table], path: Path) -> list[str]:
    """Write all rows in row groups of about :data:`ROW_GROUP_BYTES`; their keys."""
    keys: list[str] = []
    with pq.ParquetWriter(
        path, SCHEMA, write_page_checksum=True, compression="zstd", use_dictionary=_DICTIONARY
    ) as out:
        for table in _gathered(tables):
            out.write_table(table, row_group_size=table.num_rows)
            keys += table.column("key").to_pylist()
    return keys


def _gathered(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(part.nbytes for part in waiting) >= ROW_GROUP_BYTES:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _check(path: Path, keys: list[str]) -> None:
    """Read all of the new file, checksums included, before anything is removed for it."""
    found = [key for table in row_groups(path) for key in table.column("key").to_pylist()]
    if found != keys:
        raise RecordError(f"{path}: found {len(found)} records after writing {len(keys)}; nothing was removed")


def _stamp(single: Path) -> tuple[object, ...]:
    try:
        return stamp(single)
    except FileNotFoundError as error:  # nobody else removes any, since this one holds the lease
        raise RecordError(f"{single}: a link that leads nowhere; remove it, or bring back what it led to") from error


def _number_of_records(path: Path) -> int:
    return sum(table.num_rows for table in row_groups(path, ["key"])) if path.exists() else 0


def _remove_leftovers(path: Path) -> None:
    """What compactions that were killed had begun to write; none works now, for this one holds the lease."""
    if is_remote(path):  # an object store has no parts of a file
        return
    for entry in os.scandir(path.parent):
        if entry.name.startswith(f".{path.name}.") and entry.name.endswith(".tmp"):
            Path(entry.path).unlink()
