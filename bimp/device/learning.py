"""What a step on an accelerator does with the batch of one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bimp.config import TrialConfig
from bimp.data import GraphBatch
from bimp.device.adam import AdamUpdate, clipped
from bimp.measurement import Meter
from bimp.network import Network, NetworkOutput
from bimp.precision import output_of

Loss = Callable[[NetworkOutput, Tensor], tuple[Tensor, Tensor]]
"""What is minimised, and the supervised loss within it, of an output and its labels."""

Descend = Callable[[Sequence[Tensor | None]], None]
"""Moves the parameters of a network by their gradients, None where no loss depends on one."""


class Learning:
    """Training and measuring one network.

    Args:
        network: whose parameters and buffers keep their places.
        config: of the trial.
        loss: of the network's outputs.
        descend: moves its parameters.
    """

    def __init__(self, network: Network, config: TrialConfig, loss: Loss, descend: Descend) -> None:
        self._network = network
        self._config = config
        self._loss = loss
        self._descend = descend

    def learn(self, batch: GraphBatch) -> Tensor:
        """Make one training step on ``batch`` and give its row of numbers (:meth:`bimp.measurement.Meter.row`)."""
        output = output_of(self._network, batch, self._config.train.precision)
        loss, supervised = self._loss(output, batch.y)
        self._descend(torch.autograd.grad(loss, list(self._network.parameters()), allow_unused=True))
        return Meter(self._config).row(batch, output, supervised)

    def look(self, batch: GraphBatch) -> Tensor:
        """Measure the network on ``batch``: its row, the gate's spread in it."""
        output = output_of(self._network, batch, self._config.train.precision)
        _, supervised = self._loss(output, batch.y)
        return Meter(self._config).row(batch, output, supervised, with_gate=True)


def descend(update: AdamUpdate, clip_norm: float | None, grads: Sequence[Tensor | None]) -> None:
    """Move the parameters of ``update`` by ``grads``, clipped to a norm of ``clip_norm`` over all of them."""
    if clip_norm is not None:
        grads = clipped(grads, clip_norm)
    for parameter, grad in zip(update.parameters, grads, strict=True):
        parameter.grad = grad
    update()
    # No gradient is left to accumulate into: what a capture made would be gone by the next one.
    for parameter in update.parameters:
        parameter.grad = None
