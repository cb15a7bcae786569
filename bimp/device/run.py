"""The epochs of one training run on an accelerator, at equal results to the plain loops of :mod:`bimp.engine`.

The dataset lies on the device. The host says once an epoch in which order its graphs come, starts the steps one after
the other and reads once what they left; in between it waits for nothing. Batches are padded to a few sizes, so that
each size's step is captured once and replayed. Where something stands against that, less is done: a layer of the
user's own sees batches as they are, uncaptured, and graphs that are too large are sent batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from bimp.config import BACKBONES, TrialConfig
from bimp.data import GraphSplit
from bimp.descent import AdamUpdate, descend
from bimp.device.capture import Capture, State, capture_on
from bimp.device.learning import Learning, Loss
from bimp.device.passage import Passage, Signs
from bimp.device.placing import place
from bimp.measurement import DivergedError, Evaluation, Meter
from bimp.network import Network


class DeviceRun:
    """Training and validation of one run.

    Args:
        network: on ``device``; its parameters and buffers keep their places as long as this lives.
        optimizer: Adam of the network. Its state is this one's too, so that a checkpoint is like any other.
        config: of the trial.
        loss: what is minimised, and the supervised loss within it, of an output and its labels.
        train, validation: the splits.
        device: where all of it happens.
        capturing: how steps are captured there; None: as :func:`~bimp.device.capture.capture_on` does.
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
        capturing: Callable[[torch.device, State], Capture] | None = None,
    ) -> None:
        self._network = network
        self._config = config
        self._update = AdamUpdate(optimizer, device)
        learning = Learning(network, config, loss, partial(descend, self._update, config.train.clip_norm))
        training = place("training", [train], device)
        validating = place("validation", [validation], device, training)
        capture = (capturing or capture_on)(device, self._state) if config.model.backbone in BACKBONES else None
        dtype = next(network.parameters()).dtype
        self._training = Passage(training, config, device, dtype, [learning.learn], capture, is_training=True)
        self._validation = Passage(validating, config, device, dtype, [learning.look], capture, is_training=False)

    def train(self, order: Tensor, signs: Signs) -> Evaluation:
        """One epoch over the graphs of the training split in ``order``.

        Args:
            order: ``[graphs]``, a permutation.
            signs: draws as many signs, for the positional encodings of a step, when it is called.

        Raises:
            DivergedError: the loss of a step was not finite.
        """
        self._network.train()
        self._update.follow_schedule()
        ((meter, rows),) = self._training.go([order], [signs])
        return evaluation_in_training(meter, rows, self._config)

    def evaluate(self) -> Evaluation:
        """The network on the validation split, in evaluation mode.

        Raises:
            DivergedError: a loss is not finite.
        """
        self._network.eval()
        with torch.no_grad():
            ((meter, _),) = self._validation.go(None, None)
        return meter.finite_evaluation()

    def _state(self) -> list[Tensor]:
        buffers = list(self._network.buffers())
        return [*self._update.state, *buffers, *self._training.state, *self._validation.state]


def evaluation_in_training(meter: Meter, rows: Tensor, config: TrialConfig) -> Evaluation:
    """What was measured in an epoch of training.

    Args:
        meter: with all of its steps.
        rows: what each step left, ``[steps, columns]``.
        config: of the trial.

    Raises:
        DivergedError: the loss of a step was not finite.
    """
    weight = config.train.unsupervised_weight
    losses = rows[:, 0] if weight is None else rows[:, 0] + weight * rows[:, 1]
    for loss in losses[~losses.isfinite()].tolist():
        raise DivergedError(f"loss {loss} in training")
    return meter.evaluation()
