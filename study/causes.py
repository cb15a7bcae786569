"""Why trials failed or diverged, grouped: a thousand trials rarely have more than a few causes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(?:[.,]\d+)*(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Trouble:
    """Trials of one status with one cause; where they differ in its numbers, these are ``...``."""

    status: str
    cause: str
    trials: int
    cells: int


@dataclass
class Causes:
    """The causes of one cell, counted as its trials end."""

    _counts: dict[tuple[str, str], int] = field(default_factory=dict)
    _told: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, status: str, reason: str | None) -> None:
        """Count one trial."""
        told = _printable(reason or "no cause on record")
        key = (status, _NUMBER.sub("...", told))
        self._counts[key] = self._counts.get(key, 0) + 1
        self._told[key] = told if self._told.get(key, told) == told else key[1]

    @classmethod
    def together(cls, cells: Iterable[Causes]) -> tuple[Trouble, ...]:
        """The troubles of all ``cells``, the most frequent first."""
        trials: dict[tuple[str, str], int] = {}
        told: dict[tuple[str, str], set[str]] = {}
        count_of_cells: dict[tuple[str, str], int] = {}
        for cell in cells:
            for key, count in list(cell._counts.items()):
                trials[key] = trials.get(key, 0) + count
                count_of_cells[key] = count_of_cells.get(key, 0) + 1
                told.setdefault(key, set()).add(cell._told.get(key, key[1]))
        troubles = [
            Trouble(key[0], _one_of(told[key], key[1]), count, count_of_cells[key]) for key, count in trials.items()
        ]
        return tuple(sorted(troubles, key=lambda trouble: (-trouble.trials, trouble.status, trouble.cause)))


def by_status(troubles: Iterable[Trouble]) -> Mapping[str, int]:
    """Trials by their status."""
    counts: dict[str, int] = {}
    for trouble in troubles:
        counts[trouble.status] = counts.get(trouble.status, 0) + trouble.trials
    return counts


def _one_of(told: set[str], pattern: str) -> str:
    return next(iter(told)) if len(told) == 1 else pattern


def _printable(text: str) -> str:
    """On one line, and without what a terminal would take for a command."""
    return "".join(character if character.isprintable() else " " for character in text)
