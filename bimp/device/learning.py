"""What a step on an accelerator does with the batch of one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from bimp.config import TrialConfig
from bimp.data import GraphBatch
from bimp.descent import gradients
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
        self._descend(gradients(loss, list(self._network.parameters())))
        return Meter(self._config).row(batch, output, supervised)

    def look(self, batch: GraphBatch) -> Tensor:
        """Measure the network on ``batch``: its row, the gate's spread in it."""
        output = output_of(self._network, batch, self._config.train.precision)
        _, supervised = self._loss(output, batch.y)
        return Meter(self._config).row(batch, output, supervised, with_gate=True)
