"""What PyTorch Geometric's readers print of their progress: kept out of a command's own lines."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import TextIO

_log = logging.getLogger(__name__)

_TOLD = "Downloading "
"""How a line begins that is shown all the same: it says why it takes long, and from where."""


@contextmanager
def readers_logged() -> Iterator[None]:
    """In this block lines on standard error go to the log, at INFO; of a bar of progress its last state alone.

    Errors are exceptions, and pass. The block belongs to the whole process: use it where one thread prints.
    """
    with redirect_stderr(_Lines(sys.stderr)):
        yield


class _Lines(io.TextIOBase):
    def __init__(self, screen: TextIO) -> None:
        self._screen = screen
        self._begun = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, begun = (self._begun + text).split("\n")
        for line in lines:
            shown = line.rpartition("\r")[2].strip()
            if shown.startswith(_TOLD):
                self._screen.write(f"{shown}\n")
            elif shown:
                _log.info("%s", shown)
        self._begun = begun.rpartition("\r")[2]
        return len(text)
