"""What an edit of a study file means for the cells whose trials were begun."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from study.plan.identity import CellIdentity, Run

MOST_LINES = 6
"""Differences that one message tells; the rest is counted."""


@dataclass(frozen=True, kw_only=True)
class BegunCell:
    """What was already done for a cell.

    Attributes:
        asked: search trials that its sampler was asked for.
        confirmed: seed and fold of every confirm trial on record or under way.
        records: how many records of its trials there are.
    """

    asked: int = 0
    confirmed: frozenset[Run] = frozenset()
    records: int = 0


@dataclass(frozen=True, kw_only=True)
class StudyChange:
    """An edit of a study.

    Attributes:
        refused: what would alter trials that were begun, as ``key: was -> is (which cells)``; empty: it can go on.
        added: ids of cells that the study did not have.
        dropped: ids of cells with trials that it has no more.
        amounts: search and confirm trials that are now more or fewer, as ``key: was -> is (which cells)``.
    """

    refused: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()


@dataclass
class _Differences:
    """Lines and the cells in which each was found, in the order of finding."""

    cells: dict[str, list[str]] = field(default_factory=dict)

    def add(self, lines: Iterable[str], cell: str) -> None:
        for line in lines:
            self.cells.setdefault(line, []).append(cell)

    def told(self, total: int) -> tuple[str, ...]:
        """Each line with its cells, of a study of ``total``."""
        return tuple(f"{line}{_which(cells, total)}" for line, cells in self.cells.items())


def study_change(
    was: Mapping[str, CellIdentity],
    now: Mapping[str, CellIdentity],
    begun: Mapping[str, BegunCell],
    earlier: Mapping[str, CellIdentity] | None = None,
) -> StudyChange:
    """Compare two versions of a study, each a mapping of its cells by id.

    Cells in which nothing was begun may change at will. An edit may add cells, or drop some; one that does both at once
    puts cells in the place of others, and is refused as a change of these. Cells that are missing from ``begun`` were
    not begun. ``earlier`` are cells that were dropped before, as they were then: they may come back, but not changed.
    """
    known = {**(earlier or {}), **was}
    refused, amounts = _Differences(), _Differences()
    for name, cell in now.items():
        if name in known and name in begun:
            refused.add(known[name].differences(cell), name)
            refused.add(_taken_away(known[name], cell, begun[name]), name)
        if name in was:
            amounts.add(_amounts(was[name], cell), name)
    added = tuple(name for name in now if name not in was)
    dropped = tuple(name for name in was if name not in now and name in begun)
    new = [now[name] for name in added if name not in known]
    if new:
        for name in dropped:
            refused.add(_replaced(was[name], new), name)
    total = len({*was, *now})
    return StudyChange(refused=refused.told(total), added=added, dropped=dropped, amounts=amounts.told(total))


def in_short(lines: tuple[str, ...]) -> str:
    """The lines as a part of one message."""
    more = len(lines) - MOST_LINES
    told = [*lines[:MOST_LINES], *([f"{more} more {'difference' if more == 1 else 'differences'}"] if more > 0 else [])]
    return "; ".join(told)


def _taken_away(was: CellIdentity, now: CellIdentity, begun: BegunCell) -> list[str]:
    """Trials that were begun and would not be asked for any more."""
    lines = []
    if now.trials < min(was.trials, begun.asked):
        lines.append(f"search.trials: {was.trials} -> {now.trials}, of which {begun.asked} were begun")
    if begun.confirmed & set(was.confirm) - set(now.confirm):
        lines += _confirm(was, now)
    return lines


def _amounts(was: CellIdentity, now: CellIdentity) -> list[str]:
    trials = [f"search.trials: {was.trials} -> {now.trials}"] if was.trials != now.trials else []
    return trials + _confirm(was, now)


def _confirm(was: CellIdentity, now: CellIdentity) -> list[str]:
    return [
        f"confirm.{name}: {_numbers(was.confirm, place)} -> {_numbers(now.confirm, place)}"
        for place, name in enumerate(("seeds", "folds"))
        if {run[place] for run in was.confirm} != {run[place] for run in now.confirm}
    ]


def _numbers(runs: tuple[Run, ...], place: int) -> str:
    return f"[{', '.join(map(str, dict.fromkeys(run[place] for run in runs)))}]"


def _replaced(was: CellIdentity, new: Iterable[CellIdentity]) -> list[str]:
    """How the new cell that is most like it differs from a cell that is gone."""
    nearest = min((was.differences(cell) for cell in new), key=len)
    return nearest or ["its name, and so its trials, would be another"]


def _which(cells: list[str], total: int) -> str:
    if len(cells) == 1:
        return f" (cell {cells[0]})" if total > 1 else ""
    return " (every cell)" if len(cells) == total else f" ({len(cells)} cells)"
