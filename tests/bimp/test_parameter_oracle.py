"""The parameter counts of the released networks, row by row of the paper's tables.

paper_configs.csv holds facts: for each of the 80 rows of Tables 2, 3, S1 and S3 of "Boosting Graph Neural Networks by
Injecting Pooling in Message Passing" (Kwon and Lee) the widths of the authors' configuration files (hookhy/bi-MP on
GitHub), the count that the paper prints, and the count of the network that those files build.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from bimp.budget import parameters_of
from bimp.config import ModelConfig
from bimp.semantics import MODEL_SETTINGS, Semantics, preset
from bimp.tasks import task_of

with (Path(__file__).parent / "paper_configs.csv").open(encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file))

EVERY_ROW = pytest.mark.parametrize(
    "row", ROWS, ids=[f"{row['table']}-{row['dataset']}-{row['row']}-{row['layers']}" for row in ROWS]
)


def model_of(row: dict[str, str], semantics: Semantics, **changed: Any) -> ModelConfig:
    dataset, backbone, placement = row["dataset"].lower(), row["backbone"], row["placement"]
    gated = placement != "none"
    values = preset(semantics, dataset=dataset, backbone=backbone, gated=gated)
    settings: dict[str, Any] = {key: value for key, value in values.items() if key in MODEL_SETTINGS}
    gate = {"gate": "bilateral", "num_clusters": int(row["num_clusters"]), "sigma_m": 1.0} if gated else {}
    return ModelConfig(
        backbone=backbone,
        layers=int(row["layers"]),
        hidden_dim=int(row["hidden_dim"]),
        heads=int(row["heads"] or 1),
        placement=placement,
        pos_enc_dim=int(row["pos_enc_dim"]) if row["pos_enc_dim"] else None,
        semantics=semantics,
        **{**gate, **settings, **changed},
    )


def count(row: dict[str, str], semantics: Semantics, **changed: Any) -> int:
    return parameters_of(model_of(row, semantics, **changed), task_of(row["dataset"].lower()))


def test_all_rows_are_there() -> None:
    assert len(ROWS) == 80
    assert sum(row["params_true"] != row["params_printed"] for row in ROWS) == 9


@EVERY_ROW
def test_released_counts_are_the_true_ones(row: dict[str, str]) -> None:
    assert count(row, "released") == int(row["params_true"])


@EVERY_ROW
def test_given_features_are_those_of_the_row(row: dict[str, str]) -> None:
    if row["backbone"] == "gated_gcn":
        assert (task_of(row["dataset"].lower()).edge_input != "ones") == (row["edge_feat"] == "True")


@EVERY_ROW
def test_paper_has_k_fewer_for_each_gated_layer(row: dict[str, str]) -> None:
    gated_layers = len(model_of(row, "paper").gated_layers)
    assert count(row, "paper") == int(row["params_true"]) - int(row["num_clusters"] or 0) * gated_layers


def test_the_metrics_bias_alone_is_k_for_each_gated_layer() -> None:
    for row in ROWS:
        gated_layers = len(model_of(row, "paper").gated_layers)
        if gated_layers:
            with_bias = count(row, "released")
            assert with_bias - count(row, "released", metric_bias=False) == int(row["num_clusters"]) * gated_layers
