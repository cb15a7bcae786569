from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bimp.config import ModelConfig, TrainConfig, TrialConfig
from bimp.released import ReleasedError, load_config

PARAMS = {
    "seed": 95, "epochs": 1000, "batch_size": 64, "init_lr": 0.002, "lr_reduce_factor": 0.4,
    "lr_schedule_patience": 7, "min_lr": 1e-5, "weight_decay": 0.0, "print_epoch_interval": 5, "max_time": 12,
}  # fmt: skip
NET_PARAMS = {
    "L": 4, "hidden_dim": 19, "out_dim": 152, "n_heads": 8, "residual": True, "readout": "mean",
    "in_feat_dropout": 0.0, "dropout": 0.0, "batch_norm": True, "self_loop": False, "edge_feat": False,
    "layer_type": "dgl", "pool_ratio": 0.25, "pos_enc": False,
}  # fmt: skip
BI_GAT = {
    "gpu": {"use": True, "id": 0}, "model": "biGAT", "dataset": "MNIST", "out_dir": "out/",
    "params": PARAMS, "net_params": NET_PARAMS,
}  # fmt: skip


def changed(section: str | None = None, **values: Any) -> dict[str, Any]:
    if section is None:
        return {**BI_GAT, **values}
    return {**BI_GAT, section: {**BI_GAT[section], **values}}


def test_a_whole_configuration() -> None:
    assert load_config(BI_GAT) == TrialConfig(
        dataset="smnist",
        model=ModelConfig(
            backbone="gat",
            layers=4,
            hidden_dim=19,
            heads=8,
            placement="boosting",
            gate="bilateral",
            num_clusters=18,
            sigma_m=1.0,
            semantics="released",
            gated_attention_slope=0.01,
            gated_attention_bias=True,
            metric_bias=True,
            metric_relu=True,
            distance_epsilon=1e-9,
            gate_epsilon=1e-6,
            cut_scope="batch",
            cut_adjacency="raw",
            cut_epsilon=1e-9,
        ),
        train=TrainConfig(
            max_epochs=1000,
            batch_size=64,
            learning_rate=0.002,
            lr_factor=0.4,
            lr_patience=7,
            min_lr=1e-5,
            unsupervised_weight=1.0,
            time_limit_s=43200.0,
            reduction="batch",
            validation_loss="total",
            clip_norm=0.3,
        ),
        seed=95,
    )


def test_a_file_is_read_as_its_content(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(BI_GAT), encoding="utf-8")
    assert load_config(path) == load_config(str(path)) == load_config(BI_GAT)


@pytest.mark.parametrize(
    ("model", "dataset", "gated_layers"),
    [
        ("GCN", "ZINC", ()),
        ("biGCN", "ZINC", (2,)),
        ("biGCN_ALL", "ZINC", (1, 2, 3, 4, 5, 6, 7)),
        ("biGCN_IL", "ZINC", (2, 4, 6)),
        ("biGCN_IL", "MNIST", (2, 4, 6)),
        ("biGCN_IL", "TSP", (2, 4, 6)),
        ("biGCN_IL", "SBM_CLUSTER", (3, 6)),
        ("biGCN_IL", "SBM_PATTERN", (3, 6)),
    ],
)
def test_placements(model: str, dataset: str, gated_layers: tuple[int, ...]) -> None:
    given = {"model": model, "dataset": dataset, "net_params": {"L": 7, "hidden_dim": 12, "assign_dim": 5}}
    assert load_config(given).model.gated_layers == gated_layers


@pytest.mark.parametrize(
    ("dataset", "ratio", "expected"),
    [("ZINC", 0.25, 9), ("TSP", 0.25, 124), ("SBM_CLUSTER", 0.25, 46), ("CIFAR10", 0.1, 15), ("DD", 0.02, 114),
     ("ENZYMES", 0.1, 12), ("PROTEINS_full", 0.1, 62)],
)  # fmt: skip
def test_clusters_of_the_released_runs(dataset: str, ratio: float, expected: int) -> None:
    given = {"model": "biGCN", "dataset": dataset, "net_params": {"L": 4, "hidden_dim": 12, "pool_ratio": ratio}}
    assert load_config(given).model.num_clusters == expected
    assert load_config(given, num_clusters=3).model.num_clusters == 3
    given["net_params"]["assign_dim"] = 7  # type: ignore[index]
    assert load_config(given, num_clusters=3).model.num_clusters == 7


def test_what_is_absent_is_the_protocol() -> None:
    config = load_config({"model": "GatedGCN", "dataset": "ENZYMES", "net_params": {"L": 4, "hidden_dim": 69}}, fold=3)
    train = config.train
    assert (train.max_epochs, train.batch_size, train.learning_rate, train.lr_patience) == (1000, 20, 7e-4, 25)
    assert (train.time_limit_s, train.unsupervised_weight, config.seed, config.fold) == (None, None, 41, 3)


def test_edge_features_and_encodings() -> None:
    def model(dataset: str, **net_params: Any) -> ModelConfig:
        given = {"L": 4, "hidden_dim": 12, **net_params}
        return load_config({"model": "GatedGCN", "dataset": dataset, "net_params": given}).model

    assert model("ZINC", edge_feat=True).edge_features == "given"
    assert model("ZINC", edge_feat=False).edge_features == "ones"
    # The edges of CLUSTER and of the TU datasets carry ones in any case.
    assert model("SBM_CLUSTER", edge_feat=False).edge_features == "given"
    assert model("ENZYMES", edge_feat=False).edge_features == "given"
    assert model("ZINC", pos_enc=True, pos_enc_dim=8).pos_enc_dim == 8
    assert model("ZINC", pos_enc=False, pos_enc_dim=8).pos_enc_dim is None


def test_width_of_the_last_layer() -> None:
    def last_dim(model: str, dataset: str, **net_params: Any) -> int:
        given = {"L": 4, "hidden_dim": 12, "assign_dim": 5, **net_params}
        return load_config({"model": model, "dataset": dataset, "net_params": given}).model.last_dim

    assert last_dim("GCN", "ZINC", out_dim=12) == 12
    assert last_dim("GCN", "ZINC", out_dim=10) == 10
    assert last_dim("GAT", "ZINC", n_heads=2, out_dim=24) == 24
    assert last_dim("GAT", "ZINC", n_heads=2, out_dim=10) == 10
    assert last_dim("GCN", "SBM_CLUSTER", out_dim=10) == 12
    assert last_dim("biGAT", "SBM_CLUSTER", n_heads=2, out_dim=24) == 12


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (changed(model="biGIN"), "model: found 'biGIN', expected one of GCN, GraphSage, GAT, GatedGCN"),
        (changed(model="GAT_IL"), "model: found 'GAT_IL', expected one of"),
        (changed(dataset="MUTAG"), "dataset: found 'MUTAG', expected one of ZINC, MNIST"),
        (changed(dataset=["ZINC"]), r"dataset: found \['ZINC'\], expected one of ZINC, MNIST"),
        (changed("net_params", pool_ratio=[0.25]), r"net_params\.pool_ratio: found \[0\.25\], expected a number"),
        (changed(extra=1), "extra: found an unknown key"),
        (changed("net_params", hidden=3), r"net_params\.hidden: found an unknown key"),
        (changed("params", momentum=0.9), r"params\.momentum: found an unknown key"),
        (changed("net_params", dropout=0.1), r"net_params\.dropout: found 0.1, expected 0: nothing else is built"),
        (changed("net_params", residual=False), r"net_params\.residual: found False, expected True"),
        (changed("net_params", self_loop=True), r"net_params\.self_loop: found True, expected False"),
        (changed("params", weight_decay=1e-4), r"params\.weight_decay: found 0.0001, expected 0"),
        (changed("params", mode="diffpool"), r"params\.mode: found 'diffpool', expected 'mincut'"),
        (changed("net_params", n_classes=7), r"net_params\.n_classes: found 7, expected 10, as in SMNIST, or nothing"),
        (changed("net_params", pool_ratio=0.5), r"net_params\.assign_dim: found nothing, expected K"),
        (changed("net_params", pos_enc=True), r"net_params\.pos_enc_dim: found nothing"),
        (changed("net_params", hidden_dim="19"), r"net_params\.hidden_dim: found '19', expected a whole number"),
        (changed("params", init_lr="fast"), r"params\.init_lr: found 'fast', expected a number"),
        (changed("net_params", readout="best"), "readout: found 'best', expected one of mean, sum, max"),
        (changed(net_params=[1]), r"net_params: found \[1\], expected a mapping"),
        ({"dataset": "ZINC", "net_params": {}}, "model: found nothing, expected a value"),
    ],
)
def test_what_is_not_of_the_released_code_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ReleasedError, match=f"released configuration: {message}"):
        load_config(given)


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    with pytest.raises(ReleasedError, match=r"broken\.json: found no readable JSON"):
        load_config(path)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(ReleasedError, match=r"broken\.json: found no readable JSON"):
        load_config(path)
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(ReleasedError, match=r"broken\.json: found a list, expected a mapping"):
        load_config(path)
