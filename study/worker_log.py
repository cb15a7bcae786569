"""What a worker logs while it trains a trial, kept until its next report takes it to the driver.

So the lines of all nodes come to one file, and a node needs no place of its own to write to. What was logged after the
last report of a worker that dies is lost.
"""

from __future__ import annotations

import logging
import os
import socket
from types import TracebackType
from typing import Any

MOST_LINES = 50
"""Lines that one report carries; of more, the number is told."""

LONGEST_LINE = 2000


class WorkerLog(logging.Handler):
    """Collects warnings of all libraries, and what the project's modules say from ``info`` on, in its block."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._lines: list[dict[str, Any]] = []
        self._more = 0
        self._node = f"{socket.gethostname()}:{os.getpid()}"
        self._ours = logging.getLogger("study")
        self._level = self._ours.level

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line; a message that cannot be put together is kept as it is."""
        if len(self._lines) >= MOST_LINES:
            self._more += 1
            return
        try:
            message = self.format(record)
        except Exception:  # noqa: BLE001 - whoever logs wrongly must not end a trial
            message = str(record.msg)
        self._lines.append(self._line(record.levelno, record.created, message[:LONGEST_LINE]))

    def take(self) -> list[dict[str, Any]]:
        """The lines since the last time, oldest first."""
        lines, self._lines = self._lines, []
        if self._more:
            lines.append(self._line(logging.WARNING, lines[-1]["time"], f"and {self._more} more lines"))
            self._more = 0
        return lines

    def _line(self, level: int, time: float, message: str) -> dict[str, Any]:
        return {"level": level, "time": time, "node": self._node, "message": message}

    def __enter__(self) -> WorkerLog:
        self._ours.setLevel(logging.INFO)
        logging.getLogger().addHandler(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logging.getLogger().removeHandler(self)
        self._ours.setLevel(self._level)
