"""What a training run is, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from bimp.config.requirements import ConfigError, require_above_zero, require_at_least_one, require_choice
from bimp.semantics import Reduction, Report, ValidationLoss

Precision = Literal["float32", "bfloat16"]

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "reduction": get_args(Reduction),
    "validation_loss": get_args(ValidationLoss),
    "report": get_args(Report),
    "precision": get_args(Precision),
}


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """One training run: Adam under ReduceLROnPlateau on the validation loss.

    Attributes:
        max_epochs: hard end of training.
        batch_size: graphs in a step.
        learning_rate: of Adam, at the start.
        lr_factor: what the learning rate is multiplied by on a plateau.
        lr_patience: epochs without a better validation loss before that.
        min_lr: training stops once the learning rate is below.
        unsupervised_weight: factor of the unsupervised loss (equation 6); None for a vanilla network.
        time_limit_s: seconds of training after which it stops at the end of an epoch; None: no limit.
        reduction: losses and metric of a split are over the whole ``dataset``, or the mean of its batches' (``batch``).
        validation_loss: what drives the schedule: the ``supervised`` loss, or with the weighted unsupervised one
            (``total``).
        clip_norm: gradients are scaled down to this norm where theirs is larger; None: never.
        report: the epoch whose model is measured.
        precision: of the products of matrices in a step, as ``torch.autocast`` chooses them; parameters, gates,
            normalisation and losses stay ``float32``.

    Raises:
        ConfigError: a value that there is not.
    """

    max_epochs: int
    batch_size: int
    learning_rate: float
    lr_factor: float = 0.5
    lr_patience: int = 10
    min_lr: float = 1e-5
    unsupervised_weight: float | None = None
    time_limit_s: float | None = None
    reduction: Reduction = "dataset"
    validation_loss: ValidationLoss = "supervised"
    clip_norm: float | None = None
    report: Report = "last"
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        for key, choices in _CHOICES.items():
            require_choice(key, getattr(self, key), choices)
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ConfigError("clip_norm", f"found {self.clip_norm}, expected a number above 0, or nothing")
        for key in ("max_epochs", "batch_size"):
            require_at_least_one(key, getattr(self, key))
        if self.lr_patience < 0:
            raise ConfigError("lr_patience", f"found {self.lr_patience}, expected 0 or more")
        for key in ("learning_rate", "min_lr"):
            require_above_zero(key, getattr(self, key))
        if self.min_lr > self.learning_rate:
            raise ConfigError("min_lr", f"found {self.min_lr}, expected at most learning_rate = {self.learning_rate}")
        if not 0 < self.lr_factor < 1:
            raise ConfigError("lr_factor", f"found {self.lr_factor}, expected a number between 0 and 1")
        if self.unsupervised_weight is not None and not self.unsupervised_weight >= 0:
            raise ConfigError("unsupervised_weight", f"found {self.unsupervised_weight}, expected 0 or more")
        if self.time_limit_s is not None and not self.time_limit_s > 0:
            raise ConfigError("time_limit_s", f"found {self.time_limit_s}, expected a number above 0, or nothing")
