"""The log of a study: a JSON object a line, of the driver and, by what they report, of the workers (docs/cluster.md).

It is for finding out what happened when; nothing is ever read from it. A line that cannot be written is lost, and
hurts no trial.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener, RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from study.tracking.address import masked_addresses

BYTES_A_FILE, OLDER_FILES = 10 * 2**20, 3
"""A log that has grown so large becomes ``NAME.1``, and that ``NAME.2``; the oldest goes."""

BYTES_A_PART, PARTS_ON_DISK = 2 * 2**20, 20
"""Of a log in parts: a part that has grown so large is left alone from then on, and so many stay on this machine."""

LONGEST_MESSAGE = 8000
_LINES_WAITING = 10_000
_FIELDS = ("trial", "cell", "phase", "node")
_OURS = "study"


def about(event: str, *, trial: str, cell: str, phase: str) -> dict[str, Any]:
    """What a line about a trial says beside its message: ``logger.info(..., extra=about(...))``."""
    return {"event": event, "trial": trial, "cell": cell, "phase": phase}


class AnyTrial(Protocol):
    """A trial, as it is planned, handed out or on record."""

    @property
    def key(self) -> str: ...

    @property
    def cell(self) -> str: ...

    @property
    def phase(self) -> str: ...


def log_trial(logger: logging.Logger, event: str, trial: AnyTrial, text: str, level: int = logging.INFO) -> None:
    """Log ``text`` about a trial, whose name begins the line."""
    told = about(event, trial=trial.key, cell=trial.cell, phase=trial.phase)
    logger.log(level, "trial %s (%s, %s): %s", trial.key, trial.cell, trial.phase, text, extra=told)


class JsonLine(logging.Formatter):
    """A record of Python's logging as one line of JSON, secrets masked.

    It has time, level, event and message, and trial, cell, phase and node where they are known.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        fields = {name: getattr(record, name, None) for name in _FIELDS}
        message = masked_addresses(super().format(record))
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", "note"),
            **{name: value for name, value in fields.items() if value is not None},
            "message": message if len(message) <= LONGEST_MESSAGE else message[:LONGEST_MESSAGE] + " ...",
        }
        return json.dumps(line, ensure_ascii=False)


class StudyLog:
    """Takes what the project's modules log, from ``info`` on, into a file; warnings go to the screen as well.

    Lines are written by a thread of their own, so that a slow disk makes nobody wait. For the length of its block.

    Args:
        path: of the file, on this machine.
        in_parts: ``path`` is a folder instead, of numbered files: what one holds never moves to another.
    """

    def __init__(self, path: Path, *, in_parts: bool = False) -> None:
        self._path = path
        self._in_parts = in_parts
        self._logger = logging.getLogger(_OURS)
        self._level = self._logger.level
        self._screen = _Screen(logging.WARNING)
        self._file = _Parts(path) if in_parts else _File(path, BYTES_A_FILE)
        self._file.setFormatter(JsonLine())
        self._queue = _Queue(queue.Queue(_LINES_WAITING))
        self._listener = QueueListener(self._queue.queue, self._file)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that there are now on this machine, the oldest lines first."""
        if self._in_parts:
            return tuple(sorted(self._path.glob("*.jsonl")))
        older = [self._path.with_name(f"{self._path.name}.{number}") for number in range(OLDER_FILES, 0, -1)]
        return tuple(path for path in (*older, self._path) if path.exists())

    @property
    def lost(self) -> int:
        """Lines that could not be written."""
        return self._file.lost + self._queue.lost

    def __enter__(self) -> StudyLog:
        self._logger.setLevel(logging.INFO)
        self._logger.addHandler(self._screen)
        self._logger.addHandler(self._queue)
        self._listener.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._logger.removeHandler(self._queue)
        self._listener.stop()
        self._file.close()
        if self.lost:
            self._logger.warning("%s lacks %d lines that could not be written", self._path, self.lost)
        self._logger.removeHandler(self._screen)
        self._logger.setLevel(self._level)


def relay(lines: Iterable[Mapping[str, Any]], *, trial: str, cell: str, phase: str) -> None:
    """Log what a worker has logged about a trial, as :class:`study.worker_log.WorkerLog` gave it."""
    for line in lines:
        record = logging.LogRecord(f"{_OURS}.worker", line["level"], "", 0, line["message"], None, None)
        record.created = line["time"]
        record.__dict__.update(about("worker", trial=trial, cell=cell, phase=phase), node=line["node"])
        logging.getLogger(record.name).handle(record)


class _Screen(logging.Handler):
    """Warnings of the driver's own, bare, wherever standard error goes at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "node", None) is None:
            sys.stderr.write(f"{self.format(record)}\n")


class _File(RotatingFileHandler):
    """Opens the file anew after a refusal: what its stream still holds of a line must not come a second time."""

    lost = 0

    def __init__(self, path: Path, most_bytes: int) -> None:
        super().__init__(path, maxBytes=most_bytes, backupCount=OLDER_FILES, delay=True, encoding="utf-8")

    def emit(self, record: logging.LogRecord) -> None:
        lost = self.lost
        super().emit(record)
        if self.lost > lost:
            self.close()

    def _open(self) -> Any:
        stream = super()._open()
        if self.lost and self._is_cut():
            stream.write("\n")
        return stream

    def _is_cut(self) -> bool:
        """Whether a disk that was full took a part of the last line."""
        path = Path(self.baseFilename)
        if not path.is_file() or path.stat().st_size == 0:
            return False
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"

    def close(self) -> None:
        with suppress(OSError):
            super().close()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's own name
        self.lost += 1


class _Parts(_File):
    """Goes on in a next file where the other renames."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 1
        super().__init__(self._part(1), BYTES_A_PART)

    def _part(self, number: int) -> Path:
        return self._folder / f"{number:04d}.jsonl"

    def doRollover(self) -> None:  # noqa: N802 - logging's own name
        if self.stream is not None:
            self.stream.close()
        self.stream = self._open_next()
        self._part(self._number - PARTS_ON_DISK).unlink(missing_ok=True)

    def _open_next(self) -> Any:
        self._number += 1
        self.baseFilename = str(self._part(self._number))
        return self._open()


class _Queue(QueueHandler):
    lost = 0

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's own name
        self.lost += 1
