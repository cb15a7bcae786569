"""How far a study is: tallies of ended trials a cell, and the view of it that the terminal shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from bimp.tasks import Direction
from study.causes import Causes, Trouble
from study.time_left import TimeLeft, UnderWay, time_left


@dataclass(frozen=True, kw_only=True)
class CellGoal:
    """What a cell is to do: search trials, confirm trials, epochs of a whole trial.

    ``last_rung``: epochs after which a pruned trial may be chosen all the same; None without rungs.
    """

    cell: str
    metric: str
    direction: Direction
    trials: int
    confirm_trials: int
    max_epochs: int
    last_rung: int | None = None


class EndedTrial(Protocol):
    """What a tally needs of a sealed record; as in :class:`study.records.TrialRecord`."""

    @property
    def phase(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def seconds(self) -> float: ...
    @property
    def val_metric(self) -> float | None: ...
    @property
    def num_epochs(self) -> int: ...


@dataclass
class CellTally:
    """What of a cell's work has ended, summed as records come in."""

    search: Counter[str] = field(default_factory=Counter)
    confirm: Counter[str] = field(default_factory=Counter)
    search_epochs: int = 0
    confirm_epochs: int = 0
    seconds: float = 0.0
    best: float | None = None
    furthest_pruned: int = 0
    causes: Causes = field(default_factory=Causes)

    def add(self, record: EndedTrial, direction: Direction) -> None:
        """Count one sealed record."""
        self.seconds += record.seconds
        if record.status in ("failed", "diverged"):
            self.causes.add(record.status, record.reason)
        if record.phase == "confirm":
            self.confirm[record.status] += 1
            self.confirm_epochs += record.num_epochs
            return
        self.search[record.status] += 1
        self.search_epochs += record.num_epochs
        if record.status == "pruned":
            self.furthest_pruned = max(self.furthest_pruned, record.num_epochs)
        if record.status in ("finished", "pruned") and record.val_metric is not None:
            better = min if direction == "min" else max
            self.best = record.val_metric if self.best is None else better(self.best, record.val_metric)

    def has_choice(self, goal: CellGoal) -> bool:
        """Whether a search trial went all the way, so that there is a configuration to confirm."""
        reached = goal.last_rung is not None and self.furthest_pruned >= goal.last_rung
        return reached or self.search["finished"] > 0

    @property
    def epochs(self) -> int:
        return self.search_epochs + self.confirm_epochs


@dataclass(frozen=True, kw_only=True)
class CellLine:
    """One cell as the view shows it; ``repeated`` search trials had a configuration that was known already.

    ``running``: trials that a worker has. ``waiting``: that were handed out, and none has yet.
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
        total=sum(goal.trials + goal.confirm_trials for goal, _ in cells),
        time_left=time_left(cells, under_way, repeated, side_by_side, overhead_s),
        troubles=Causes.together(tally.causes for _, tally in cells),
        at_work=at_work,
        waiting=sum(line.waiting for line in lines),
    )


def _line(goal: CellGoal, tally: CellTally, under_way: UnderWay, repeated: int) -> CellLine:
    both = tally.search + tally.confirm
    searched = tally.search.total() + repeated
    has_nothing_to_confirm = goal.trials > 0 and not tally.has_choice(goal)
    return CellLine(
        goal=goal,
        searched=searched,
        repeated=repeated,
        running=under_way.trials - under_way.waiting,
        pruned=both["pruned"],
        diverged=both["diverged"],
        failed=both["failed"],
        confirmed=tally.confirm.total(),
        best=tally.best,
        ended=under_way.trials == 0
        and searched >= goal.trials
        and (tally.confirm.total() >= goal.confirm_trials or has_nothing_to_confirm),
        waiting=under_way.waiting,
    )
