"""Time several things in turns, so that whatever else the machine does falls on all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

WARM_UP = 2
"""Turns that are not counted: first calls take memory and choose kernels."""


@dataclass(frozen=True)
class Timings:
    """Seconds of each turn: of the process's CPU time, and by the clock."""

    cpu: tuple[float, ...]
    wall: tuple[float, ...]

    def describe(self) -> str:
        """Medians in milliseconds, ``CPU (wall)``."""
        return f"{milliseconds(median(self.cpu))} ({milliseconds(median(self.wall))})"

    @property
    def wall_median(self) -> float:
        """Median by the clock."""
        return median(self.wall)

    def over(self, steps: int) -> Timings:
        """Of one of the ``steps`` that each turn took."""
        return Timings(tuple(value / steps for value in self.cpu), tuple(value / steps for value in self.wall))


@dataclass(frozen=True)
class Ratio:
    """Median and quartiles of a quotient over the turns."""

    median: float
    lower: float
    upper: float

    @classmethod
    def between(cls, numerator: Sequence[float], denominator: Sequence[float]) -> Ratio:
        """Quotients turn by turn, which a slow spell of the machine changes least.

        Raises:
            ValueError: not as many turns of the one as of the other, or fewer than two.
        """
        quotients = [above / below for above, below in zip(numerator, denominator, strict=True)]
        if len(quotients) < 2:
            raise ValueError(f"ratio: found {len(quotients)} turns, expected 2 or more")
        lower, _, upper = quantiles(quotients, n=4, method="inclusive")
        return cls(median(quotients), lower, upper)

    def describe(self) -> str:
        """``median (lower to upper quartile)``."""
        return f"{self.median:.2f} ({self.lower:.2f} to {self.upper:.2f})"


def interleave(contenders: Mapping[str, Callable[[int], object]], turns: int) -> dict[str, Timings]:
    """Run every contender once a turn and time each run.

    Args:
        contenders: called with the number of the turn, from 0; warm-up turns count on from ``turns``.
        turns: turns that are timed. Each begins with another contender, so that none always follows the same one.
    """
    names = list(contenders)
    for turn in range(turns, turns + WARM_UP):
        for name in names:
            contenders[name](turn)
    cpu: dict[str, list[float]] = {name: [] for name in names}
    wall: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(turns):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            wall_start, cpu_start = time.perf_counter(), time.process_time()
            contenders[name](turn)
            cpu[name].append(time.process_time() - cpu_start)
            wall[name].append(time.perf_counter() - wall_start)
    return {name: Timings(tuple(cpu[name]), tuple(wall[name])) for name in names}


def milliseconds(seconds: float) -> str:
    """Seconds as milliseconds with three digits or more."""
    value = 1000 * seconds
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"
