"""Ctrl-C and SIGTERM while trials run: the first asks for an end in good order, the second ends at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Takes both signals for the length of its block.

    The first one is only noted: trials end after the epoch in which they are, with its checkpoint written. A second
    one raises KeyboardInterrupt where the program is. Where Ctrl-C is ignored, as by a shell's background job, it
    stays so. In a thread other than the main one, signals are left alone.
    """

    def __init__(self) -> None:
        self._requested = threading.Event()
        self._before: dict[signal.Signals, Any] = {}

    @property
    def requested(self) -> bool:
        """Whether the study is to end."""
        return self._requested.is_set()

    def request(self) -> None:
        """Ask for the end, as the first signal does."""
        self._requested.set()

    def pause(self, seconds: float) -> None:
        """Wait so long, or until the end is asked for.

        Raises:
            KeyboardInterrupt: it is.
        """
        if self._requested.wait(seconds):
            raise KeyboardInterrupt

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                before = signal.getsignal(number)
                if before is not signal.SIG_IGN:
                    self._before[number] = before
                    signal.signal(number, self._heed)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _heed(self, number: int, frame: FrameType | None) -> None:
        if self._requested.is_set():
            raise KeyboardInterrupt
        self._requested.set()
