"""A trial under training: its record and checkpoint, and what of them is on disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch

from bimp.data import GraphSplit, PreparedDataset
from bimp.engine import EpochResult, load_network
from bimp.epoch_draws import EpochDraws
from bimp.evaluation import evaluate
from bimp.measurement import DivergedError
from study.assignment import TrialAssignment
from study.attempts import attempts_until
from study.growing_record import back_to, initial_record, with_epoch
from study.provenance import device_name
from study.records import RecordError, TrialRecord, read_record, write_record
from study.results import ResultsFolder
from study.store import StoreTrouble, store_trouble
from study.tensor_files import DamagedFileError, from_bytes, to_bytes
from study.whole_files import make_folder, remove_folder, write_whole

Keep = Callable[[Callable[[], Any]], Any]
"""Does what writes to the results folder, and tells meanwhile of a folder that refuses."""


@dataclass(frozen=True, kw_only=True)
class TrialProgress:
    """One more epoch of a trial: how many it has, the validation metric, and whether it stops by itself here."""

    epoch: int
    val_metric: float
    ended: bool


class LiveTrial:
    """A trial from its beginning, or its last checkpoint, to its last word; made by :meth:`begin`.

    What it writes goes through ``keep``, whose news of a folder that refuses its generators yield.

    Attributes:
        assignment: what is trained.
        record: as far as it has grown.
        checkpoint: of the record's last epoch; None before the first.
    """

    def __init__(
        self,
        assignment: TrialAssignment,
        record: TrialRecord,
        checkpoint: dict[str, Any] | None,
        folder: ResultsFolder,
        dataset: PreparedDataset,
        device: torch.device,
        keep: Keep,
        trained_on: str,
    ) -> None:
        self.assignment = assignment
        self.record = record
        self.checkpoint = checkpoint
        self._folder = folder
        self._dataset = dataset
        self._device = device
        self._keep = keep
        self._trained_on = trained_on
        self._earlier_removed = False

    @classmethod
    def begin(
        cls,
        assignment: TrialAssignment,
        folder: ResultsFolder,
        dataset: PreparedDataset,
        device: torch.device,
        keep: Keep,
        trained_on: str | None = None,
    ) -> Generator[StoreTrouble, None, LiveTrial]:
        """Take up what the newest attempt left; ``trained_on`` is put on record as the device, whatever stood there."""
        record, checkpoint = yield from keep(partial(_left_behind, assignment, folder, device))
        if trained_on is not None:
            record = replace(record, device=trained_on)
        return cls(assignment, record, checkpoint, folder, dataset, device, keep, trained_on or device_name(device))

    @property
    def beginning(self) -> str:
        """For the log, before anything is trained: from where it goes on, and on what."""
        begins = "begins" if self.checkpoint is None else f"goes on after epoch {self.record.num_epochs}"
        return f"{begins} on {self._trained_on}, threads: {self.assignment.threads}"

    @property
    def progress(self) -> TrialProgress:
        """Its last epoch."""
        assert self.checkpoint is not None
        return TrialProgress(
            epoch=self.record.num_epochs,
            val_metric=self.record.epochs[-1].val_metric,
            ended=self.checkpoint["status"] != "running",
        )

    def split(self, name: Literal["train", "val", "test"]) -> GraphSplit:
        """The graphs of a split, of its fold."""
        return self._dataset.split(name, self.assignment.config.fold)

    def keep_record(self) -> Iterator[StoreTrouble]:
        """Bring its record to disk."""
        path = self._folder.live_record(self.assignment.key, self.assignment.attempt)
        yield from self._keep(partial(write_record, self.record, path))

    def take(self, result: EpochResult) -> Iterator[StoreTrouble]:
        """Bring its epoch to disk; of a diverged one, that it was its last."""
        if result.status == "diverged":
            self.record = self.record.sealed("diverged", result.reason, time.time())
            yield from self.keep_record()
            return
        self.record = with_epoch(self.record, result)
        self.checkpoint = result.checkpoint()
        yield from self.keep_record()
        path = self._folder.checkpoint(self.assignment.key, self.assignment.attempt)
        yield from self._keep(partial(_save, self.checkpoint, path))
        if not self._earlier_removed:
            yield from self._keep(partial(_remove_earlier, self.assignment, self._folder))
            self._earlier_removed = True

    def finish(self) -> Iterator[StoreTrouble]:
        """Bring its last word to disk: a confirm trial is measured on train and test, and keeps its weights."""
        assert self.checkpoint is not None
        trained = self.record
        self.record = trained.sealed("finished", self.checkpoint["reason"], time.time())
        if self.assignment.phase == "confirm":
            yield from self._measure(trained, self.checkpoint)
        yield from self.keep_record()

    def _measure(self, trained: TrialRecord, checkpoint: dict[str, Any]) -> Iterator[StoreTrouble]:
        config = self.assignment.config
        network = load_network(config, checkpoint, self._device)
        draws = EpochDraws(config.seed, trained.num_epochs + 1)  # other ones than any epoch that it trained
        try:
            with draws.seeded_layers(config.model.backbone, self._device):
                train = evaluate(network, config, self.split("train"), self._device)
                test = evaluate(network, config, self.split("test"), self._device)
        except DivergedError as cause:
            self.record = trained.sealed("diverged", f"after epoch {trained.num_epochs}: {cause}", time.time())
            return
        weights = self._folder.live_weights(trained.key, self.assignment.attempt)
        yield from self._keep(partial(_save, {"config": config.to_dict(), "network": network.state_dict()}, weights))
        self.record = replace(
            self.record,
            train_metric=train.metric,
            train_loss=train.loss,
            test_metric=test.metric,
            test_loss=test.loss,
            ended_at=time.time(),
        )


def _left_behind(
    assignment: TrialAssignment, folder: ResultsFolder, device: torch.device
) -> tuple[TrialRecord, dict[str, Any] | None]:
    """The record and checkpoint to go on from, those of the newest attempt that has both.

    Epochs that the checkpoint has not seen are dropped.
    """
    make_folder(folder.live_record(assignment.key, assignment.attempt).parent)
    for attempt in attempts_until(folder, assignment.key, assignment.attempt):
        try:
            checkpoint = from_bytes(folder.checkpoint(assignment.key, attempt).read_bytes())
            record = read_record(folder.live_record(assignment.key, attempt))
        except (OSError, DamagedFileError, RecordError) as error:
            if store_trouble(error) is not None:
                raise  # what is there cannot be read at this moment
            continue  # there is none yet, or a crash of the machine cut it
        trained = checkpoint["epoch"]
        kept = tuple(epoch for epoch in record.epochs if epoch.epoch <= trained)
        if len(kept) == trained:
            return back_to(record, kept), checkpoint
    return initial_record(assignment, device_name(device)), None


def _remove_earlier(assignment: TrialAssignment, folder: ResultsFolder) -> None:
    """Drop what earlier attempts left, once this one has a record and a checkpoint of its own."""
    for attempt in attempts_until(folder, assignment.key, assignment.attempt):
        if attempt != assignment.attempt:
            remove_folder(folder.live_record(assignment.key, attempt).parent)


def _save(content: dict[str, Any], path: Path) -> None:
    """Write a checkpoint or weights, whole or not at all."""
    write_whole(path, to_bytes(content))
