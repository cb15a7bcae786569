"""One training run, top to bottom: Adam, a plateau schedule, an epoch at a time (docs/protocol.md).

:func:`fit` yields after every epoch and can start from what an earlier run saved: the same seed gives the same
numbers, bit for bit on the same kind of CPU with the same number of threads, whether or not it was interrupted.
What an epoch draws is in :mod:`bimp.epoch_draws`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from bimp.config import TrialConfig
from bimp.data import GraphBatch, GraphSplit
from bimp.data.positional import flip_signs
from bimp.data.source import require_graphs
from bimp.descent import AdamUpdate, descend, gradients
from bimp.device.run import DeviceRun
from bimp.epoch_draws import EpochDraws
from bimp.evaluation import batches_read_by, evaluate
from bimp.losses import supervised_loss
from bimp.measurement import DivergedError, Evaluation, Meter
from bimp.network import Network, NetworkOutput
from bimp.precision import output_of
from bimp.tasks import task_of

CHECKPOINT_FORMAT = 1

RunStatus = Literal["running", "finished", "diverged"]
"""``running``: more epochs follow; ``finished``: the schedule, the last epoch or the time limit ended it."""


@dataclass(frozen=True, kw_only=True)
class EpochResult:
    """One epoch of training and the validation after it.

    Attributes:
        epoch: epochs completed, from 1. Of a diverged run: the epoch in which it diverged.
        learning_rate: in this epoch.
        train: losses and metric as training went (batch normalisation in training mode); None if diverged.
        validation: the same on the validation split in evaluation mode; None if diverged.
        seconds: of training and validation up to here, interruptions left out.
        status, reason: ``finished`` by ``max_epochs``, ``min_lr`` or ``time_limit``; ``diverged`` with its cause.
        checkpoint: gives all that :func:`fit` needs to go on from here; to be called before the next epoch is
            asked for. The value holds tensors and plain values only.
    """

    epoch: int
    learning_rate: float
    train: Evaluation | None
    validation: Evaluation | None
    seconds: float
    status: RunStatus
    reason: str | None
    checkpoint: Callable[[], dict[str, Any]]


class CheckpointError(ValueError):
    """A checkpoint that does not belong to this configuration or is of another format."""


def fit(
    config: TrialConfig,
    train: GraphSplit,
    validation: GraphSplit,
    *,
    device: torch.device | str = "cpu",
    checkpoint: dict[str, Any] | None = None,
) -> Iterator[EpochResult]:
    """Train ``config`` from its seed, or from ``checkpoint``, and yield one result an epoch until it ends.

    A checkpoint of an ended run yields nothing.

    Raises:
        CheckpointError: ``checkpoint`` was made by another configuration, or is of another format.
        DataError: a split without graphs.
    """
    require_graphs(config.dataset, {"train": (train.indices,), "val": (validation.indices,)})
    run = TrainingRun(config, torch.device(device))
    if checkpoint is not None:
        run.restore(checkpoint)
    if run.status == "running" and has_own_path(run.device):
        run.on_device = DeviceRun(run.network, run.optimizer, config, run.loss, train, validation, run.device)
    while run.status == "running":
        yield run.one_epoch(train, validation)


def has_own_path(device: torch.device) -> bool:
    """Whether :class:`~bimp.device.run.DeviceRun` takes the place of the plain loops on ``device``."""
    return device.type == "cuda"


def load_network(config: TrialConfig, checkpoint: dict[str, Any], device: torch.device | str = "cpu") -> Network:
    """The network that a checkpoint of :func:`fit` holds, ready to evaluate.

    Raises:
        CheckpointError: the checkpoint was made by another configuration, or is of another format.
    """
    _check_origin(config, checkpoint)
    network = Network(config.model, task_of(config.dataset)).to(device)
    network.load_state_dict(checkpoint["network"])
    return network


class TrainingRun:
    """The state of a training run between two epochs."""

    def __init__(self, config: TrialConfig, device: torch.device) -> None:
        self.config = config
        self.device = device
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.network = Network(config.model, task_of(config.dataset)).to(device)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=config.train.learning_rate, fused=True)
        self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
            self.optimizer, mode="min", factor=config.train.lr_factor, patience=config.train.lr_patience
        )
        self.epoch = 0
        self.seconds = 0.0
        self.status: RunStatus = "running"
        self.reason: str | None = None
        self.on_device: DeviceRun | None = None

    def one_epoch(self, train: GraphSplit, validation: GraphSplit) -> EpochResult:
        """Train for an epoch and validate."""
        started = time.perf_counter()
        self.epoch += 1
        draws = self.draws
        trained, validated, cause = None, None, None
        try:
            with draws.seeded_layers(self.config.model.backbone, self.device):
                if self.on_device is None:
                    trained = self._train(train)
                    validated = evaluate(self.network, self.config, validation, self.device)
                else:
                    trained = self.on_device.train(draws.order(len(train)), draws.signs())
                    validated = self.on_device.evaluate()
        except DivergedError as error:
            cause = error
        return self.end_epoch(trained, validated, cause, time.perf_counter() - started)

    def end_epoch(
        self, trained: Evaluation | None, validated: Evaluation | None, cause: DivergedError | None, seconds: float
    ) -> EpochResult:
        """Take note of the epoch ``self.epoch`` and decide what follows; ``cause`` if it diverged."""
        learning_rate = self.learning_rate
        self.seconds += seconds
        if cause is not None:
            self.status, self.reason = "diverged", f"epoch {self.epoch}: {cause}"
        elif validated is not None:
            self.scheduler.step(self._watched(validated))
            self._decide()
        return EpochResult(
            epoch=self.epoch,
            learning_rate=learning_rate,
            train=trained,
            validation=validated,
            seconds=self.seconds,
            status=self.status,
            reason=self.reason,
            checkpoint=self.save,
        )

    @property
    def learning_rate(self) -> float:
        """Of the epoch that comes."""
        return float(self.optimizer.param_groups[0]["lr"])

    @property
    def draws(self) -> EpochDraws:
        """What the epoch ``self.epoch`` draws."""
        return EpochDraws(self.config.seed, self.epoch)

    def batches(self, train: GraphSplit) -> Iterator[GraphBatch]:
        """The batches of this epoch in the order of its seed, the signs of positional encodings drawn."""
        signs = self.draws.sign_generator()
        for batch in batches_read_by(self.config, train, self.draws.order(len(train))):
            read = self.config.model.pos_enc_dim
            yield batch if read is None else flip_signs(batch, signs, read)

    def loss(self, output: NetworkOutput, y: Tensor) -> tuple[Tensor, Tensor]:
        """What is minimised, the supervised loss and the weighted unsupervised one, and the supervised loss alone."""
        supervised = supervised_loss(self.network.task.kind, output.scores, y)
        if output.unsupervised_loss is None:
            return supervised, supervised
        weight = self.config.train.unsupervised_weight or 0.0
        return supervised + weight * output.unsupervised_loss, supervised

    def _train(self, train: GraphSplit) -> Evaluation:
        self.network.train()
        meter = Meter(self.config)
        update = AdamUpdate(self.optimizer)
        for batch in self.batches(train):
            on_device = batch.to(self.device)
            output = output_of(self.network, on_device, self.config.train.precision)
            loss, supervised = self.loss(output, on_device.y)
            if not torch.isfinite(loss):
                raise DivergedError(f"loss {loss.item()} in training")
            descend(update, self.config.train.clip_norm, gradients(loss, update.parameters))
            meter.update(on_device, output, supervised)
        return meter.evaluation()

    def _watched(self, validated: Evaluation) -> float:
        """The loss that drives the schedule."""
        if self.config.train.validation_loss == "supervised" or validated.unsupervised_loss is None:
            return validated.loss
        return validated.loss + (self.config.train.unsupervised_weight or 0.0) * validated.unsupervised_loss

    def _decide(self) -> None:
        limit = self.config.train.time_limit_s
        if self.learning_rate < self.config.train.min_lr:
            self.status, self.reason = "finished", "min_lr"
        elif self.epoch >= self.config.train.max_epochs:
            self.status, self.reason = "finished", "max_epochs"
        elif limit is not None and self.seconds >= limit:
            self.status, self.reason = "finished", "time_limit"

    def save(self) -> dict[str, Any]:
        """The checkpoint of the epochs so far, which later ones leave as it is."""
        return {
            "format": CHECKPOINT_FORMAT,
            "config": self.config.to_dict(),
            "epoch": self.epoch,
            "seconds": self.seconds,
            "status": self.status,
            "reason": self.reason,
            "network": deepcopy(self.network.state_dict()),
            "optimizer": deepcopy(self.optimizer.state_dict()),
            "scheduler": deepcopy(self.scheduler.state_dict()),
        }

    def restore(self, checkpoint: dict[str, Any]) -> None:
        """Go on from ``checkpoint``, which stays as it is.

        Raises:
            CheckpointError: it was made by another configuration, or is of another format.
        """
        _check_origin(self.config, checkpoint)
        self.network.load_state_dict(checkpoint["network"])
        self.optimizer.load_state_dict(deepcopy(checkpoint["optimizer"]))
        self.scheduler.load_state_dict(checkpoint["scheduler"])
        self.epoch = checkpoint["epoch"]
        self.seconds = checkpoint["seconds"]
        self.status = checkpoint["status"]
        self.reason = checkpoint["reason"]


def _check_origin(config: TrialConfig, checkpoint: dict[str, Any]) -> None:
    found = checkpoint.get("format")
    if found != CHECKPOINT_FORMAT:
        raise CheckpointError(f"checkpoint: found format {found}, expected {CHECKPOINT_FORMAT}")
    if checkpoint["config"] != config.to_dict():
        raise CheckpointError("checkpoint: it was made by another configuration; delete it or name its own")
