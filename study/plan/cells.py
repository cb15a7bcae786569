"""A planned study: its cells, one row of a table each, and what runs in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

from bimp.config import BACKBONES, TrialConfig
from bimp.semantics import Semantics, Setting
from bimp.tasks import Direction, TaskSpec, task_of
from study.configuration import configuration
from study.space import Space
from study.spec import StudySpec
from study.spec.hyperparameters import Value, Values, placement_text

MOST_TOGETHER = 10
"""Confirm trials in one training run, as ten folds: with every one it takes more memory."""


@dataclass(frozen=True, kw_only=True)
class Extent:
    """The least and the greatest of a number that depends on what is sampled."""

    low: int
    high: int

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Extent:
        """Of all ``numbers``, at least one."""
        ascending = sorted(numbers)
        return cls(low=ascending[0], high=ascending[-1])

    @property
    def single(self) -> int | None:
        """The number, if there is only one."""
        return self.low if self.low == self.high else None

    @property
    def plain(self) -> int | list[int]:
        """The number, or both ends: as JSON holds it."""
        return self.low if self.low == self.high else [self.low, self.high]

    def __str__(self) -> str:
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,} to {self.high:,}"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One combination of arms: what is the same in all its trials, what is searched, and how much runs.

    Attributes:
        id: readable, unique in the study, fit for a file name.
        arms: the arm values that exist in it.
        settings: arms and fixed values that exist in it, and the defaults of gate keys.
        space: what is searched; its parameters are empty where there is nothing to search.
        hidden_dim: of the models that can be sampled, and params: of those at the ends of what is searched. Of a width
            that is solved from the budget, models between the ends may have more parameters or fewer.
        trials: of its search; 0 where nothing is searched.
        search_seed, search_fold: of every search trial; the fold is None on datasets with one split.
        seeds, folds: of its confirm trials; folds are None on datasets with one split.
        semantics: the preset of all trials; None where it is searched.
        departures: settings whose value is not the preset's, the same in all trials.
        other_settings: of model and training, without a key of their own in a results folder's plan, as they are in
            all trials, defaults included; none that is searched.
        max_epochs: of every trial.
        rungs: epochs at which ASHA compares, ascending; empty without ASHA.
    """

    id: str
    arms: dict[str, Value]
    settings: dict[str, Value]
    space: Space
    hidden_dim: Extent
    params: Extent
    trials: int
    search_seed: int
    search_fold: int | None
    seeds: tuple[int, ...]
    folds: tuple[int, ...] | None
    semantics: Semantics | None
    departures: dict[str, Setting]
    other_settings: dict[str, Value]
    max_epochs: int
    rungs: tuple[int, ...]

    @property
    def dataset(self) -> str:
        return str(self.arms["dataset"])

    @property
    def backbone(self) -> str:
        return str(self.arms["backbone"])

    @property
    def task(self) -> TaskSpec:
        """What is predicted."""
        return task_of(self.dataset)

    @property
    def direction(self) -> Direction:
        """Whether a smaller or a larger metric is better."""
        return self.task.direction

    @property
    def confirm_runs(self) -> tuple[tuple[int, int | None], ...]:
        """Seed and fold of every confirm trial."""
        return tuple(product(self.seeds, self.folds if self.folds is not None else (None,)))

    def setting(self, key: str) -> Any:
        """The value of ``key`` in all trials; None where it is searched or does not exist."""
        return self.settings.get(key)

    @property
    def placement(self) -> str | None:
        """The placement as one word; None where it is searched."""
        placement = self.setting("placement")
        return None if placement is None else placement_text(placement)


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """The cells of a study, in the order of its arms."""

    name: str
    caption: str | None
    cells: tuple[Cell, ...]

    @property
    def search_trials(self) -> int:
        """Search trials of all cells."""
        return sum(cell.trials for cell in self.cells)

    @property
    def confirm_trials(self) -> int:
        """Confirm trials of all cells."""
        return sum(len(cell.confirm_runs) for cell in self.cells)


def most_in_a_slot(cell: Cell, spec: StudySpec) -> int:
    """How many confirm trials of the cell are trained together in one slot, if there are so many."""
    return MOST_TOGETHER if spec.resources.seeds_together and cell.backbone in BACKBONES else 1


def resolve(cell: Cell, values: Values, spec: StudySpec, *, seed: int, fold: int | None) -> TrialConfig:
    """A whole trial of the cell: fixed values, its arms, then ``values``.

    Raises:
        ConfigError: as :func:`study.configuration.configuration`.
    """
    return configuration({**spec.fixed, **cell.arms, **values}, seed=seed, fold=fold)
