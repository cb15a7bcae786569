"""How far a study is: the view of it that the terminal shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from study.causes import Causes, Trouble
from study.tally import CellGoal, CellTally, UnderWay
from study.time_left import TimeLeft, time_left


@dataclass(frozen=True, kw_only=True)
class CellLine:
    """One cell as the view shows it; ``repeated`` search trials had a configuration that was known already.

    ``running``: trials that a worker has. ``waiting``: that were handed out, and none has yet.
    ``confirm_trials``: that it has; none where its search has ended and nothing can be chosen.
    ``ended``: nothing is left of it; trials that failed may be tried again all the same.
    """

    goal: CellGoal
    searched: int
    repeated: int
    running: int
    pruned: int
    diverged: int
    failed: int
    confirmed: int
    confirm_trials: int
    best: float | None
    ended: bool
    waiting: int = 0

    @property
    def begun(self) -> bool:
        """Whether anything of it was handed out."""
        return self.running > 0 or self.waiting > 0 or self.searched > 0 or self.confirmed > 0


@dataclass(frozen=True, kw_only=True)
class StudyView:
    """A whole study at one moment; ``slots`` are None where they are not known, as from records alone.

    ``waiting``: trials that were handed out, and no worker has yet. ``troubles``: why trials failed or diverged, the
    most frequent cause first. ``at_work``: whether what is running is under way; else it was left unfinished by a run
    that stopped.
    """

    study: str
    cells: tuple[CellLine, ...]
    running: int
    slots: int | None
    ended: int
    total: int
    time_left: TimeLeft | None
    troubles: tuple[Trouble, ...] = ()
    at_work: bool = True
    waiting: int = 0


def study_view(
    study: str,
    goals: Iterable[CellGoal],
    tallies: Mapping[str, CellTally],
    under_way: Mapping[str, UnderWay],
    repeated: Mapping[str, int],
    slots: int | None,
    overhead_s: float = 0.0,
    *,
    at_work: bool = True,
) -> StudyView:
    """Put tallies, running trials and repeated configurations (each by cell id) side by side with the goals.

    Where ``slots`` are not known, the time left is that of as many as run now. None is told of a study at which
    nothing is ``at_work``.
    """
    cells = tuple((goal, tallies[goal.cell]) for goal in goals)
    lines = tuple(
        _line(goal, tally, under_way.get(goal.cell, UnderWay()), repeated.get(goal.cell, 0)) for goal, tally in cells
    )
    running = sum(line.running for line in lines)
    side_by_side = 0 if not at_work else running if slots is None else slots
    return StudyView(
        study=study,
        cells=lines,
        running=running,
        slots=slots,
        ended=sum(line.searched + line.confirmed for line in lines),
        total=sum(line.goal.trials + line.confirm_trials for line in lines),
        time_left=time_left(cells, under_way, repeated, side_by_side, overhead_s),
        troubles=Causes.together(tally.causes for _, tally in cells),
        at_work=at_work,
        waiting=sum(line.waiting for line in lines),
    )


def _line(goal: CellGoal, tally: CellTally, under_way: UnderWay, repeated: int) -> CellLine:
    both = tally.search + tally.confirm
    searched = tally.search.total() + repeated
    confirm_trials = tally.confirm_trials(goal, repeated)
    return CellLine(
        goal=goal,
        searched=searched,
        repeated=repeated,
        running=under_way.trials - under_way.waiting,
        pruned=both["pruned"],
        diverged=both["diverged"],
        failed=both["failed"],
        confirmed=tally.confirm.total(),
        confirm_trials=confirm_trials,
        best=tally.best,
        ended=under_way.trials == 0 and searched >= goal.trials and tally.confirm.total() >= confirm_trials,
        waiting=under_way.waiting,
    )
