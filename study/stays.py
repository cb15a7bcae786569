"""Trials in their slots: how far those under way are, and what a trial costs beside its training."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Protocol

from study.tally import UnderWay, under_way_by_cell


class LiveTrial(Protocol):
    """A trial under way; as :class:`study.assignment.TrialAssignment`."""

    @property
    def key(self) -> str: ...
    @property
    def cell(self) -> str: ...


class Stays:
    """Hears of trials that get a slot, report epochs, and leave it.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.epochs: dict[str, int] = {}
        self._with_worker: set[str] = set()
        self._clock = clock
        self._began: dict[str, float] = {}
        self._sharing: dict[str, int] = {}
        self._beside_s = 0.0
        self._ended = 0

    @property
    def overhead_s(self) -> float:
        """Seconds that an ended trial had its slot beside its training, on average."""
        return self._beside_s / self._ended if self._ended else 0.0

    def begin(self, key: str, sharing: int = 1) -> None:
        """A slot is the trial's from now on, and so many trials' in all."""
        self._began[key] = self._clock()
        self._sharing[key] = sharing

    def start(self, key: str) -> None:
        """A worker has it."""
        self._with_worker.add(key)

    def end(self, key: str, trained_s: float) -> None:
        """It gives it back, after so many seconds of training."""
        # A trial that goes on was trained before it had this slot.
        self._beside_s += max(0.0, (self._clock() - self._began[key]) / self._sharing[key] - trained_s)
        self._ended += 1
        self.lose(key)

    def lose(self, key: str) -> None:
        """It lost it, and comes again."""
        self._began.pop(key, None)
        self._sharing.pop(key, None)
        self._with_worker.discard(key)
        self.epochs.pop(key, None)

    def under_way(self, live: Iterable[LiveTrial]) -> dict[str, UnderWay]:
        """Of ``live`` trials, by cell, how many there are, their epochs, and how many wait for a worker."""
        return under_way_by_cell(
            (trial.cell, self.epochs.get(trial.key, 0), trial.key not in self._with_worker) for trial in live
        )
