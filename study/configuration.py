"""A whole trial from the values that a study gives: the rest by the dataset's protocol, semantics and budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from bimp.budget import solve_hidden_dim
from bimp.config import GAT_HEADS, ConfigError, ModelConfig, TrainConfig, TrialConfig, gated_layers
from bimp.semantics import MODEL_SETTINGS, TRAIN_SETTINGS, Semantics, Setting, preset
from bimp.tasks import TaskSpec, task_of
from study.spec.hyperparameters import DEFAULTS, Values, existing


def configuration(values: Values, *, seed: int, fold: int | None) -> TrialConfig:
    """The whole trial of ``values``, which hold all that the study gives; the rest is by the dataset's protocol.

    Keys that do not exist beside the others are dropped; the width comes from the budget.

    Raises:
        ConfigError: a key that is needed has no value, or no such network or training can be built.
    """
    given: dict[str, Any] = existing(values)
    task = task_of(given["dataset"])
    given = {**_preset(given), **given}
    model = _model(given, task)
    train = _train(given, task, is_gated=bool(model.gated_layers))
    return TrialConfig(dataset=task.dataset, model=model, train=train, seed=seed, fold=fold)


def _preset(given: Mapping[str, Any]) -> Mapping[str, Setting]:
    """What the study's semantics say of every setting; a value that it gives itself departs from that."""
    semantics: Semantics = given.get("semantics", "paper")
    gated = given.get("placement", DEFAULTS["placement"]) != "none"
    return preset(semantics, dataset=given["dataset"], backbone=given["backbone"], gated=gated)


def _model(given: Mapping[str, Any], task: TaskSpec) -> ModelConfig:
    placement = given.get("placement", DEFAULTS["placement"])
    size = "hidden_dim" if "hidden_dim" in given else "budget"
    for key in ("layers", size, *(("num_clusters",) if placement != "none" else ())):
        if key not in given:
            raise ConfigError(key, "found no value, expected one: the condition on it does not hold")
    layers = given["layers"]
    is_gated = bool(gated_layers(placement, layers))
    gate = {
        "gate": given.get("gate", DEFAULTS["gate"]),
        "num_clusters": given.get("num_clusters"),
        "sigma_m": given.get("sigma_m", DEFAULTS["sigma_m"]),
    }
    model = ModelConfig(
        backbone=given["backbone"],
        layers=layers,
        hidden_dim=given.get("hidden_dim", 1),
        heads=given.get("heads", GAT_HEADS if given["backbone"] == "gat" else 1),
        placement=placement,
        **(gate if is_gated else {}),
        **{key: given[key] for key in ("readout", "semantics", "pos_enc_dim", "out_dim") if key in given},
        **{key: given[key] for key in MODEL_SETTINGS if key in given},
    )
    if "hidden_dim" in given:
        return model
    # A gate's sensitivity is no parameter of the network, and both gates have the same: one width serves them all.
    alike = replace(model, gate="bilateral", sigma_m=1.0) if is_gated else model
    return replace(model, hidden_dim=_width(alike, task, given["budget"]))


@lru_cache(maxsize=4096)
def _width(model: ModelConfig, task: TaskSpec, budget: int) -> int:
    return solve_hidden_dim(model, task, budget).hidden_dim


def _train(given: Mapping[str, Any], task: TaskSpec, *, is_gated: bool) -> TrainConfig:
    protocol = task.protocol
    return TrainConfig(
        max_epochs=given.get("max_epochs", protocol.max_epochs),
        batch_size=given.get("batch_size", protocol.batch_size),
        learning_rate=given.get("learning_rate", protocol.learning_rate),
        lr_patience=given.get("lr_patience", protocol.lr_patience),
        min_lr=given.get("min_lr", protocol.min_lr),
        unsupervised_weight=given.get("unsupervised_weight", DEFAULTS["unsupervised_weight"]) if is_gated else None,
        **{key: given[key] for key in ("lr_factor", "time_limit_s", "precision", *TRAIN_SETTINGS) if key in given},
    )
