"""The search within one cell: which configuration comes next, which trials go on, which one is the best.

Nothing here knows another cell: a trial is compared with its own cell's trials only.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.search_space import IntersectionSearchSpace
from optuna.trial import TrialState
from ray.tune.schedulers import AsyncHyperBandScheduler, TrialScheduler

from bimp.tasks import Direction
from study.choice import Outcome
from study.space import Space, grid, suggest
from study.spec import AshaSpec, SearchSpec


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A sampled configuration: ``values`` for :func:`study.plan.resolve`, ``sampled`` for the journal."""

    number: int
    values: dict[str, Any]
    sampled: dict[str, Any]


class CellSampler:
    """Proposes configurations for one cell: Optuna's TPE or random sampler, or a grid.

    The sampler of trial i is seeded by the study's seed, the cell and i: given the same outcomes so far, the next
    proposal is the same, after a resume too.
    """

    def __init__(self, cell_id: str, space: Space, search: SearchSpec, study_seed: int, direction: Direction) -> None:
        self._cell_id = cell_id
        self._space = space
        self._search = search
        self._study_seed = study_seed
        self._grid = grid(space) if search.sampler == "grid" else None
        # Optuna announces every study and trial; this study has its own view.
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._study = optuna.create_study(direction="minimize" if direction == "min" else "maximize")
        self._trials: list[optuna.Trial] = []
        self._common_space = IntersectionSearchSpace(include_pruned=True)

    def ask(self) -> Proposal:
        """The next configuration."""
        number = len(self._trials)
        self._study.sampler = self._seeded_sampler(number)
        trial = self._study.ask()
        self._trials.append(trial)
        if self._grid is not None:
            return Proposal(number=number, values=self._grid[number], sampled={})
        values = suggest(self._space, trial)
        return Proposal(number=number, values=values, sampled=dict(trial.params))

    def replay(self, sampled: dict[str, Any]) -> Proposal:
        """The proposal that an earlier start made at this place, from what the journal kept of it."""
        if sampled:
            self._study.enqueue_trial(sampled)
        return self.ask()

    def tell(self, number: int, outcome: Outcome) -> None:
        """Tell the sampler how a trial ended."""
        trial = self._trials[number]
        if outcome.metric is None:
            self._study.tell(trial, state=TrialState.FAIL)
        elif outcome.status == "pruned":
            trial.report(outcome.metric, outcome.epochs)
            self._study.tell(trial, state=TrialState.PRUNED)
        else:
            self._study.tell(trial, outcome.metric)

    def _seeded_sampler(self, number: int) -> optuna.samplers.BaseSampler:
        digest = hashlib.sha256(f"{self._study_seed}/{self._cell_id}/{number}".encode()).digest()
        seed = int.from_bytes(digest[:4], "big")
        if self._search.sampler == "tpe":
            startup = max(4, min(10, self._search.trials // 3)) if self._search.trials else 10
            return _TPESampler(seed, startup, self._common_space)
        return optuna.samplers.RandomSampler(seed=seed)


class _TPESampler(optuna.samplers.TPESampler):
    """Optuna's own for one trial; what it learns of the space by going through all trials is kept for the next one.

    Args:
        seed: of its choices.
        startup: trials that are sampled at random before.
        common_space: finds the parameters that all trials of the cell have.
    """

    def __init__(self, seed: int, startup: int, common_space: IntersectionSearchSpace) -> None:
        super().__init__(seed=seed, n_startup_trials=startup, multivariate=True)
        self._common_space = common_space

    def infer_relative_search_space(
        self, study: optuna.Study, trial: optuna.trial.FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The parameters that all trials so far have; they are sampled together."""
        found = self._common_space.calculate(study)
        return {name: distribution for name, distribution in found.items() if not distribution.single()}


class CellRungs:
    """Asynchronous successive halving (ASHA) among the search trials of one cell, by epoch.

    Ray's own scheduler decides; it is fed with trial keys, so its rungs can be rebuilt from records.
    """

    def __init__(self, asha: AshaSpec | None, max_epochs: int, direction: Direction) -> None:
        self._rungs = (
            AsyncHyperBandScheduler(
                time_attr="epoch",
                metric="val_metric",
                mode=direction,
                max_t=max_epochs,
                grace_period=asha.grace_epochs,
                reduction_factor=asha.reduction_factor,
            )
            if asha is not None
            else None
        )
        self._known: set[str] = set()

    def keeps(self, key: str, epoch: int, metric: float) -> bool:
        """Record the metric of a trial after ``epoch``; False if it is to be pruned here."""
        if self._rungs is None:
            return True
        # Of Tune's trial the scheduler looks at the id alone, of its controller at nothing.
        trial: Any = SimpleNamespace(trial_id=key)
        controller: Any = None
        if key not in self._known:
            self._rungs.on_trial_add(controller, trial)
            self._known.add(key)
        decision = self._rungs.on_trial_result(controller, trial, {"epoch": epoch, "val_metric": metric})
        return bool(decision != TrialScheduler.STOP)
