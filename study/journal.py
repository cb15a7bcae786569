"""The journal of a study: one line for every search trial that was handed out, written before it starts.

Records say how trials ended; the journal says which were begun, in which order their cell asked for them and with which
sampled values. Together they are all that a resumed study needs.

Each run writes a journal of its own, under the number of its lease, that begins with all that the one before had: what
a run that lost its lease still writes is read by nobody. Files of other names are nobody's journal, and stay. What
versions before leases wrote, ``journal.jsonl`` beside the folder, counts as the journal of a run before all others.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from study.journal_entry import JournalEntry, JournalError, WrittenEntry, read_entry
from study.location import is_remote
from study.results import numbered
from study.whole_files import found_files, make_folder, remove_folder, write_whole

__all__ = ["Journal", "JournalEntry", "JournalError", "WrittenEntry", "newest_journal"]

LINES_AN_OBJECT = 100
"""An object store cannot append: the last so many lines are an object that is written anew with every one."""


_JOURNAL = re.compile(r"(?P<number>[0-9]{6,})\.jsonl")
_OBJECT = re.compile(r"(?P<number>[0-9]{6,})/[0-9]{6,}\.jsonl")


class Journal:
    """JSON lines that only grow; an entry is on disk before :meth:`append` returns.

    ``ATTEMPT.jsonl`` holds them; in an object store what came after the run's start is in ``ATTEMPT/NUMBER.jsonl``.

    Args:
        folder: of the journals.
        attempt: number of the lease of the run that writes.
    """

    def __init__(self, folder: Path, attempt: int = 1) -> None:
        self._folder = folder
        self._number = attempt
        self._name = numbered(attempt)
        self._path = folder / f"{self._name}.jsonl"
        self._size = 0
        self._last_lines: list[bytes] = []
        self._full_objects = 0

    def begin(self) -> None:
        """Take over what earlier runs wrote; to be called before the first :meth:`append`.

        A last line that a crash cut is left behind: its trial never started.

        Raises:
            JournalError: a line of theirs cannot be read.
            OSError: the disk does not take it; in either case the earlier journal is as it was.
        """
        lines = list(_lines(self._folder))
        for _ in _read(lines):
            pass
        make_folder(self._folder)
        content = b"".join(line for _, line in lines)
        write_whole(self._path, content)
        self._size = len(content)
        remove_folder(self._folder / self._name)
        for number, files in _journals(self._folder).items():
            if number < self._number:
                for path in files:
                    path.unlink(missing_ok=True)

    def append(self, entry: JournalEntry) -> None:
        """Add ``entry`` at the end.

        Raises:
            OSError: the disk does not take it, or not all of it; it may be tried again.
        """
        if is_remote(self._path):
            self._append_object(entry.line())
        else:
            self._append_line(entry.line())

    def entries(self) -> Iterator[JournalEntry]:
        """Every entry of the last run, and so of all before it, oldest first; a cut last line is left out.

        Raises:
            JournalError: any other line cannot be read, or is not the next one of its cell.
        """
        for written in self.written_entries():
            yield written.entry

    def written_entries(self) -> Iterator[WrittenEntry]:
        """As :meth:`entries`, each with the place where it stands."""
        yield from _read(_lines(self._folder))

    def _append_line(self, line: bytes) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            # What a try that was refused has left: nobody knows then how much of it came to the disk.
            if os.fstat(descriptor).st_size > self._size:
                os.ftruncate(descriptor, self._size)
            _write_whole(descriptor, line)
            os.fsync(descriptor)
            self._size += len(line)
        finally:
            os.close(descriptor)

    def _append_object(self, line: bytes) -> None:
        lines = [*self._last_lines, line]
        write_whole(self._folder / self._name / f"{self._full_objects:06d}.jsonl", b"".join(lines))
        self._last_lines = lines
        if len(lines) == LINES_AN_OBJECT:
            self._last_lines, self._full_objects = [], self._full_objects + 1


def _journals(folder: Path) -> dict[int, list[Path]]:
    """The files of every journal in ``folder`` by its number, each in order."""
    begun: dict[int, list[Path]] = {}
    objects: dict[int, list[Path]] = {}
    for file in found_files(folder):
        name = file.path.relative_to(folder).as_posix()
        for kind, files in ((_JOURNAL, begun), (_OBJECT, objects)):
            if match := kind.fullmatch(name):
                files.setdefault(int(match["number"]), []).append(file.path)
    if not is_remote(folder) and _before_leases(folder).is_file():
        begun[0] = [_before_leases(folder)]
    # ATTEMPT.jsonl is whole before anything follows it; objects without it are of a run that never began.
    return {number: [*files, *objects.get(number, ())] for number, files in begun.items()}


def _before_leases(folder: Path) -> Path:
    """The one journal of a study that was run before runs had numbers, beside ``folder``."""
    return folder.with_name(f"{folder.name}.jsonl")


def newest_journal(folder: Path) -> int:
    """The number of the newest journal in ``folder``, which is that of its run's lease; 0 if there is none."""
    return max(_journals(folder), default=0)


def _newest(folder: Path) -> list[Path]:
    journals = _journals(folder)
    return journals[max(journals)] if journals else []


def _contents(folder: Path) -> list[tuple[Path, bytes]]:
    """The files of the newest journal; a run that begins while they are read puts its own in their place."""
    while True:
        files = _newest(folder)
        try:
            return [(path, path.read_bytes()) for path in files]
        except FileNotFoundError:
            if _newest(folder) == files:
                raise


def _lines(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every whole line of the newest journal with its place, for messages."""
    for path, content in _contents(folder):
        whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[:whole].splitlines(keepends=True), start=1):
            yield f"{path}:{number}", line


def _read(lines: Iterable[tuple[str, bytes]]) -> Iterator[WrittenEntry]:
    """The entries, of which each cell's are numbered from 0 without a gap."""
    asked: Counter[str] = Counter()
    for place, line in lines:
        written = read_entry(place, line)
        cell, number = written.entry.cell, written.entry.number
        if number != asked[cell]:
            missing = "put it right, or what is missing before it"
            twice = "put it right, or remove it if it stands there twice"
            trouble = f"number: found {number}, expected {asked[cell]}, the next of cell {cell}"
            raise JournalError(place, trouble, missing if number > asked[cell] else twice)
        asked[cell] += 1
        yield written


def _write_whole(descriptor: int, content: bytes) -> None:
    """Write all of ``content``; a disk that gets full takes a part first, and refuses only the next."""
    while content:
        content = content[os.write(descriptor, content) :]
