"""How long a study will take still, judged by the trials of it that have ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from study.tally import CellGoal, CellTally, UnderWay


@dataclass(frozen=True, kw_only=True)
class TimeLeft:
    """An estimate, and what it is made from.

    Attributes:
        seconds: until the last trial ends, if the slots stay as many as now.
        ended: trials by whose epochs and seconds it is judged.
        borrowed: cells with work left of which none has ended: they are judged by the others.
    """

    seconds: float
    ended: int
    borrowed: int


@dataclass(frozen=True)
class _Known:
    """What the ended trials of the whole study tell of a cell that has none."""

    seconds_an_epoch: float
    search_share: float
    confirm_share: float


def time_left(
    cells: Iterable[tuple[CellGoal, CellTally]],
    under_way: Mapping[str, UnderWay],
    repeated: Mapping[str, int],
    slots: int,
    overhead_s: float = 0.0,
) -> TimeLeft | None:
    """The estimate; None while no trial has ended.

    Each cell's trials that are left are taken to last as long as its ended ones on average, search and confirm trials
    by themselves, epochs that running trials have already left out. That work is spread over the slots, but ends no
    sooner than the longest chain of trials that must follow each other: a search trial, then a confirm trial, or as
    many as share a slot.

    Args:
        cells: what each is to do, and what of it has ended.
        under_way: what runs, by cell.
        repeated: search trials, by cell, that need no training.
        slots: trials side by side.
        overhead_s: seconds that a trial takes beside its training.
    """
    cells = tuple(cells)
    known = _known([pair for pair in cells if pair[1].epochs])
    if known is None or slots < 1:
        return None
    work, longest, borrowed = 0.0, 0.0, 0
    for goal, tally in cells:
        seconds, chain = _of_cell(
            goal, tally, known, under_way.get(goal.cell, UnderWay()), repeated.get(goal.cell, 0), overhead_s
        )
        work += seconds
        longest = max(longest, chain)
        borrowed += seconds > 0 and not tally.epochs
    ended = sum(tally.search.total() + tally.confirm.total() for _, tally in cells)
    return TimeLeft(seconds=max(work / slots, longest), ended=ended, borrowed=borrowed)


def _known(cells: list[tuple[CellGoal, CellTally]]) -> _Known | None:
    epochs = sum(tally.epochs for _, tally in cells)
    if not epochs:
        return None
    search = sum(goal.max_epochs * tally.search.total() for goal, tally in cells)
    confirm = sum(goal.max_epochs * tally.confirm.total() for goal, tally in cells)
    return _Known(
        seconds_an_epoch=sum(tally.seconds for _, tally in cells) / epochs,
        search_share=sum(tally.search_epochs for _, tally in cells) / search if search else 1.0,
        confirm_share=sum(tally.confirm_epochs for _, tally in cells) / confirm if confirm else 1.0,
    )


def _of_cell(
    goal: CellGoal, tally: CellTally, known: _Known, running: UnderWay, repeated: int, overhead_s: float
) -> tuple[float, float]:
    """Seconds of work left, and of its longest chain."""
    searched, confirmed = tally.search.total(), tally.confirm.total()
    trained = goal.trials if goal.trained is None else goal.trained
    search_left = max(0, min(goal.trials - repeated, trained) - searched)
    confirm_left = max(0, tally.confirm_trials(goal, repeated) - confirmed)
    search = tally.search_epochs / searched if searched else known.search_share * goal.max_epochs
    confirm = tally.confirm_epochs / confirmed if confirmed else known.confirm_share * goal.max_epochs
    each = tally.seconds / tally.epochs if tally.epochs else known.seconds_an_epoch
    left = search_left + confirm_left
    epochs = max(0.0, search_left * search + confirm_left * confirm - running.epochs)
    together = min(confirm_left, goal.together)
    chain = (search if search_left else 0.0) + together * confirm
    first = search_left or confirm_left
    if running.trials and first <= running.trials:
        chain = max(0.0, chain - (1 if search_left else together) * running.epochs / running.trials)
    return epochs * each + left * overhead_s, chain * each
