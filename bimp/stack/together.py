"""Several seeds or folds of one configuration in one training run, each as if it ran alone."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from bimp.config import TrialConfig
from bimp.data.source import require_graphs
from bimp.engine import EpochResult, fit
from bimp.stack.network import can_be_stacked
from bimp.stack.team import SeedRun, Team
from bimp.stack.worth import is_worth_stacking


def fit_together(runs: Sequence[SeedRun], *, device: torch.device | str = "cpu") -> Iterator[dict[int, EpochResult]]:
    """Train the runs side by side; yields after every epoch the results of those that had not ended, by number.

    The runs may differ in seed, fold, splits and checkpoint. Each has its own order of graphs, its own schedule and
    its own end, and the numbers that :func:`bimp.engine.fit` would give, but for rounding; its checkpoints are
    those of :func:`~bimp.engine.fit`, which may go on from them, and the other way round. A run that has ended leaves
    the others; the last one left goes on by itself. ``seconds`` of a result are the run's equal share of the time.
    Where one network of all would be slower than theirs one after another, each epoch takes them so, and ``seconds``
    are each run's own.

    Raises:
        ValueError: the configurations differ in more than seed and fold, or their backbone cannot be stacked.
        CheckpointError: a checkpoint was made by another configuration.
        DataError: a split without graphs.
    """
    for run in runs:
        require_graphs(run.config.dataset, {"train": (run.train.indices,), "val": (run.validation.indices,)})
    _require_alike([run.config for run in runs])
    here, left = torch.device(device), dict(enumerate(runs))
    left = {number: run for number, run in left.items() if _goes_on(run.checkpoint)}
    while len(left) > 1 and is_worth_stacking(left[min(left)].config, left[min(left)].train, here):
        left = yield from _until_one_ends(left, here)
    yield from _one_after_another(left, here)


def _until_one_ends(
    runs: Mapping[int, SeedRun], device: torch.device
) -> Generator[dict[int, EpochResult], None, dict[int, SeedRun]]:
    """Train the runs as one network; gives those that go on, with their checkpoints."""
    team = Team(list(runs.values()), device)
    while team.is_complete:
        yield dict(zip(runs, team.one_epoch(), strict=True))
    checkpoints = [member.save() for member in team.members]
    return {
        number: replace(run, checkpoint=checkpoint)
        for (number, run), checkpoint in zip(runs.items(), checkpoints, strict=True)
        if _goes_on(checkpoint)
    }


def _one_after_another(runs: Mapping[int, SeedRun], device: torch.device) -> Iterator[dict[int, EpochResult]]:
    """An epoch of each in turn, each in a network of its own."""
    alone = {
        number: fit(run.config, run.train, run.validation, device=device, checkpoint=run.checkpoint)
        for number, run in runs.items()
    }
    while alone:
        results = {number: next(epochs, None) for number, epochs in alone.items()}
        given = {number: result for number, result in results.items() if result is not None}
        if given:
            yield given
        alone = {number: alone[number] for number in given}


def _goes_on(checkpoint: dict[str, Any] | None) -> bool:
    return checkpoint is None or checkpoint["status"] == "running"


def _require_alike(configs: Sequence[TrialConfig]) -> None:
    for config in configs:
        if replace(config, seed=configs[0].seed, fold=configs[0].fold) != configs[0]:
            raise ValueError("runs: found different configurations, expected them to differ in seed and fold alone")
    if not can_be_stacked(configs[0].model):
        raise ValueError(
            f"backbone: found {configs[0].model.backbone}, expected one of the four; train its seeds one by one"
        )
