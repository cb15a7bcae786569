"""One trial as a worker runs it: data, training, and a record that grows with every epoch.

The worker writes epochs and its own end (finished, diverged, failed); whether it was pruned it cannot know, so the
driver seals the record. Everything here works without Ray: :func:`train_trial` is a plain generator.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch

from bimp.data import DataError, PreparedDataset, open_prepared
from bimp.engine import fit
from bimp.layers.own import import_layer
from study.assignment import TrialAssignment
from study.live_trial import LiveTrial, TrialProgress
from study.location import location
from study.node_data import open_on_node
from study.results import ResultsFolder
from study.store import StoreTrouble, trying

logger = logging.getLogger(__name__)

STORE_PATIENCE_S = 3600.0
"""How long a worker waits for a results folder that refuses, before its trial fails and another gets its place."""


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
    trial = yield from LiveTrial.begin(assignment, folder, dataset, device, keep)
    logger.info("%s", trial.beginning)
    if trial.checkpoint is not None:
        yield from trial.keep_record()
        yield trial.progress
    train, validation = trial.split("train"), trial.split("val")
    for result in fit(assignment.config, train, validation, device=device, checkpoint=trial.checkpoint):
        yield from trial.take(result)
        if result.status == "diverged":
            return
        yield trial.progress
    if trial.checkpoint is None:
        raise RuntimeError(f"{assignment.name}: training ended before its first epoch")
    yield from trial.finish()


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
