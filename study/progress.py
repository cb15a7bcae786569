"""How far a study is: tallies of ended trials a cell, and the view of it that the terminal shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from bimp.tasks import Direction


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

    def add(self, record: EndedTrial, direction: Direction) -> None:
        """Count one sealed record."""
        self.seconds += record.seconds
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

    def epochs_left(self, goal: CellGoal, repeated: int) -> float:
        """Epochs still to train, were the rest like what has ended; ``repeated`` search trials cost none."""
        searched, confirmed = self.search.total(), self.confirm.total()
        each_search = self.search_epochs / searched if searched else float(goal.max_epochs)
        each_confirm = self.confirm_epochs / confirmed if confirmed else float(goal.max_epochs)
        search_left = max(0, goal.trials - searched - repeated)
        return search_left * each_search + max(0, goal.confirm_trials - confirmed) * each_confirm


@dataclass(frozen=True, kw_only=True)
class CellLine:
    """One cell as the view shows it; ``repeated`` search trials had a configuration that was known already.

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


@dataclass(frozen=True, kw_only=True)
class StudyView:
    """A whole study at one moment; ``seconds_left`` is None while nothing was timed."""

    study: str
    cells: tuple[CellLine, ...]
    running: int
    slots: int | None
    ended: int
    total: int
    seconds_left: float | None


def study_view(
    study: str,
    goals: Iterable[CellGoal],
    tallies: Mapping[str, CellTally],
    running: Mapping[str, int],
    repeated: Mapping[str, int],
    slots: int | None,
) -> StudyView:
    """Put tallies, running trials and repeated configurations (each by cell id) side by side with the goals."""
    goals = tuple(goals)
    lines = tuple(
        _line(goal, tallies[goal.cell], running.get(goal.cell, 0), repeated.get(goal.cell, 0)) for goal in goals
    )
    return StudyView(
        study=study,
        cells=lines,
        running=sum(line.running for line in lines),
        slots=slots,
        ended=sum(line.searched + line.confirmed for line in lines),
        total=sum(goal.trials + goal.confirm_trials for goal in goals),
        seconds_left=_seconds_left(lines, tallies, slots),
    )


def _line(goal: CellGoal, tally: CellTally, running: int, repeated: int) -> CellLine:
    both = tally.search + tally.confirm
    searched = tally.search.total() + repeated
    has_nothing_to_confirm = goal.trials > 0 and not tally.has_choice(goal)
    return CellLine(
        goal=goal,
        searched=searched,
        repeated=repeated,
        running=running,
        pruned=both["pruned"],
        diverged=both["diverged"],
        failed=both["failed"],
        confirmed=tally.confirm.total(),
        best=tally.best,
        ended=running == 0
        and searched >= goal.trials
        and (tally.confirm.total() >= goal.confirm_trials or has_nothing_to_confirm),
    )


def _seconds_left(lines: tuple[CellLine, ...], tallies: Mapping[str, CellTally], slots: int | None) -> float | None:
    timed = [tally for tally in tallies.values() if tally.epochs]
    if not timed or slots is None:
        return None
    overall = sum(tally.seconds for tally in timed) / sum(tally.epochs for tally in timed)
    seconds = 0.0
    for line in lines:
        tally = tallies[line.goal.cell]
        each = tally.seconds / tally.epochs if tally.epochs else overall
        seconds += tally.epochs_left(line.goal, line.repeated) * each
    return seconds / slots
