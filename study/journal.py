"""The journal of a study: one line for every trial that was handed out, written before it starts.

Records say how trials ended; the journal says which were begun, in which order their cell asked for them and
with which sampled values. Together they are all that a resumed study needs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class JournalEntry:
    """A search trial as its cell asked for it.

    Attributes:
        cell: id of the cell.
        number: place in the cell's search, from 0.
        key: the trial's identity; a configuration sampled twice has two entries with one key.
        values: what was sampled, as Optuna holds it.
    """

    cell: str
    number: int
    key: str
    values: dict[str, Any]


class JournalError(ValueError):
    """A journal line, other than a cut last one, that cannot be read; names the file and the line."""


class Journal:
    """An append-only file of JSON lines; an entry is on disk before :meth:`append` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, entry: JournalEntry) -> None:
        """Add ``entry`` at the end.

        Raises:
            OSError: the disk does not take it; the file is as it was, so that it may be tried again.
        """
        line = json.dumps(asdict(entry), separators=(",", ":")) + "\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            before = os.fstat(descriptor).st_size
            try:
                _write_whole(descriptor, line.encode())
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, before)
                raise
        finally:
            os.close(descriptor)

    def repair(self) -> None:
        """Remove a last line that a crash cut, so that the next entry starts on a line of its own."""
        if self._path.exists():
            os.truncate(self._path, self._path.read_bytes().rfind(b"\n") + 1)

    def entries(self) -> Iterator[JournalEntry]:
        """Every entry, oldest first. A last line that was cut by a crash is left out: its trial never started.

        Raises:
            JournalError: any other line cannot be read.
        """
        if not self._path.exists():
            return
        content = self._path.read_bytes()
        whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                yield JournalEntry(**json.loads(line))
            except (json.JSONDecodeError, UnicodeDecodeError, TypeError) as error:
                raise JournalError(
                    f"{self._path}:{number}: not a journal entry ({error}); mend it, or start in another folder"
                ) from error


def _write_whole(descriptor: int, content: bytes) -> None:
    """Write all of ``content``; a disk that gets full takes a part first, and refuses only the next."""
    while content:
        content = content[os.write(descriptor, content) :]
