"""A network on a split in evaluation mode, and the batches that a model reads of it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from bimp.config import TrialConfig
from bimp.data import DataError, GraphBatch, GraphSplit
from bimp.losses import supervised_loss
from bimp.measurement import Evaluation, Meter
from bimp.network import Network
from bimp.precision import output_of


def evaluate(network: Network, config: TrialConfig, split: GraphSplit, device: torch.device | str) -> Evaluation:
    """Losses, metric and gate of ``network`` on ``split`` in evaluation mode, in which it stays.

    Raises:
        DataError: ``split`` has no graphs.
        DivergedError: a loss is not finite.
    """
    if len(split) == 0:
        raise DataError(f"{config.dataset}: found no graphs in the split to evaluate on, expected at least one")
    network.eval()
    meter = Meter(config)
    with torch.no_grad():
        for batch in batches_read_by(config, split):
            on_device = batch.to(torch.device(device))
            output = output_of(network, on_device, config.train.precision)
            loss = supervised_loss(network.task.kind, output.scores, on_device.y)
            meter.update(on_device, output, loss, with_gate=True)
    return meter.finite_evaluation()


def batches_read_by(config: TrialConfig, split: GraphSplit, order: Tensor | None = None) -> Iterator[GraphBatch]:
    """The batches of ``split``, in ``order``, with the inputs of their edges where the model reads any."""
    read = split if config.model.reads_edge_attr else split.without_edge_attr()
    return read.batches(config.train.batch_size, order=order)
