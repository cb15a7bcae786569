"""A short training of one configuration, to learn what it takes: seconds an epoch, memory, how busy a GPU is."""

from __future__ import annotations

import math
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import mean, median

import torch

from bimp.config import TrialConfig
from bimp.data import GraphSplit
from bimp.engine import fit

BATCHES = 8
"""Batches of a shortened epoch."""

LONG_ENOUGH_S = 2.0
MOST_EPOCHS = 20
_LOOK_EVERY_S = 0.1


class ProbeError(RuntimeError):
    """The configuration could not be trained for a few steps; says why."""


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What one trial takes.

    Attributes:
        seconds_an_epoch: training and validation, on the whole splits.
        memory_bytes: on a GPU, what PyTorch held at most; on a CPU, the most that the process ever held, data and
            libraries in it.
        utilisation: share of the time in which the GPU did anything; None on a CPU, or where nobody can tell.
    """

    seconds_an_epoch: float
    memory_bytes: int
    utilisation: float | None


def probe(config: TrialConfig, train: GraphSplit, validation: GraphSplit, device: torch.device) -> Probe:
    """Train ``config`` on a batch of the largest graphs, then on a few batches of random ones, again and again.

    Nothing is kept. The learning rate is the least, so that no loss grows.

    Raises:
        ProbeError: training diverged all the same.
    """
    slow = replace(config.train, learning_rate=config.train.min_lr, lr_patience=MOST_EPOCHS, time_limit_s=None)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    largest = _largest(train, config.train.batch_size)
    list(_seconds(replace(config, train=replace(slow, max_epochs=1)), largest, largest, device))
    few, few_validation = _shortened(train, validation, config.train.batch_size)
    steps = math.ceil(len(train) / config.train.batch_size)
    steps_of_few = math.ceil(len(few) / config.train.batch_size)
    with _busy(device) as shares:
        seconds = _timed(replace(config, train=replace(slow, max_epochs=MOST_EPOCHS)), few, few_validation, device)
    return Probe(
        seconds_an_epoch=seconds * steps / steps_of_few,
        memory_bytes=_peak_memory(device),
        utilisation=mean(shares) if shares else None,
    )


def _timed(config: TrialConfig, train: GraphSplit, validation: GraphSplit, device: torch.device) -> float:
    """Seconds of an epoch: the median of all but the first, in which libraries warm up."""
    seconds = []
    for epoch in _seconds(config, train, validation, device):
        seconds.append(epoch)
        if len(seconds) > 2 and sum(seconds) > LONG_ENOUGH_S:
            break
    return median(seconds[1:] or seconds)


def _seconds(config: TrialConfig, train: GraphSplit, validation: GraphSplit, device: torch.device) -> Iterator[float]:
    before = 0.0
    for result in fit(config, train, validation, device=device):
        if result.status == "diverged":
            raise ProbeError(f"a short training of {config.dataset} diverged ({result.reason})")
        yield result.seconds - before
        before = result.seconds


def _largest(split: GraphSplit, batch_size: int) -> GraphSplit:
    """The graphs of the split with the most nodes and edges, as many as a batch has."""
    graphs = split.graphs
    sizes = (graphs.node_counts + graphs.edge_counts)[split.indices]
    return GraphSplit(graphs, split.indices[sizes.argsort(descending=True)[:batch_size]])


def _shortened(train: GraphSplit, validation: GraphSplit, batch_size: int) -> tuple[GraphSplit, GraphSplit]:
    """Random graphs of both splits, in the proportion of their sizes."""
    generator = torch.Generator().manual_seed(0)
    count = min(len(train), BATCHES * batch_size)
    of_validation = max(1, round(len(validation) * count / len(train)))
    few, few_validation = (
        GraphSplit(split.graphs, split.indices[torch.randperm(len(split), generator=generator)[:size]])
        for split, size in ((train, count), (validation, of_validation))
    )
    return few, few_validation


def _peak_memory(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.max_memory_reserved(device))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


@contextmanager
def _busy(device: torch.device) -> Iterator[list[float]]:
    """How busy the GPU is from moment to moment while the block runs; nothing on a CPU or without NVIDIA's library."""
    shares: list[float] = []
    if device.type != "cuda":
        yield shares
        return
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_EVERY_S):
            try:
                shares.append(torch.cuda.utilization(device) / 100)
            except Exception:  # noqa: BLE001 - the errors are of NVIDIA's package, which may be missing
                return

    looking = threading.Thread(target=look, name="GPU utilisation", daemon=True)
    looking.start()
    try:
        yield shares
    finally:
        ended.set()
        looking.join()
