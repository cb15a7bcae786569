"""What a configuration takes and refuses, at the bounds themselves."""

from __future__ import annotations

import math
from typing import Any

import pytest

from bimp.config import ConfigError, ModelConfig, TrainConfig, TrialConfig, trial_key
from bimp.tasks import task_of

NAN = math.nan


@pytest.mark.parametrize(
    ("key", "taken", "refused"),
    [
        ("max_epochs", 1, [0, -1]),
        ("batch_size", 1, [0, -1]),
        ("lr_patience", 0, [-1]),
        ("learning_rate", 1e-5, [0.0, -1e-3, NAN]),
        ("min_lr", 1e-3, [0.0, -1e-9, 1.001e-3]),
        ("lr_factor", 0.001, [0.0, -0.5, NAN]),
        ("lr_factor", 0.999, [1.0, 2.0]),
        ("unsupervised_weight", 0.0, [-1e-9, NAN]),
        ("clip_norm", 1e-9, [0.0, -1.0, NAN]),
        ("time_limit_s", 1e-9, [0.0, -1.0, NAN]),
    ],
)
def test_bounds_of_a_training_run(key: str, taken: float, refused: list[float]) -> None:
    def config(value: float) -> TrainConfig:
        values: dict[str, Any] = {"max_epochs": 5, "batch_size": 2, "learning_rate": 1e-3, key: value}
        return TrainConfig(**values)

    assert getattr(config(taken), key) == taken
    for value in refused:
        with pytest.raises(ConfigError, match=f"^{key}: found {value}, expected "):
            config(value)


@pytest.mark.parametrize(
    ("key", "taken", "refused"),
    [
        ("layers", 2, [0, -1]),
        ("hidden_dim", 1, [0]),
        ("heads", 1, [0]),
        ("pos_enc_dim", 1, [0]),
        ("out_dim", 1, [0]),
        ("num_clusters", 1, [0, None]),
        ("sigma_m", 1e-9, [0.0, -1.0, NAN, None]),
        ("gate", "uniform", [None, "soft"]),
        ("placement", (2, 4), ["all", [2, 4], 2, None]),
        ("attention_slope", 0.0, [-0.1, NAN]),
        ("gated_attention_slope", 0.0, [-0.1, NAN]),
        ("distance_epsilon", 0.0, [-1e-9, NAN]),
        ("gate_epsilon", 0.0, [-1e-9, NAN]),
        ("cut_epsilon", 0.0, [-1e-9, NAN]),
    ],
)
def test_bounds_of_a_network(key: str, taken: object, refused: list[object]) -> None:
    def config(value: object) -> ModelConfig:
        values: dict[str, Any] = {"backbone": "gat", "layers": 4, "hidden_dim": 8, "placement": "boosting"}
        gate = {"gate": "bilateral", "num_clusters": 3, "sigma_m": 1.0}
        return ModelConfig(**{**values, **gate, key: value})

    assert getattr(config(taken), key) == taken
    for value in refused:
        with pytest.raises(ConfigError, match=f"^{key}: found "):
            config(value)


def test_layers_by_number_are_asked_for_as_they_are_taken() -> None:
    with pytest.raises(ConfigError, match=r"found \[2\], expected one of none, .* dense or a tuple of layers such as"):
        ModelConfig(backbone="gcn", layers=4, hidden_dim=8, placement=[2])  # type: ignore[arg-type]


def test_a_trial_has_one_key_in_whatever_order_its_gated_layers_are_named() -> None:
    def key(*placement: int) -> str:
        gate: dict[str, Any] = {"gate": "bilateral", "num_clusters": 3, "sigma_m": 1.0, "placement": placement}
        model = ModelConfig(backbone="gcn", layers=4, hidden_dim=8, **gate)
        train = TrainConfig(max_epochs=5, batch_size=2, learning_rate=1e-3, unsupervised_weight=1.0)
        return trial_key(TrialConfig(dataset="zinc", model=model, train=train, seed=41), "confirm", "data")

    assert key(3, 2) == key(2, 3)
    assert key(3, 2) != key(3, 1)


def test_a_dataset_that_is_none_is_told_with_those_that_are() -> None:
    with pytest.raises(KeyError, match="dataset: found 'ZINC', expected one of digits, zinc, smnist, "):
        task_of("ZINC")


@pytest.mark.parametrize(
    ("backbone", "edge_features", "is_read"),
    [("gated_gcn", "given", True), ("gated_gcn", "ones", False), ("gcn", "given", False), ("gat", "given", False)],
)
def test_only_gated_gcn_reads_the_inputs_of_edges_that_a_task_gives(
    backbone: Any, edge_features: Any, is_read: bool
) -> None:
    config = ModelConfig(backbone=backbone, layers=2, hidden_dim=4, edge_features=edge_features)
    assert config.reads_edge_attr is is_read
