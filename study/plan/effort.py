"""How many epochs a study trains, worked out without training: bounds, and what halving is expected to leave."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from study.plan.cells import Cell, StudyPlan, most_in_a_slot
from study.space import different_configurations
from study.spec import StudySpec


@dataclass(frozen=True, kw_only=True)
class Epochs:
    """A number of epochs.

    Attributes:
        least: every search trial is stopped at the first rung.
        expected: of the trials that reach a rung, one in ``reduction_factor`` goes on.
        most: no trial is pruned.
    """

    least: float
    expected: float
    most: float

    def times(self, factor: float) -> Epochs:
        """So many times as many; with seconds an epoch, seconds."""
        return Epochs(least=self.least * factor, expected=self.expected * factor, most=self.most * factor)

    @classmethod
    def sum(cls, numbers: Iterable[Epochs]) -> Epochs:
        """All together."""
        known = tuple(numbers)
        return cls(
            least=sum(number.least for number in known),
            expected=sum(number.expected for number in known),
            most=sum(number.most for number in known),
        )


@dataclass(frozen=True, kw_only=True)
class CellEffort:
    """What a cell trains: epochs of all its search trials, and of all its confirm trials, which are never pruned.

    ``together``: confirm trials that are trained as one, in one slot.
    """

    cell: Cell
    search: Epochs
    confirm: int
    together: int = 1

    @property
    def epochs(self) -> Epochs:
        """Of both."""
        confirm = Epochs(least=self.confirm, expected=self.confirm, most=self.confirm)
        return Epochs.sum((self.search, confirm))


def efforts(plan: StudyPlan, spec: StudySpec) -> tuple[CellEffort, ...]:
    """The effort of every cell, in the plan's order; each trial that is not pruned trains ``max_epochs``.

    A configuration that is sampled again is not trained again, so no more trials are than there are configurations.
    """
    asha = None if spec.search is None else spec.search.asha
    factor = 1 if asha is None else asha.reduction_factor
    return tuple(
        CellEffort(
            cell=cell,
            search=_epochs_of_a_trial(cell.rungs, cell.max_epochs, factor).times(trained_trials(cell)),
            confirm=len(cell.confirm_runs) * cell.max_epochs,
            together=min(len(cell.confirm_runs), most_in_a_slot(cell, spec)),
        )
        for cell in plan.cells
    )


def trained_trials(cell: Cell) -> int:
    """The search trials of a cell that train, if none samples what another has while there is something else left."""
    return different_configurations(cell.space, cell.trials)


def _epochs_of_a_trial(rungs: tuple[int, ...], max_epochs: int, factor: int) -> Epochs:
    if not rungs:
        return Epochs(least=max_epochs, expected=max_epochs, most=max_epochs)
    expected, share, reached = 0.0, 1.0, 0
    for until in (*rungs, max_epochs):
        expected += share * (until - reached)
        share, reached = share / factor, until
    return Epochs(least=rungs[0], expected=expected, most=max_epochs)
