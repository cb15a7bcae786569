"""What a trial is, as frozen values, and its identity."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from bimp.config.model import ModelConfig
from bimp.config.requirements import ConfigError, require_meaning
from bimp.config.train import TrainConfig
from bimp.semantics import MODEL_SETTINGS, TRAIN_SETTINGS, Setting, preset

Phase = Literal["search", "confirm"]


@dataclass(frozen=True, kw_only=True)
class TrialConfig:
    """One trial: a network trained on one dataset from one seed (and, where the dataset has folds, on one fold).

    Raises:
        ConfigError: a weight of the unsupervised loss where no layer is gated, none where one is, or a setting of the
            training that means nothing here.
    """

    dataset: str
    model: ModelConfig
    train: TrainConfig
    seed: int
    fold: int | None = None

    def __post_init__(self) -> None:
        gated = bool(self.model.gated_layers)
        if gated != (self.train.unsupervised_weight is not None):
            expected = "a number: the network is gated" if gated else "nothing: no layer is gated"
            raise ConfigError("unsupervised_weight", f"found {self.train.unsupervised_weight}, expected {expected}")
        require_meaning(TRAIN_SETTINGS, self.train, self.model.backbone, gated)

    @property
    def settings(self) -> dict[str, Setting]:
        """Every setting that a preset gives and that means something here, with its value."""
        return {
            name: getattr(self.model if name in MODEL_SETTINGS else self.train, name) for name in self._preset_values()
        }

    @property
    def departures(self) -> dict[str, Setting]:
        """The settings whose value is not that of the preset ``model.semantics``, with their values."""
        values = self._preset_values()
        return {name: value for name, value in self.settings.items() if value != values[name]}

    def _preset_values(self) -> Mapping[str, Setting]:
        return preset(
            self.model.semantics,
            dataset=self.dataset,
            backbone=self.model.backbone,
            gated=bool(self.model.gated_layers),
        )

    def to_dict(self) -> dict[str, Any]:
        """A plain nested dict that JSON can hold; :meth:`from_dict` reads it back."""
        plain = asdict(self)
        if isinstance(self.model.placement, tuple):
            # The same trial, in whatever order its gated layers are named.
            plain["model"]["placement"] = list(self.model.gated_layers)
        if self.train.precision == "float32":  # trials of before there was another keep their keys
            del plain["train"]["precision"]
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> TrialConfig:
        """The trial that :meth:`to_dict` wrote."""
        model = dict(plain["model"])
        if isinstance(model["placement"], list):
            model["placement"] = tuple(model["placement"])
        return cls(
            dataset=plain["dataset"],
            model=ModelConfig(**model),
            train=TrainConfig(**plain["train"]),
            seed=plain["seed"],
            fold=plain["fold"],
        )


def trial_key(config: TrialConfig, phase: Phase, data_fingerprint: str) -> str:
    """The identity of a trial: 20 hexadecimal digits of a hash over phase, configuration and data.

    The same trial of the same study has the same key on every machine and at every start.
    """
    identity = {"phase": phase, "config": config.to_dict(), "data": data_fingerprint}
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:20]
