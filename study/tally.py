"""What each cell is to do, and what of it has ended or runs now: counted as trials come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from bimp.tasks import Direction
from study.causes import Causes


@dataclass(frozen=True, kw_only=True)
class CellGoal:
    """What a cell is to do: search trials, confirm trials, epochs of a whole trial.

    ``last_rung``: epochs after which a pruned trial may be chosen all the same; None without rungs.
    ``together``: confirm trials that share a slot, each with an equal part of its seconds.
    ``trained``: the most search trials that train, where there are fewer configurations than trials; None: all may.
    """

    cell: str
    metric: str
    direction: Direction
    trials: int
    confirm_trials: int
    max_epochs: int
    last_rung: int | None = None
    together: int = 1
    trained: int | None = None


class CountedTrial(Protocol):
    """What a tally needs of a sealed record; as in :class:`study.ended_trials.EndedTrial`."""

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
    """What of a cell's work has ended, summed as records come in.

    ``best``: the best validation metric of the search trials that may be chosen.
    """

    search: Counter[str] = field(default_factory=Counter)
    confirm: Counter[str] = field(default_factory=Counter)
    search_epochs: int = 0
    confirm_epochs: int = 0
    seconds: float = 0.0
    best: float | None = None
    furthest_pruned: int = 0
    causes: Causes = field(default_factory=Causes)

    def add(self, record: CountedTrial, goal: CellGoal) -> None:
        """Count one sealed record of the cell that has this goal."""
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
        reached = record.status == "pruned" and goal.last_rung is not None and record.num_epochs >= goal.last_rung
        # The value of an epoch in between is not comparable, and no trial is chosen by it.
        if (record.status == "finished" or reached) and record.val_metric is not None:
            better = min if goal.direction == "min" else max
            self.best = record.val_metric if self.best is None else better(self.best, record.val_metric)

    def has_choice(self, goal: CellGoal) -> bool:
        """Whether a search trial went all the way, so that there is a configuration to confirm."""
        reached = goal.last_rung is not None and self.furthest_pruned >= goal.last_rung
        return reached or self.search["finished"] > 0

    def confirm_trials(self, goal: CellGoal, repeated: int) -> int:
        """How many confirm trials it has: no more once a search has ended of which nothing can be chosen.

        ``repeated``: search trials that need no training.
        """
        search_is_over = self.search.total() + repeated >= goal.trials
        if goal.trials and search_is_over and not self.has_choice(goal):
            return self.confirm.total()
        return goal.confirm_trials

    @property
    def epochs(self) -> int:
        return self.search_epochs + self.confirm_epochs


@dataclass(frozen=True)
class UnderWay:
    """Trials of a cell that run now, the epochs that they have already, and how many of them no worker has yet."""

    trials: int = 0
    epochs: int = 0
    waiting: int = 0


def under_way_by_cell(trials: Iterable[tuple[str, int, bool]]) -> dict[str, UnderWay]:
    """What runs in each cell, from the cell and the epochs of every trial that does, and whether it still waits."""
    found: dict[str, UnderWay] = {}
    for cell, epochs, waits in trials:
        so_far = found.get(cell, UnderWay())
        found[cell] = UnderWay(so_far.trials + 1, so_far.epochs + epochs, so_far.waiting + waits)
    return found
