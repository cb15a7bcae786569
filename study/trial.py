"""One trial as a worker runs it: data, training, and a record that grows with every epoch.

The worker writes epochs and its own end (finished, diverged, failed); whether it was pruned it cannot know, so the
driver seals the record. Everything here works without Ray: :func:`train_trial` is a plain generator.
"""

from __future__ import annotations

import io
import json
import logging
import pickle
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bimp.budget import parameters_of
from bimp.config import Phase, TrialConfig
from bimp.data import DataError, PreparedDataset, open_prepared
from bimp.engine import EpochResult, evaluate, fit, load_network
from bimp.layers.own import import_layer
from bimp.measurement import DivergedError
from bimp.semantics import TRAIN_SETTINGS
from bimp.tasks import task_of
from study.attempts import attempts_until
from study.location import location
from study.node_data import open_on_node
from study.out_of_memory import MemoryPlace
from study.provenance import device_name, library_versions
from study.records import EpochRecord, RecordError, TrialRecord, read_record, write_record
from study.results import FIRST_ATTEMPT, ResultsFolder
from study.store import StoreTrouble, store_trouble, trying
from study.whole_files import make_folder, remove_folder, write_whole

logger = logging.getLogger(__name__)

STORE_PATIENCE_S = 3600.0
"""How long a worker waits for a results folder that refuses, before its trial fails and another gets its place."""

UNREADABLE = (OSError, EOFError, RuntimeError, ValueError, TypeError, LookupError, pickle.UnpicklingError, RecordError)
"""What reading a checkpoint or a record raises where there is none, and where it was cut or has a wrong byte."""


@dataclass(frozen=True, kw_only=True)
class TrialAssignment:
    """All that a worker is told: one trial and where its data and results lie.

    Attributes:
        key: identity of the trial.
        study, cell, phase, number, chosen_from, budget: as in :class:`study.records.TrialRecord`.
        config: the complete configuration.
        data_fingerprint: of the prepared dataset that the driver checked.
        data_root: the driver's data folder. results: a folder that every node sees, or a place in an object store.
        threads: cores that the trial was given; torch uses exactly as many.
        use_gpu: whether it was given a GPU.
        git_commit, git_dirty: state of the code that drives the study.
        alone: what it has to itself, since memory ran out when it was tried beside others; None: nothing.
        attempt: which attempt at the trial this is; it writes where no other does.
        data_version, data_store: which files of the dataset, and whence to pull them (:mod:`study.node_data`); None:
            the node sees ``data_root``.
        versions: of the driver's libraries, which the node must have; empty: any will do.
        avoided: ids of nodes that are not fit for it.
        companions: trials that differ in seed and fold alone and are trained with it (:mod:`study.together`).
    """

    key: str
    study: str
    cell: str
    phase: Phase
    number: int | None
    chosen_from: str | None
    budget: int | None
    config: TrialConfig
    data_fingerprint: str
    data_root: str
    results: str
    threads: int
    use_gpu: bool
    git_commit: str | None
    git_dirty: bool | None
    alone: MemoryPlace | None = None
    attempt: str = FIRST_ATTEMPT
    data_version: str | None = None
    data_store: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    avoided: tuple[str, ...] = ()
    companions: tuple[TrialAssignment, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """A plain dict that JSON can hold."""
        return {
            **{name: getattr(self, name) for name in self.__dataclass_fields__},
            "config": self.config.to_dict(),
            "companions": [companion.to_dict() for companion in self.companions],
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> TrialAssignment:
        """The assignment that :meth:`to_dict` wrote."""
        return cls(
            **{
                **plain,
                "config": TrialConfig.from_dict(plain["config"]),
                "avoided": tuple(plain.get("avoided", ())),
                "companions": tuple(cls.from_dict(companion) for companion in plain.get("companions", ())),
            }
        )

    @property
    def members(self) -> tuple[TrialAssignment, ...]:
        """Each trial that is trained here, by itself: this one and its companions."""
        return (replace(self, companions=()), *self.companions)

    @property
    def name(self) -> str:
        """How messages call the trial."""
        return f"trial {self.key} ({self.cell}, {self.phase}, seed {self.config.seed})"


@dataclass(frozen=True, kw_only=True)
class TrialProgress:
    """One more epoch of a trial: how many it has, the validation metric, and whether it stops by itself here."""

    epoch: int
    val_metric: float
    ended: bool


def train_trial(
    assignment: TrialAssignment, pause: Callable[[float], object] = time.sleep
) -> Iterator[TrialProgress | StoreTrouble]:
    """Train the trial from its last checkpoint, or from the start, and yield after every epoch.

    By then the live record and the checkpoint that belongs to it are on disk. The last live record says how training
    ended: ``finished`` or ``diverged``; a confirm trial then also has its test metric and its weights.

    A trial that goes on yields the epoch of its checkpoint first, without training it: whoever listened before may
    have died before it heard of it.

    Where the results folder refuses, it yields that and tries again after a ``pause`` of so many seconds.

    Raises:
        ConfigError: the study's backbone is a layer of the user's own that cannot be imported on this node.
        DataError: the prepared data is missing or not the data that the driver checked.
        OSError: the results folder refused for :data:`STORE_PATIENCE_S`.
    """
    import_layer(assignment.config.model.backbone)  # the study file names it
    torch.set_num_threads(assignment.threads)
    device = torch.device("cuda" if assignment.use_gpu else "cpu")
    folder = ResultsFolder(location(assignment.results))
    keep = partial(trying, folder, pause=pause, patience_s=STORE_PATIENCE_S)
    dataset = yield from keep(partial(open_data, assignment))
    train = dataset.split("train", assignment.config.fold)
    validation = dataset.split("val", assignment.config.fold)
    live = folder.live_record(assignment.key, assignment.attempt)
    record, checkpoint = yield from keep(partial(begin, assignment, folder, device))
    begins = "begins" if checkpoint is None else f"goes on after epoch {record.num_epochs}"
    logger.info("%s on %s, threads: %d", begins, record.device, assignment.threads)
    if checkpoint is not None:
        yield from keep(partial(write_record, record, live))
        yield TrialProgress(
            epoch=record.num_epochs,
            val_metric=record.epochs[-1].val_metric,
            ended=checkpoint["status"] != "running",
        )
    earlier_removed = False
    for result in fit(assignment.config, train, validation, device=device, checkpoint=checkpoint):
        if result.status == "diverged":
            yield from keep(partial(write_record, record.sealed("diverged", result.reason, time.time()), live))
            return
        record = with_epoch(record, result)
        checkpoint = result.checkpoint()
        yield from keep(partial(write_record, record, live))
        yield from keep(partial(save, checkpoint, folder.checkpoint(record.key, assignment.attempt)))
        if not earlier_removed:
            yield from keep(partial(remove_earlier, assignment, folder))
            earlier_removed = True
        yield TrialProgress(
            epoch=result.epoch, val_metric=record.epochs[-1].val_metric, ended=result.status != "running"
        )
    if checkpoint is None:
        raise RuntimeError(f"{assignment.name}: training ended before its first epoch")
    finished = yield from finish(assignment, folder, record, checkpoint, dataset, device, keep)
    yield from keep(partial(write_record, finished, live))


def initial_record(assignment: TrialAssignment, device: str, params: int | None = None) -> TrialRecord:
    """The record of a trial that has no epoch yet; None: ``params`` are counted on its network."""
    config = assignment.config
    task = task_of(config.dataset)
    model, training = config.model, config.train
    placement = model.placement
    scheduled = {key: value for key, value in asdict(training).items() if key not in (*TRAIN_SETTINGS, "precision")}
    settings: dict[str, Any] = config.settings
    return TrialRecord(
        key=assignment.key,
        study=assignment.study,
        cell=assignment.cell,
        phase=assignment.phase,
        status="running",
        reason=None,
        number=assignment.number,
        chosen_from=assignment.chosen_from,
        dataset=config.dataset,
        dataset_title=task.title,
        task=task.kind,
        metric=task.metric,
        direction=task.direction,
        backbone=model.backbone,
        layers=model.layers,
        hidden_dim=model.hidden_dim,
        heads=model.heads,
        budget=assignment.budget,
        params=parameters_of(model, task) if params is None else params,
        placement=placement if isinstance(placement, str) else ",".join(map(str, placement)),
        gated_layers=model.gated_layers,
        gate=model.gate,
        num_clusters=model.num_clusters,
        sigma_m=model.sigma_m if model.gate == "bilateral" else None,  # the uniform gate does not use it
        readout=model.readout,
        semantics=model.semantics,
        departures=json.dumps(config.departures, sort_keys=True) if config.departures else None,
        pos_enc_dim=model.pos_enc_dim,
        out_dim=model.out_dim,
        **settings,
        **scheduled,
        seed=config.seed,
        fold=config.fold,
        train_metric=None,
        val_metric=None,
        test_metric=None,
        train_loss=None,
        val_loss=None,
        test_loss=None,
        seconds=0.0,
        started_at=time.time(),
        ended_at=None,
        device=device,
        threads=assignment.threads,
        git_commit=assignment.git_commit,
        git_dirty=assignment.git_dirty,
        data_fingerprint=assignment.data_fingerprint,
        config_json=json.dumps(config.to_dict(), sort_keys=True),
        versions_json=json.dumps(library_versions(), sort_keys=True),
    )


def open_data(assignment: TrialAssignment) -> PreparedDataset:
    """The prepared dataset of the trial, from wherever this node has it.

    Raises:
        DataError: it is missing, or not the data that the driver checked.
    """
    name, root = assignment.config.dataset, Path(assignment.data_root)
    if assignment.data_version is not None and assignment.data_store is not None:
        return open_on_node(name, root, assignment.data_version, location(assignment.data_store))
    dataset = open_prepared(name, root)
    if dataset.fingerprint != assignment.data_fingerprint:
        raise DataError(
            f"{assignment.name}: {assignment.config.dataset} in {assignment.data_root} has fingerprint "
            f"{dataset.fingerprint}, expected {assignment.data_fingerprint}; the data was prepared anew since the start"
        )
    return dataset


def begin(
    assignment: TrialAssignment, folder: ResultsFolder, device: torch.device
) -> tuple[TrialRecord, dict[str, Any] | None]:
    """The record and checkpoint to go on from, those of the newest attempt that has both.

    Epochs that the checkpoint has not seen are dropped.
    """
    make_folder(folder.live_record(assignment.key, assignment.attempt).parent)
    for attempt in attempts_until(folder, assignment.key, assignment.attempt):
        try:
            content = io.BytesIO(folder.checkpoint(assignment.key, attempt).read_bytes())
            checkpoint = torch.load(content, map_location="cpu", weights_only=True)
            record = read_record(folder.live_record(assignment.key, attempt))
        except UNREADABLE as error:
            if store_trouble(error) is not None:
                raise  # what is there cannot be read at this moment
            continue  # there is none yet, or a crash of the machine cut it
        kept = tuple(epoch for epoch in record.epochs if epoch.epoch <= checkpoint["epoch"])
        if len(kept) == checkpoint["epoch"]:
            return _back_to(record, kept), checkpoint
    return initial_record(assignment, device_name(device)), None


def _back_to(record: TrialRecord, kept: tuple[EpochRecord, ...]) -> TrialRecord:
    """``record`` as it was after its epochs ``kept``, the seconds that it had trained by then included."""
    later = sum(epoch.seconds for epoch in record.epochs[len(kept) :])
    return replace(
        record,
        status="running",
        reason=None,
        ended_at=None,
        epochs=kept,
        seconds=record.seconds - later,
        val_metric=kept[-1].val_metric,
        val_loss=kept[-1].val_loss,
    )


def remove_earlier(assignment: TrialAssignment, folder: ResultsFolder) -> None:
    """Drop the checkpoints of earlier attempts, once this one has one of its own."""
    for attempt in attempts_until(folder, assignment.key, assignment.attempt):
        if attempt != assignment.attempt:
            remove_folder(folder.live_record(assignment.key, attempt).parent)


def with_epoch(record: TrialRecord, result: EpochResult) -> TrialRecord:
    """``record`` with one more epoch."""
    train, validation = result.train, result.validation
    if train is None or validation is None:
        raise RuntimeError(f"trial {record.key}: epoch {result.epoch} has no losses and did not diverge")
    gate = validation.gate
    epoch = EpochRecord(
        epoch=result.epoch,
        learning_rate=result.learning_rate,
        train_loss=train.loss,
        train_unsupervised_loss=train.unsupervised_loss,
        train_metric=train.metric,
        val_loss=validation.loss,
        val_unsupervised_loss=validation.unsupervised_loss,
        val_metric=validation.metric,
        gate_min=gate.minimum if gate else None,
        gate_max=gate.maximum if gate else None,
        gate_std=gate.std if gate else None,
        seconds=result.seconds - record.seconds,
        ended_at=time.time(),
    )
    return replace(
        record,
        epochs=(*record.epochs, epoch),
        seconds=result.seconds,
        val_metric=validation.metric,
        val_loss=validation.loss,
    )


def finish(
    assignment: TrialAssignment,
    folder: ResultsFolder,
    record: TrialRecord,
    checkpoint: dict[str, Any],
    dataset: PreparedDataset,
    device: torch.device,
    keep: Callable[[Callable[[], None]], Iterator[StoreTrouble]],
) -> Generator[StoreTrouble, None, TrialRecord]:
    """The record of a trained trial: a confirm trial is measured on train and test, and keeps its weights."""
    finished = record.sealed("finished", checkpoint["reason"], time.time())
    if assignment.phase == "search":
        return finished
    config = assignment.config
    network = load_network(config, checkpoint, device)
    try:
        train = evaluate(network, config, dataset.split("train", config.fold), device)
        test = evaluate(network, config, dataset.split("test", config.fold), device)
    except DivergedError as cause:
        return record.sealed("diverged", f"after epoch {record.num_epochs}: {cause}", time.time())
    weights = folder.live_weights(record.key, assignment.attempt)
    yield from keep(partial(save, {"config": config.to_dict(), "network": network.state_dict()}, weights))
    return replace(
        finished,
        train_metric=train.metric,
        train_loss=train.loss,
        test_metric=test.metric,
        test_loss=test.loss,
        ended_at=time.time(),
    )


def save(content: dict[str, Any], path: Path) -> None:
    """Write a checkpoint or weights, whole or not at all."""
    # Into memory first: of a disk that gets full under it, torch.save says nothing that tells it from a fault.
    buffer = io.BytesIO()
    torch.save(content, buffer)
    write_whole(path, buffer.getvalue())
