"""Confirm trials of one configuration, trained together by one worker; each keeps a record and checkpoint of its own.

To everybody else they are trials like others: any of them can go on by itself from what it left here, and the other
way round.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch

from bimp.engine import EpochResult
from bimp.stack.team import SeedRun
from bimp.stack.together import fit_together
from bimp.stack.worth import is_worth_stacking
from study.assignment import TrialAssignment
from study.live_trial import LiveTrial, TrialProgress
from study.location import location
from study.provenance import device_name
from study.results import ResultsFolder
from study.store import StoreTrouble, trying
from study.trial import STORE_PATIENCE_S, open_data

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class TogetherProgress:
    """What became of trials that are trained together, by their keys.

    Attributes:
        epochs: one more epoch of each that had not ended; it is on disk.
        on_record: those whose last word is on disk.
    """

    epochs: dict[str, TrialProgress]
    on_record: tuple[str, ...] = ()


def train_together(
    assignment: TrialAssignment, pause: Callable[[float], object] = time.sleep
) -> Iterator[TogetherProgress | StoreTrouble]:
    """Train the trial and its companions, each from its last checkpoint or from the start, and yield after every epoch.

    As :func:`study.trial.train_trial` for each of them. A record says at ``device`` that it was trained so, if they are
    one network and do not take turns, and its seconds are an equal share.

    Raises:
        DataError: the prepared data is missing or not the data that the driver checked.
        OSError: the results folder refused for :data:`study.trial.STORE_PATIENCE_S`.
    """
    torch.set_num_threads(assignment.threads)
    device = torch.device("cuda" if assignment.use_gpu else "cpu")
    folder = ResultsFolder(location(assignment.results))
    keep = partial(trying, folder, pause=pause, patience_s=STORE_PATIENCE_S)
    dataset = yield from keep(partial(open_data, assignment))
    trained_on = None
    if is_worth_stacking(assignment.config, dataset.split("train", assignment.config.fold), device):
        trained_on = f"{device_name(device)} ({len(assignment.members)} seeds together)"
    members = []
    for trial in assignment.members:
        member = yield from LiveTrial.begin(trial, folder, dataset, device, keep, trained_on)
        logger.info("%s", member.beginning)
        members.append(member)
    yield from _told_again(members)
    runs = [_run(member) for member in members]
    for results in fit_together(runs, device=device):
        yield from _after_epoch({members[number]: result for number, result in results.items()})


def _told_again(members: list[LiveTrial]) -> Iterator[TogetherProgress | StoreTrouble]:
    """The epochs that earlier workers left, of which nobody may have heard; who had ended is finished."""
    goes_on = [member for member in members if member.checkpoint is not None]
    for member in goes_on:
        yield from member.keep_record()
    if goes_on:
        yield TogetherProgress(epochs={member.assignment.key: member.progress for member in goes_on})
    yield from _finished([member for member in goes_on if member.progress.ended])


def _after_epoch(results: dict[LiveTrial, EpochResult]) -> Iterator[TogetherProgress | StoreTrouble]:
    # All of an epoch is on disk before any of it is told: whoever listens may stop the training there.
    for member, result in results.items():
        yield from member.take(result)
    trained = [member for member, result in results.items() if result.status != "diverged"]
    diverged = tuple(member.assignment.key for member in results if member not in trained)
    epochs = {member.assignment.key: member.progress for member in trained}
    yield TogetherProgress(epochs=epochs, on_record=diverged)
    yield from _finished([member for member in trained if member.progress.ended])


def _finished(ended: list[LiveTrial]) -> Iterator[TogetherProgress | StoreTrouble]:
    for member in ended:
        yield from member.finish()
    if ended:
        yield TogetherProgress(epochs={}, on_record=tuple(member.assignment.key for member in ended))


def _run(trial: LiveTrial) -> SeedRun:
    """The trial as :func:`bimp.stack.together.fit_together` takes it."""
    return SeedRun(
        config=trial.assignment.config,
        train=trial.split("train"),
        validation=trial.split("val"),
        checkpoint=trial.checkpoint,
    )
