"""Which configuration a search has found: how its trials ended, and the best of them. Loads neither Ray nor Optuna."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bimp.tasks import Direction
from study.ended_trials import EndedTrial
from study.records import Status


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a search trial ended, as far as its cell's sampler and choice need it.

    ``metric`` is the validation metric of the last epoch; None if there is none that may be scored.
    """

    key: str
    status: Status
    epochs: int
    metric: float | None

    @classmethod
    def of(cls, ended: EndedTrial) -> Outcome:
        """The outcome of a trial that has ended."""
        return cls.told(ended.key, ended.status, ended.num_epochs, ended.val_metric)

    @classmethod
    def told(cls, key: str, status: Status, epochs: int, val_metric: float | None) -> Outcome:
        """The outcome that these fields of a record tell; a diverged or failed trial is not scored."""
        scored = status in ("finished", "pruned")
        return cls(key=key, status=status, epochs=epochs, metric=val_metric if scored else None)

    def may_be_chosen(self, last_rung: int | None) -> bool:
        """Whether it went all the way: ended by its schedule or at the last epoch, or reached ``last_rung``."""
        reached = last_rung is not None and self.epochs >= last_rung
        return self.metric is not None and (self.status == "finished" or reached)


def best_outcome(outcomes: Iterable[Outcome], direction: Direction, last_rung: int | None) -> Outcome | None:
    """The best trial by its last validation metric, among those that went all the way; ties go to the smaller key.

    None if there is none.
    """
    candidates = [outcome for outcome in outcomes if outcome.may_be_chosen(last_rung)]
    sign = 1.0 if direction == "min" else -1.0
    return min(candidates, key=lambda outcome: (sign * (outcome.metric or 0.0), outcome.key), default=None)
