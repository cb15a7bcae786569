"""One record file: written so that a crash leaves the old or the new one, read with whatever is wrong with it named."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from study.location import is_remote
from study.record_values import wrong_value
from study.record_versions import OLDEST_READ, as_of_now, columns_in_file, schema_of
from study.trial_record import SCHEMA, SCHEMA_VERSION, EpochRecord, TrialRecord
from study.whole_files import make_folder, read_all, write_whole

COMPACTED_FILE = "compacted.parquet"
"""In a folder of records: the file that holds many of them, ordered by key. Any other ``KEY.parquet`` holds one."""

RECORD_FILE = "record_file"
"""A column that may be asked for beside those of the schema: the name of the file in which the row lies."""

KEY = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_-]*")
"""What a trial's key is made of: files of its name are looked for in several folders, and in no other."""

_VERSION_KEY = b"bimp_record_schema"

_NO_FILE = (None, errno.ENOENT, errno.EISDIR, errno.ELOOP)
"""What is said of a name without a file behind it, and, without a number, by Arrow of a file that is damaged."""


class RecordError(ValueError):
    """A record file that cannot be read as one: names the file, what was found and what was expected."""


class CutRecordError(RecordError):
    """A file that is cut short, damaged or no Parquet at all, has a value that no record has, or is another trial's."""


def write_record(record: TrialRecord, path: Path) -> None:
    """Write ``record`` to ``path`` so that a reader sees the old file or the new one, never a part."""
    # Not asdict, whose deep copy of a thousand epochs takes longer than the rest of writing them.
    row = {**vars(record), "epochs": [vars(epoch) for epoch in record.epochs]}
    table = pa.Table.from_pylist([row], schema=SCHEMA)
    content = pa.BufferOutputStream()
    pq.write_table(table, content, write_page_checksum=True)
    make_folder(path.parent)
    write_whole(path, content.getvalue().to_pybytes())


def read_record(path: Path) -> TrialRecord:
    """The trial in ``path``.

    Raises:
        RecordError: as :func:`read_table`, or it does not hold one trial.
    """
    rows = read_table(path).to_pylist()
    if len(rows) != 1:
        raise CutRecordError(f"{path}: found {len(rows)} trials, expected one; {_mend(path)}")
    return record_of(rows[0])


def record_of(row: dict[str, Any]) -> TrialRecord:
    """The record whose columns are the items of ``row``."""
    epochs = tuple(EpochRecord(**epoch) for epoch in row["epochs"])
    return TrialRecord(**{**row, "gated_layers": tuple(row["gated_layers"]), "epochs": epochs})


def read_table(path: Path) -> pa.Table:
    """The rows of a record file as an Arrow table of :data:`SCHEMA`.

    Raises:
        RecordError: not a Parquet file, cut short, not of this project, of a schema version that is not read, or with a
            value that no record has.
    """
    (content,) = read_all([path])
    (table,) = row_groups(path, content=content)
    return table


def read_singles(paths: Sequence[Path], columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The one row of each ``KEY.parquet``: its ``key`` and the given ``columns``, all of them if None.

    Whether the values can be those of a record is for :func:`require_values` to say, of many rows at once.

    Raises:
        RecordError: as :func:`read_table`, or one is not the record of the trial KEY.
    """
    for path, content in zip(paths, read_all(paths), strict=True):
        if not KEY.fullmatch(path.stem):
            raise CutRecordError(f"{path}: its name is not the key of a trial; move foreign files out of the folder")
        (table,) = row_groups(path, columns, content=content, with_checked_values=False)
        if table.column("key").to_pylist() != [path.stem]:
            raise CutRecordError(f"{path}: not the record of trial {path.stem}; move foreign files out of the folder")
        yield table


def require_values(table: pa.Table, folder: Path) -> None:
    """Refuse rows of :func:`read_singles` with a value that no record has; ``folder`` has their files.

    Raises:
        RecordError: there is one; names its file.
    """
    wrong = wrong_value(table)
    if wrong is not None:
        raise _wrong_record(folder / f"{wrong[0]}.parquet", *wrong)


def row_groups(
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    content: bytes | Exception | None = None,
    with_checked_values: bool = True,
) -> Iterator[pa.Table]:
    """The rows of a record file, a row group at a time or all at once, with checksums verified.

    Args:
        path: the file. Once the first table was given, it may be replaced or removed: the rest is still that of before.
        columns: of :data:`SCHEMA` or :data:`RECORD_FILE`; a part of the epochs may be named alone, as
            ``epochs.list.element.epoch``. ``key`` is always read. None: all columns of the schema.
        content: of the file, where it was read already, or why it could not be; all rows then come in one table, also
            where there is none. None: it is opened here.
        with_checked_values: False: :func:`require_values` is to look at them, together with those of other files.

    Raises:
        RecordError: as :func:`read_table`.
    """
    chosen = None if columns is None else [name for name in dict.fromkeys(("key", *columns)) if name != RECORD_FILE]
    names_file = columns is not None and RECORD_FILE in columns
    with _named_errors(path), _opened(path, content) as file:
        version = _version_of(path, file.schema_arrow)
        in_file = columns_in_file(version, chosen)
        at_once = content is not None or file.num_row_groups == 0
        groups = [None] if at_once else range(file.num_row_groups)
        for group in groups:
            read = (
                file.read(columns=in_file, use_threads=False)
                if group is None
                else file.read_row_group(group, columns=in_file, use_threads=False)
            )
            read.validate(full=True)  # the texts' encoding too, which nobody looks at before they are used
            # What an older version lacks is read from its configuration, which must be checked before.
            wrong = wrong_value(read) if with_checked_values or version != SCHEMA_VERSION else None
            if wrong is not None:
                raise _wrong_record(path, *wrong)
            table = as_of_now(read, version, chosen)
            yield table.append_column(RECORD_FILE, pa.array([path.name] * table.num_rows)) if names_file else table


@contextmanager
def _opened(path: Path, content: bytes | Exception | None) -> Iterator[pq.ParquetFile]:
    if isinstance(content, Exception):
        raise content
    with ExitStack() as opened:
        source: Any = path
        if content is not None:  # a study may have a hundred thousand small files: each is read with one call
            source = pa.BufferReader(content)
        elif is_remote(path):
            source = opened.enter_context(path.open("rb"))
        yield opened.enter_context(pq.ParquetFile(source, page_checksum_verification=True))


def _version_of(path: Path, schema: pa.Schema) -> int:
    """The schema version of a file whose columns are those of its version.

    Raises:
        RecordError: they are not, or nobody reads that version.
    """
    found = (schema.metadata or {}).get(_VERSION_KEY, b"none").decode(errors="replace")
    readable = {str(version): version for version in range(OLDEST_READ, SCHEMA_VERSION + 1)}
    if found not in readable:
        mend = (
            "no record of this project: move it out of the folder"
            if found == "none"
            else "read it with the version of this project that wrote it, or run the study in a new folder"
        )
        raise RecordError(f"{path}: found record schema {found}, expected {' or '.join(readable)}; {mend}")
    if not schema.equals(schema_of(readable[found])):
        raise RecordError(f"{path}: its columns are not those of record schema {found}; {_mend(path)}")
    return readable[found]


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_FILE:
            mend = "once it can be, the same command goes on"
            raise CutRecordError(f"{path}: cannot be read ({error}); {mend}") from error
        raise CutRecordError(f"{path}: not a readable Parquet file ({error}); {_mend(path)}") from error


def _wrong_record(path: Path, key: str, trouble: str) -> CutRecordError:
    return CutRecordError(f"{path}: trial {key}: {trouble}; {_mend(path)}")


def _mend(path: Path) -> str:
    if path.name == COMPACTED_FILE:
        return "put a copy of it back, or remove it to train its trials again"
    return "remove it, and run the study again"
