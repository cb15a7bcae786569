"""One trial as a worker runs it: data, training, and a record that grows with every epoch.

The worker writes epochs and its own end (finished, diverged, failed); whether it was pruned it cannot know, so the
driver seals the record. Everything here works without Ray: :func:`train_trial` is a plain generator.
"""

from __future__ import annotations

import io
import logging
import pickle
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bimp.data import DataError, PreparedDataset, open_prepared
from bimp.engine import evaluate, fit, load_network
from bimp.layers.own import import_layer
from bimp.measurement import DivergedError
from study.assignment import TrialAssignment
from study.attempts import attempts_until
from study.growing_record import back_to, initial_record, with_epoch
from study.location import location
from study.node_data import open_on_node
from study.provenance import device_name
from study.records import RecordError, TrialRecord, read_record, write_record
from study.results import ResultsFolder
from study.store import StoreTrouble, store_trouble, trying
from study.whole_files import make_folder, remove_folder, write_whole

logger = logging.getLogger(__name__)

STORE_PATIENCE_S = 3600.0
"""How long a worker waits for a results folder that refuses, before its trial fails and another gets its place."""

UNREADABLE = (OSError, EOFError, RuntimeError, ValueError, TypeError, LookupError, pickle.UnpicklingError, RecordError)
"""What reading a checkpoint or a record raises where there is none, and where it was cut or has a wrong byte."""


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
            return back_to(record, kept), checkpoint
    return initial_record(assignment, device_name(device)), None


def remove_earlier(assignment: TrialAssignment, folder: ResultsFolder) -> None:
    """Drop the checkpoints of earlier attempts, once this one has one of its own."""
    for attempt in attempts_until(folder, assignment.key, assignment.attempt):
        if attempt != assignment.attempt:
            remove_folder(folder.live_record(assignment.key, attempt).parent)


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
