"""What signals ask of a program: an end in good order, an end at once. :mod:`study.signals` takes them.

While trials run, the first one only asks: trials end after the epoch in which they are, with its checkpoint written.
At any other time, and the second time, the program unwinds from KeyboardInterrupt, for as long as its patience goes.
One more, or more time than that, and it ends where it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum

PATIENCE_S = 3.0
"""For unwinding, while there is little to unwind, or nobody left who would answer."""


class Heard(Enum):
    """What a signal means, by what went before."""

    ASKS = "asks for an end in good order"
    STOPS = "unwinds"
    ENDS = "ends here and now"


class Interruption:
    """What was asked from outside, and what the program says and does at such an end.

    Attributes:
        last_words: the line that tells of it.
        last_acts: what is done at last where nothing is unwound: each is short, and safe at any moment.
        patience_s: how long unwinding may take.
        lost: whether there is nothing left to wait for: then an end in good order would not come.
    """

    def __init__(self) -> None:
        self.last_words = "stopped"
        self.last_acts: list[Callable[[], object]] = []
        self.patience_s = PATIENCE_S
        self.lost: Callable[[], bool] = lambda: False
        self._requested = threading.Event()
        self._lock = threading.RLock()
        self._heeding = False
        self._stops = False
        self._raised = False
        self._undisturbed = 0
        self._deadline: float | None = None

    @property
    def requested(self) -> bool:
        """Whether the study is to end."""
        return self._requested.is_set()

    @property
    def stops(self) -> bool:
        """Whether the program is to end without waiting for trials."""
        return self._stops

    @property
    def unwinds(self) -> bool:
        """Whether the main thread has begun to."""
        return self._raised

    @property
    def overdue(self) -> bool:
        """Whether the end has taken longer than it may."""
        return self._deadline is not None and time.monotonic() > self._deadline

    def request(self) -> None:
        """Ask for the end, as the first signal does while trials run."""
        self._requested.set()

    def wait(self) -> None:
        """Wait until the end is asked for."""
        self._requested.wait()

    def pause(self, seconds: float) -> None:
        """Wait so long, or until the end is asked for.

        Raises:
            KeyboardInterrupt: it is.
        """
        if self._requested.wait(seconds):
            raise KeyboardInterrupt

    def hear(self) -> Heard:
        """Take one signal; says what it means."""
        with self._lock:
            first = not self.requested
            self._requested.set()
            if first and self._heeding:
                return Heard.ASKS
            if self._stops:
                return Heard.ENDS
            self._stops = True
            self._end_within(self.patience_s)
            return Heard.STOPS

    def hurry(self) -> None:
        """Whatever the patience was, there is little of it left."""
        with self._lock:
            self._end_within(PATIENCE_S)

    def raise_if_due(self) -> None:
        """Unwind, once, if the program is to stop; of the main thread.

        Raises:
            KeyboardInterrupt: it is.
        """
        if self._stops and not self._raised and not self._undisturbed:
            self._raised = True
            raise KeyboardInterrupt

    @contextmanager
    def heeding(self) -> Iterator[None]:
        """In this block the first signal only asks: somebody looks at :attr:`requested`."""
        self._heeding = True
        try:
            yield
        finally:
            self._heeding = False

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Nothing is raised in this block, which would leave something half-way, but at its end.

        Where the end was asked for before, the block has the time of :attr:`patience_s` and no more.
        """
        with self._lock:
            self._undisturbed += 1
            if self.requested and self._deadline is None:
                self._end_within(self.patience_s)
        try:
            yield
        finally:
            self._undisturbed -= 1
        self.raise_if_due()

    def _end_within(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        self._deadline = ends if self._deadline is None else min(self._deadline, ends)

    def unwound(self) -> None:
        """Nothing is raised any more: the program is at its end."""
        self._undisturbed += 1
