"""Confirm trials of one configuration, trained together by one worker; each keeps a record and checkpoint of its own.

To everybody else they are trials like others: any of them can go on by itself from what it left here, and the other
way round.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bimp.data import PreparedDataset
from bimp.engine import EpochResult
from bimp.stack.together import SeedRun, fit_together
from study.assignment import TrialAssignment
from study.growing_record import with_epoch
from study.location import location
from study.provenance import device_name
from study.records import TrialRecord, write_record
from study.results import ResultsFolder
from study.store import StoreTrouble, trying
from study.trial import STORE_PATIENCE_S, TrialProgress, begin, finish, open_data, remove_earlier, save

logger = logging.getLogger(__name__)

Keep = Callable[[Callable[[], Any]], Any]
"""Does what writes to the results folder, and tells meanwhile of a folder that refuses."""


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

    As :func:`study.trial.train_trial` for each of them. A record says at ``device`` that it was trained so, and its
    seconds are an equal share.

    Raises:
        DataError: the prepared data is missing or not the data that the driver checked.
        OSError: the results folder refused for :data:`study.trial.STORE_PATIENCE_S`.
    """
    torch.set_num_threads(assignment.threads)
    device = torch.device("cuda" if assignment.use_gpu else "cpu")
    folder = ResultsFolder(location(assignment.results))
    keep = partial(trying, folder, pause=pause, patience_s=STORE_PATIENCE_S)
    dataset = yield from keep(partial(open_data, assignment))
    members = []
    for trial in assignment.members:
        record, checkpoint = yield from keep(partial(begin, trial, folder, device))
        record = replace(record, device=f"{device_name(device)} ({len(assignment.members)} seeds together)")
        members.append(_Member(trial, record, checkpoint, folder, dataset, device, keep))
        begins = "begins" if checkpoint is None else f"goes on after epoch {record.num_epochs}"
        logger.info("%s on %s, threads: %d", begins, record.device, assignment.threads)
    yield from _told_again(members)
    runs = [member.run for member in members]
    for results in fit_together(runs, device=device):
        yield from _after_epoch({members[number]: result for number, result in results.items()})


def _told_again(members: list[_Member]) -> Iterator[TogetherProgress | StoreTrouble]:
    """The epochs that earlier workers left, of which nobody may have heard; who had ended is finished."""
    goes_on = [member for member in members if member.checkpoint is not None]
    for member in goes_on:
        yield from member.keep(partial(write_record, member.record, member.live))
    if goes_on:
        yield TogetherProgress(epochs={member.trial.key: member.progress for member in goes_on})
    yield from _finished([member for member in goes_on if member.progress.ended])


def _after_epoch(results: dict[_Member, EpochResult]) -> Iterator[TogetherProgress | StoreTrouble]:
    # All of an epoch is on disk before any of it is told: whoever listens may stop the training there.
    for member, result in results.items():
        yield from member.take(result)
    trained = [member for member, result in results.items() if result.status != "diverged"]
    diverged = tuple(member.trial.key for member in results if member not in trained)
    epochs = {member.trial.key: member.progress for member in trained}
    yield TogetherProgress(epochs=epochs, on_record=diverged)
    yield from _finished([member for member in trained if member.progress.ended])


def _finished(ended: list[_Member]) -> Iterator[TogetherProgress | StoreTrouble]:
    for member in ended:
        yield from member.finish()
    if ended:
        yield TogetherProgress(epochs={}, on_record=tuple(member.trial.key for member in ended))


class _Member:
    """One of the trials: what is known of it, and where that lies."""

    def __init__(
        self,
        trial: TrialAssignment,
        record: TrialRecord,
        checkpoint: dict[str, Any] | None,
        folder: ResultsFolder,
        dataset: PreparedDataset,
        device: torch.device,
        keep: Keep,
    ) -> None:
        self.trial = trial
        self.record = record
        self.checkpoint = checkpoint
        self.keep = keep
        self._folder = folder
        self._dataset = dataset
        self._device = device
        self._earlier_removed = False

    @property
    def live(self) -> Path:
        """Where its record lies."""
        return self._folder.live_record(self.trial.key, self.trial.attempt)

    @property
    def run(self) -> SeedRun:
        """It as :func:`bimp.stack.together.fit_together` takes it."""
        fold = self.trial.config.fold
        return SeedRun(
            config=self.trial.config,
            train=self._dataset.split("train", fold),
            validation=self._dataset.split("val", fold),
            checkpoint=self.checkpoint,
        )

    @property
    def progress(self) -> TrialProgress:
        """Its last epoch."""
        assert self.checkpoint is not None
        return TrialProgress(
            epoch=self.record.num_epochs,
            val_metric=self.record.epochs[-1].val_metric,
            ended=self.checkpoint["status"] != "running",
        )

    def take(self, result: EpochResult) -> Iterator[StoreTrouble]:
        """Bring its epoch to disk; of a diverged one, that it was its last."""
        if result.status == "diverged":
            self.record = self.record.sealed("diverged", result.reason, time.time())
            yield from self.keep(partial(write_record, self.record, self.live))
            return
        self.record = with_epoch(self.record, result)
        self.checkpoint = result.checkpoint()
        yield from self.keep(partial(write_record, self.record, self.live))
        path = self._folder.checkpoint(self.trial.key, self.trial.attempt)
        yield from self.keep(partial(save, self.checkpoint, path))
        if not self._earlier_removed:
            yield from self.keep(partial(remove_earlier, self.trial, self._folder))
            self._earlier_removed = True

    def finish(self) -> Iterator[StoreTrouble]:
        """Measure it and bring its last word to disk."""
        assert self.checkpoint is not None
        finished = yield from finish(
            self.trial, self._folder, self.record, self.checkpoint, self._dataset, self._device, self.keep
        )
        yield from self.keep(partial(write_record, finished, self.live))
