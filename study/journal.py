"""The journal of a study: one line for every search trial that was handed out, written before it starts.

Records say how trials ended; the journal says which were begun, in which order their cell asked for them and with which
sampled values. Together they are all that a resumed study needs.

Each run writes a journal of its own, under the number of its lease, that begins with all that the one before had: what
a run that lost its lease still writes is read by nobody.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from study.location import is_remote
from study.results import numbered
from study.whole_files import found_files, make_folder, remove_folder, write_whole

LINES_AN_OBJECT = 100
"""An object store cannot append: the last so many lines are an object that is written anew with every one."""


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
    """JSON lines that only grow; an entry is on disk before :meth:`append` returns.

    ``ATTEMPT.jsonl`` holds them; in an object store what came after the run's start is in ``ATTEMPT/NUMBER.jsonl``.

    Args:
        folder: of the journals.
        attempt: number of the lease of the run that writes.
    """

    def __init__(self, folder: Path, attempt: int = 1) -> None:
        self._folder = folder
        self._name = numbered(attempt)
        self._path = folder / f"{self._name}.jsonl"
        self._last_lines: list[bytes] = []
        self._full_objects = 0

    def begin(self) -> None:
        """Take over what earlier runs wrote; to be called before the first :meth:`append`.

        A last line that a crash cut is left behind: its trial never started.

        Raises:
            OSError: the disk does not take it; the earlier journal is as it was.
        """
        lines = [line for _, line in _lines(_newest(self._folder))]
        make_folder(self._folder)
        write_whole(self._path, b"".join(lines))
        remove_folder(self._folder / self._name)
        for name, files in _journals(self._folder).items():
            if name < self._name:
                for path in files:
                    path.unlink(missing_ok=True)

    def append(self, entry: JournalEntry) -> None:
        """Add ``entry`` at the end.

        Raises:
            OSError: the disk does not take it; the journal is as it was, so that it may be tried again.
        """
        line = (json.dumps(asdict(entry), separators=(",", ":")) + "\n").encode()
        if is_remote(self._path):
            self._append_object(line)
        else:
            self._append_line(line)

    def entries(self) -> Iterator[JournalEntry]:
        """Every entry of the last run, and so of all before it, oldest first; a cut last line is left out.

        Raises:
            JournalError: any other line cannot be read.
        """
        for place, line in _lines(_newest(self._folder)):
            try:
                yield JournalEntry(**json.loads(line))
            except (json.JSONDecodeError, UnicodeDecodeError, TypeError) as error:
                raise JournalError(
                    f"{place}: not a journal entry ({error}); mend it, or start in another folder"
                ) from error

    def _append_line(self, line: bytes) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            before = os.fstat(descriptor).st_size
            try:
                _write_whole(descriptor, line)
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, before)
                raise
        finally:
            os.close(descriptor)

    def _append_object(self, line: bytes) -> None:
        lines = [*self._last_lines, line]
        write_whole(self._folder / self._name / f"{self._full_objects:06d}.jsonl", b"".join(lines))
        self._last_lines = lines
        if len(lines) == LINES_AN_OBJECT:
            self._last_lines, self._full_objects = [], self._full_objects + 1


def _journals(folder: Path) -> dict[str, list[Path]]:
    """The files of every journal in ``folder`` by its number, each in order."""
    found: dict[str, list[Path]] = {}
    for file in found_files(folder):
        first = file.path.relative_to(folder).parts[0]
        found.setdefault(first.removesuffix(".jsonl"), []).append(file.path)
    # ATTEMPT.jsonl, which is whole before anything follows it, and then its objects.
    return {
        name: sorted(files, key=lambda path: (path.parent != folder, path.name))
        for name, files in found.items()
        if folder / f"{name}.jsonl" in files
    }


def _newest(folder: Path) -> list[Path]:
    journals = _journals(folder)
    return journals[max(journals)] if journals else []


def _lines(files: list[Path]) -> Iterator[tuple[str, bytes]]:
    """Every whole line with its place, for messages."""
    for path in files:
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[:whole].splitlines(keepends=True), start=1):
            yield f"{path}:{number}", line


def _write_whole(descriptor: int, content: bytes) -> None:
    """Write all of ``content``; a disk that gets full takes a part first, and refuses only the next."""
    while content:
        content = content[os.write(descriptor, content) :]
