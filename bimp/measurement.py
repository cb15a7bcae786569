"""What is measured on a split, batch by batch: losses, the metric and the gate's spread."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from bimp.config import TrialConfig
from bimp.data import GraphBatch
from bimp.metrics import GateSpread, GateStatistics, MetricAccumulator
from bimp.network import NetworkOutput
from bimp.tasks import task_of


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What a network does on one split: mean losses, the metric, the gate's spread.

    Losses are means over graphs and the metric is over the split; with ``reduction: batch`` all three are means of
    the batches' values.
    """

    loss: float
    unsupervised_loss: float | None
    metric: float
    gate: GateStatistics | None


class DivergedError(ArithmeticError):
    """A loss became infinite or not a number; the message says which and where."""


class Meter:
    """Sums over the batches of a split; nothing waits for the device before :meth:`evaluation`."""

    def __init__(self, config: TrialConfig) -> None:
        task = task_of(config.dataset)
        self.by_batch = config.train.reduction == "batch"
        self.metric = MetricAccumulator(task.metric, task.num_outputs, config.train.reduction)
        self.gate = GateSpread()
        self.gated = bool(config.model.gated_layers)
        self.weight = 0
        self.loss: Tensor | float = 0.0
        self.unsupervised_loss: Tensor | float = 0.0

    def update(self, batch: GraphBatch, output: NetworkOutput, loss: Tensor, with_gate: bool = False) -> None:
        """Add a batch, what the network says of it and its supervised loss."""
        self._add_losses(loss.detach(), output.unsupervised_loss, batch.num_graphs)
        self.metric.update(output.scores.detach(), batch.y)
        if with_gate:
            for gate in output.gates:
                self.gate.update(gate.beta_hat, batch)

    def row(self, batch: GraphBatch, output: NetworkOutput, loss: Tensor, with_gate: bool = False) -> Tensor:
        """The same as numbers that :meth:`add` takes later, float64 on the device."""
        losses = [loss.detach(), *([] if output.unsupervised_loss is None else [output.unsupervised_loss.detach()])]
        parts = [torch.stack(losses).double(), self.metric.sums(output.scores.detach(), batch.y).flatten()]
        if with_gate and self.gated:
            extremes, sums = zip(*(self.gate.of_batch(gate.beta_hat, batch) for gate in output.gates), strict=True)
            parts += [torch.stack(extremes).amax(0), torch.stack(sums).sum(0)]
        return torch.cat(parts)

    def columns(self, with_gate: bool = False) -> int:
        """How many numbers are in a row."""
        metric = 2 if self.metric.metric == "mae" else 3 * self.metric.num_outputs
        return 1 + metric + (1 if self.gated else 0) + (5 if with_gate and self.gated else 0)

    def add(self, row: Tensor, graphs: int) -> None:
        """Add a batch of so many ``graphs`` by its row."""
        losses = 2 if self.gated else 1
        self._add_losses(row[0], row[1] if self.gated else None, graphs)
        sums, gate = row[losses : self.columns()], row[self.columns() :]
        self.metric.add(sums if self.metric.metric == "mae" else sums.view(3, -1))
        if gate.numel():
            self.gate.add(gate[:2], gate[2:])

    def finite_evaluation(self) -> Evaluation:
        """As :meth:`evaluation`.

        Raises:
            DivergedError: a loss is not finite.
        """
        result = self.evaluation()
        if not math.isfinite(result.loss):
            raise DivergedError(f"loss {result.loss} in evaluation")
        if result.unsupervised_loss is not None and not math.isfinite(result.unsupervised_loss):
            raise DivergedError(f"unsupervised loss {result.unsupervised_loss} in evaluation")
        return result

    def evaluation(self) -> Evaluation:
        """What was summed so far."""
        return Evaluation(
            loss=float(self.loss) / self.weight,
            unsupervised_loss=float(self.unsupervised_loss) / self.weight if self.gated else None,
            metric=self.metric.value(),
            gate=self.gate.value(),
        )

    def _add_losses(self, loss: Tensor, unsupervised_loss: Tensor | None, graphs: int) -> None:
        weight = 1 if self.by_batch else graphs
        self.weight += weight
        self.loss = self.loss + loss.double() * weight
        if unsupervised_loss is not None:
            self.unsupervised_loss = self.unsupervised_loss + unsupervised_loss.detach().double() * weight
