"""How a configuration was chosen: the rule by which a study ranks the search trials of a cell."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reports.records.details import TrialDetails
from reports.records.search_plan import SearchPlan

RANKING_RULE = (
    "by the validation metric of the last epoch, among the trials that finished or reached the last rung; "
    "ties go to the smaller key"
)


@dataclass(frozen=True, kw_only=True)
class SearchEvidence:
    """One search trial; ``rank`` counts from 1 (the best) and is None for one that could not be chosen."""

    key: str
    number: int | None
    rank: int | None
    val: float | None
    epochs: int
    status: str
    reason: str | None
    record: str


@dataclass(frozen=True, kw_only=True)
class ChoiceEvidence:
    """How a cell's configuration was chosen.

    Attributes:
        key: of the search trial whose configuration the confirm trials repeat; None where nothing was searched or
            confirmed. ``rank`` and ``number`` are its own; None where it is not on record, or could not be chosen.
        tried: number of search trials on record. ranked: of those that could be chosen.
        ends: how many ended in each way, ordered by it: ``(("finished", 3), ("pruned", 5))``.
        searched: what was sampled from what: ``(("sigma_m", "log_uniform [0.1, 10.0]"),)``; empty where not known.
        trials: all of them, the best first, then those that could not be chosen by their number.
    """

    key: str | None
    rank: int | None
    number: int | None
    tried: int
    ranked: int
    ends: tuple[tuple[str, int], ...]
    searched: tuple[tuple[str, str], ...]
    trials: tuple[SearchEvidence, ...]


def choice_of(searched: Sequence[TrialDetails], key: str | None, direction: str, search: SearchPlan) -> ChoiceEvidence:
    """How the search trial ``key`` was chosen among ``searched``, the search trials of its cell."""
    order = ranked(searched, direction, search.rungs)
    ranks = {trial.key: place for place, trial in enumerate(order, start=1)}
    rest = sorted(
        (trial for trial in searched if trial.key not in ranks),
        key=lambda trial: (-1 if trial.number is None else trial.number, trial.key),
    )
    return ChoiceEvidence(
        key=key,
        rank=ranks.get(key) if key else None,
        number=next((trial.number for trial in searched if trial.key == key), None),
        tried=len(searched),
        ranked=len(order),
        ends=tuple(sorted(Counter(trial.status for trial in searched).items())),
        searched=tuple((entry.name, str(entry)) for entry in search.ranges or ()),
        trials=tuple(_search_evidence(trial, ranks.get(trial.key)) for trial in (*order, *rest)),
    )


def ranked(search: Iterable[TrialDetails], direction: str, rungs: Sequence[int]) -> tuple[TrialDetails, ...]:
    """The search trials of one cell that may be chosen, the best first, as a study ranks them.

    Args:
        search: of the cell; others than those that finished or were pruned at the last rung are left out.
        direction: ``min`` or ``max``.
        rungs: epochs at which trials were pruned, ascending; empty without pruning.
    """
    sign = 1.0 if direction == "min" else -1.0
    eligible = [
        (sign * trial.val_metric, trial.key, trial)
        for trial in search
        if trial.val_metric is not None
        and math.isfinite(trial.val_metric)
        and went_all_the_way(trial.status, trial.num_epochs, rungs)
    ]
    return tuple(trial for _, _, trial in sorted(eligible, key=lambda entry: entry[:2]))


def went_all_the_way(status: str, num_epochs: int, rungs: Sequence[int]) -> bool:
    """Whether a search trial finished, or was pruned no earlier than at the last of ``rungs``."""
    return status == "finished" or (status == "pruned" and bool(rungs) and num_epochs >= rungs[-1])


def _search_evidence(trial: TrialDetails, rank: int | None) -> SearchEvidence:
    return SearchEvidence(
        key=trial.key,
        number=trial.number,
        rank=rank,
        val=trial.val_metric,
        epochs=trial.num_epochs,
        status=trial.status,
        reason=trial.reason,
        record=trial.file,
    )
