from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from graph_batches import DIRECTED, PATH, batch_of

from bimp.config import BACKBONES, ConfigError, ModelConfig, TrainConfig, TrialConfig
from bimp.network import Network
from bimp.semantics import MODEL_SETTINGS, SETTINGS, TRAIN_SETTINGS, Semantics, preset
from bimp.tasks import TASKS


def trial(
    semantics: Semantics, backbone: str, dataset: str = "zinc", gated: bool = True, **changed: Any
) -> TrialConfig:
    values = {**preset(semantics, dataset=dataset, backbone=backbone, gated=gated), **changed}
    gate = {"placement": "boosting", "gate": "bilateral", "num_clusters": 3, "sigma_m": 1.0} if gated else {}
    heads = 2 if backbone == "gat" else 1
    return TrialConfig(
        dataset=dataset,
        model=ModelConfig(
            backbone=backbone,
            layers=2,
            hidden_dim=8,
            heads=heads,
            semantics=semantics,
            **gate,
            **{key: value for key, value in values.items() if key in MODEL_SETTINGS},
        ),
        train=TrainConfig(
            max_epochs=1,
            batch_size=2,
            learning_rate=1e-3,
            unsupervised_weight=1.0 if gated else None,
            **{key: value for key, value in values.items() if key in TRAIN_SETTINGS},
        ),
        seed=0,
    )


def test_every_setting_is_a_field_and_its_neutral_value_the_default() -> None:
    defaults = {field.name: field.default for record in (ModelConfig, TrainConfig) for field in fields(record)}
    assert {name: scope.neutral for name, scope in SETTINGS.items()} == {name: defaults[name] for name in SETTINGS}


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("dataset", list(TASKS))
@pytest.mark.parametrize("backbone", BACKBONES)
def test_presets_are_whole_and_without_departures(backbone: str, dataset: str, gated: bool) -> None:
    for semantics in ("paper", "released"):
        config = trial(semantics, backbone, dataset, gated)
        assert config.departures == {}
        meaningful = {name for name, scope in SETTINGS.items() if scope.holds(backbone, gated)}
        assert set(config.settings) == meaningful


def test_paper_is_what_a_configuration_has_by_itself() -> None:
    model = ModelConfig(backbone="gcn", layers=2, hidden_dim=8)
    train = TrainConfig(max_epochs=1, batch_size=1, learning_rate=1e-3)
    assert TrialConfig(dataset="zinc", model=model, train=train, seed=0).departures == {}


def test_where_the_two_presets_part() -> None:
    def parts(backbone: str, dataset: str, gated: bool) -> dict[str, Any]:
        released = preset("released", dataset=dataset, backbone=backbone, gated=gated)
        paper = preset("paper", dataset=dataset, backbone=backbone, gated=gated)
        return {name: value for name, value in released.items() if value != paper[name]}

    gate = {"metric_bias": True, "gate_epsilon": 1e-6, "cut_scope": "batch", "cut_adjacency": "raw"}
    training = {"reduction": "batch", "validation_loss": "total"}
    assert parts("gcn", "zinc", gated=False) == {"reduction": "batch"}
    assert parts("gcn", "zinc", gated=True) == {**gate, **training}
    assert parts("gcn", "smnist", gated=True) == {**gate, **training, "clip_norm": 0.3}
    assert parts("gcn", "smnist", gated=False) == {"reduction": "batch"}
    assert parts("gated_gcn", "tsp", gated=False) == {"edge_gate": "raw", "reduction": "batch"}
    assert parts("graphsage", "dd", gated=True) == {
        **gate, **training, "concatenated_row": "pooled", "distance_epsilon": 1e-9, "gate_normalisation": "softmax",
    }  # fmt: skip
    gat = {**gate, **training, "metric_relu": True, "distance_epsilon": 1e-9, "cut_epsilon": 1e-9,
           "gated_attention_slope": 0.01}  # fmt: skip
    assert parts("gat", "zinc", gated=True) == gat
    assert parts("gat", "zinc", gated=False) == {"reduction": "batch"}
    assert parts("gat", "cifar10", gated=True) == {**gat, "clip_norm": 0.3}
    assert parts("gat", "cluster", gated=True) == gat
    assert parts("gat", "enzymes", gated=True) == {**gat, "attention_slope": 0.01}


@pytest.mark.parametrize("semantics", ["paper", "released"])
def test_both_presets_give_bi_gat_the_shape_that_its_tables_count(semantics: Semantics) -> None:
    def shape(dataset: str) -> tuple[Any, Any]:
        values = preset(semantics, dataset=dataset, backbone="gat", gated=True)
        return values["gated_attention_bias"], values["last_width"]

    assert shape("zinc") == (False, "row_dim")
    assert shape("cifar10") == shape("enzymes") == (True, "row_dim")
    assert shape("cluster") == shape("pattern") == (True, "hidden_dim")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("head", "linear"),
        ("metric_bias", False),
        ("metric_relu", True),
        ("distance_epsilon", 1e-5),
        ("assignment_bias", False),
        ("gate_normalisation", "softmax"),
        ("gate_epsilon", 0.0),
        ("cut_scope", "graph"),
        ("cut_adjacency", "normalised"),
        ("cut_epsilon", 1e-9),
        ("gcn_normalisation", "symmetric"),
        ("reduction", "dataset"),
        ("validation_loss", "supervised"),
        ("clip_norm", 1.0),
    ],
)
def test_a_single_setting_is_a_departure(name: str, value: Any) -> None:
    config = trial("released", "gcn", **{name: value})
    assert config.departures == {name: value}
    assert TrialConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("name", "value", "places"),
    [
        ("head", "linear", ()),
        ("last_width", "hidden_dim", ("gat", "gated")),
        ("gcn_normalisation", "symmetric", ("gcn",)),
        ("concatenated_row", "pooled", ("graphsage",)),
        ("edge_gate", "raw", ("gated_gcn",)),
        ("edge_features", "ones", ("gated_gcn",)),
        ("attention_slope", 0.01, ("gat",)),
        ("attention_bias", True, ("gat",)),
        ("gated_attention_slope", 0.01, ("gat", "gated")),
        ("gated_attention_bias", True, ("gat", "gated")),
        ("assignment_bias", False, ("gated",)),
        ("assignment_width", "head", ("gat", "gated")),
        ("metric_bias", True, ("gated",)),
        ("metric_relu", True, ("gated",)),
        ("distance_epsilon", 1e-5, ("gated",)),
        ("gate_normalisation", "softmax", ("gated",)),
        ("gate_epsilon", 1e-6, ("gated",)),
        ("cut_scope", "batch", ("gated",)),
        ("cut_adjacency", "raw", ("gated",)),
        ("cut_epsilon", 1e-9, ("gated",)),
        ("validation_loss", "total", ("gated",)),
    ],
)
def test_a_setting_is_refused_where_it_means_nothing(name: str, value: Any, places: tuple[str, ...]) -> None:
    """``places``: the backbones, all if none is named, and ``gated`` for such networks alone."""
    backbones = [backbone for backbone in BACKBONES if backbone in places] or BACKBONES
    for backbone in BACKBONES:
        for gated in (True, False):
            if backbone in backbones and (gated or "gated" not in places):
                part = "model" if name in MODEL_SETTINGS else "train"
                assert getattr(getattr(trial("paper", backbone, gated=gated, **{name: value}), part), name) == value
                continue
            where = "a network without a gate" if backbone in backbones else backbone
            expected = f"^{name}: found {value!r}, expected .*: it means nothing in {where}$"
            with pytest.raises(ConfigError, match=expected):
                trial("paper", backbone, gated=gated, **{name: value})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("semantics", "mine", "found 'mine', expected one of paper, released"),
        ("edge_gate", "late", "found 'late', expected one of updated, raw"),
        ("gate_epsilon", -1.0, "found -1.0, expected 0 or more"),
        ("out_dim", 0, "found 0, expected a whole number of 1 or more"),
        ("pos_enc_dim", 2.5, "found 2.5, expected a whole number of 1 or more"),
    ],
)
def test_wrong_values_are_named(name: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}: {message}"):
        replace(trial("paper", "gated_gcn").model, **{name: value})


def test_width_of_the_last_layer() -> None:
    gat = trial("paper", "gat").model
    assert (gat.row_dim, gat.last_dim) == (16, 16)
    assert replace(gat, last_width="hidden_dim").last_dim == 8
    assert replace(gat, out_dim=5).last_dim == 5


WITHOUT_EFFECT: tuple[tuple[str, str, dict[str, Any], dict[str, Any]], ...] = (
    ("gcn", "cluster", {"readout": "mean"}, {"readout": "sum"}),
    ("gated_gcn", "cluster", {"edge_features": "given"}, {"edge_features": "ones"}),
    ("gat", "zinc", {"out_dim": 8, "last_width": "row_dim"}, {"out_dim": 8, "last_width": "hidden_dim"}),
    *(
        ("gcn", "zinc", {"gate": "uniform"}, {"gate": "uniform", **setting})
        for setting in (
            {"metric_relu": True},
            {"distance_epsilon": 0.1},
            {"gate_normalisation": "softmax"},
            {"gate_epsilon": 0.1},
        )
    ),
)
"""Backbone, dataset, and two settings of the same network; docs/search_spaces.md names them."""


@pytest.mark.parametrize(("backbone", "dataset", "one", "other"), WITHOUT_EFFECT)
def test_settings_that_are_told_to_be_without_effect(
    backbone: str, dataset: str, one: dict[str, Any], other: dict[str, Any]
) -> None:
    batch = batch_of(PATH, DIRECTED, x=torch.arange(7) % 7)
    scores = []
    for changed in (one, other):
        torch.manual_seed(0)
        network = Network(replace(trial("paper", backbone, dataset).model, **changed), TASKS[dataset])
        scores.append(network(batch).scores)
    assert torch.equal(*scores)
