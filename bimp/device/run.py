"""The epochs of one training run on an accelerator, at equal results to the plain loops of :mod:`bimp.engine`.

The dataset lies on the device. The host says once an epoch in which order its graphs come, starts the steps one after
the other and reads once what they left; in between it waits for nothing. Batches are padded to a few sizes, so that
each size's step is captured once and replayed. Where something stands against that, less is done: a layer of the
user's own sees batches as they are, uncaptured, and a dataset that is too large is sent batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from bimp.config import BACKBONES, TrialConfig
from bimp.data import GraphBatch, GraphSplit
from bimp.device.adam import AdamUpdate, clipped
from bimp.device.board import Board
from bimp.device.capture import Capture, Step, capture_on
from bimp.device.resident import ResidentGraphs, fits
from bimp.device.shapes import Buckets, Shape, drawn_shapes, shapes_of
from bimp.measurement import DivergedError, Evaluation, Meter
from bimp.network import Network, NetworkOutput
from bimp.precision import output_of

Learner = Callable[[GraphBatch], Tensor]
"""What is done with a batch; gives the row of numbers that it leaves (:meth:`bimp.measurement.Meter.row`)."""

Loss = Callable[[NetworkOutput, Tensor], tuple[Tensor, Tensor]]


class DeviceRun:
    """Training and validation of one run.

    Args:
        network: on ``device``; its parameters and buffers keep their places as long as this lives.
        optimizer: Adam of the network. Its state is this one's too, so that a checkpoint is like any other.
        config: of the trial.
        loss: what is minimised, and the supervised loss within it, of an output and its labels.
        train, validation: the splits.
        device: where all of it happens.
    """

    def __init__(
        self,
        network: Network,
        optimizer: torch.optim.Adam,
        config: TrialConfig,
        loss: Loss,
        train: GraphSplit,
        validation: GraphSplit,
        device: torch.device,
    ) -> None:
        self._network = network
        self._config = config
        self._loss = loss
        self._update = AdamUpdate(optimizer, device)
        resident = ResidentGraphs.of(train.graphs, device) if fits(train.graphs, device) else None
        capture = capture_on(device, self._state) if resident and config.model.backbone in BACKBONES else None
        self._training = Passage(train, config, resident, device, self._learn, capture, is_training=True)
        same = validation.graphs is train.graphs
        if not same and resident is not None:
            resident = ResidentGraphs.of(validation.graphs, device) if fits(validation.graphs, device) else None
        self._validation = Passage(validation, config, resident, device, self._look, capture, is_training=False)

    def train(self, order: Tensor, signs: Callable[[int], Tensor]) -> Evaluation:
        """One epoch over the graphs of the training split in ``order``.

        Args:
            order: ``[graphs]``, a permutation.
            signs: draws as many signs, for the positional encodings of a step, when it is called.

        Raises:
            DivergedError: the loss of a step was not finite.
        """
        self._network.train()
        self._update.follow_schedule()
        meter, rows = self._training.go(order, signs)
        weight = self._config.train.unsupervised_weight
        losses = rows[:, 0] if weight is None else rows[:, 0] + weight * rows[:, 1]
        for loss in losses[~losses.isfinite()].tolist():
            raise DivergedError(f"loss {loss} in training")
        return meter.evaluation()

    def evaluate(self) -> Evaluation:
        """The network on the validation split, in evaluation mode.

        Raises:
            DivergedError: the loss is not finite.
        """
        self._network.eval()
        with torch.no_grad():
            meter, _ = self._validation.go(None, None)
        return meter.finite_evaluation()

    def _state(self) -> list[Tensor]:
        buffers = list(self._network.buffers())
        return [*self._update.state, *buffers, *self._training.board.state, *self._validation.board.state]

    def _learn(self, batch: GraphBatch) -> Tensor:
        output = output_of(self._network, batch, self._config.train.precision)
        loss, supervised = self._loss(output, batch.y)
        # No gradient is left to accumulate into: what a capture made would be gone by the next one.
        parameters = self._update.parameters
        grads: Sequence[Tensor | None] = torch.autograd.grad(loss, parameters, allow_unused=True)
        if self._config.train.clip_norm is not None:
            grads = clipped(grads, self._config.train.clip_norm)
        for parameter, grad in zip(parameters, grads, strict=True):
            parameter.grad = grad
        self._update()
        for parameter in parameters:
            parameter.grad = None
        return Meter(self._config).row(batch, output, supervised)

    def _look(self, batch: GraphBatch) -> Tensor:
        output = output_of(self._network, batch, self._config.train.precision)
        _, supervised = self._loss(output, batch.y)
        return Meter(self._config).row(batch, output, supervised, with_gate=True)


class Passage:
    """How a split passes through the network, epoch by epoch.

    Args:
        split: the graphs.
        config: of the trial.
        resident: the split's graphs on the device; None: they are sent batch by batch.
        device: where the network lies.
        learner: what is done with each batch.
        capture: how a step of padded batches is captured; None: batches are neither padded nor captured.
        is_training: batches come in a new order each time, and signs of positional encodings are flipped.
    """

    def __init__(
        self,
        split: GraphSplit,
        config: TrialConfig,
        resident: ResidentGraphs | None,
        device: torch.device,
        learner: Learner,
        capture: Capture | None,
        *,
        is_training: bool,
    ) -> None:
        self._split = split
        self._batch_size = config.train.batch_size
        self._resident = resident
        self._device = device
        self._learner = learner
        self._capture = capture
        self._steps: dict[Shape, Step] = {}
        self._config = config
        flips = is_training and config.model.pos_enc_dim is not None and split.graphs.pos_enc is not None
        encodings = split.graphs.pos_enc.shape[1] if flips and split.graphs.pos_enc is not None else None
        self.board = Board(
            len(split), self._batch_size, Meter(config).columns(with_gate=not is_training), encodings, device
        )
        known = drawn_shapes(split, self._batch_size) if is_training else shapes_of(split, self._batch_size)
        self._buckets = Buckets(known if capture else [])

    def go(self, order: Tensor | None, signs: Callable[[int], Tensor] | None) -> tuple[Meter, Tensor]:
        """Pass once, and wait for the end.

        Returns:
            What was measured, and each step's row of it.
        """
        shapes = shapes_of(self._split, self._batch_size, order)
        chosen = self._split.indices if order is None else self._split.indices[order]
        self.board.begin(chosen, self._draw(signs, len(shapes)))
        for shape, picks in zip(shapes, torch.split(chosen, self._batch_size), strict=True):
            self._step(shape, picks)()
        rows = self.board.read()
        meter = Meter(self._config)
        for row, shape in zip(rows, shapes, strict=True):
            meter.add(row, shape.graphs)
        return meter, rows

    def _draw(self, signs: Callable[[int], Tensor] | None, steps: int) -> Tensor | None:
        if signs is None or self.board.signs is None:
            return None
        return torch.stack([signs(self.board.signs.shape[1]) for _ in range(steps)])

    def _step(self, shape: Shape, picks: Tensor) -> Step:
        if self._resident is None:
            return partial(self._on_sent_batch, picks)
        bucket = self._buckets.smallest(shape)
        if bucket is None or self._capture is None:
            return partial(self._on_gathered_batch, self._resident, shape, padded=False)
        if bucket not in self._steps:
            step = partial(self._on_gathered_batch, self._resident, bucket, padded=True)
            self._steps[bucket] = self._capture(step)
        return self._steps[bucket]

    def _on_gathered_batch(self, resident: ResidentGraphs, shape: Shape, *, padded: bool) -> None:
        self._on_batch(resident.gather(self.board.picks(shape.graphs), shape, padded=padded))

    def _on_sent_batch(self, picks: Tensor) -> None:
        self._on_batch(self._split.graphs.gather(picks).to(self._device))

    def _on_batch(self, batch: GraphBatch) -> None:
        signs = self.board.sign_row()
        if signs is not None and batch.pos_enc is not None:
            batch = replace(batch, pos_enc=batch.pos_enc * signs)
        self.board.write(self._learner(batch))
