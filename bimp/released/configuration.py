"""The released code's own JSON configuration as a :class:`~bimp.config.TrialConfig`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bimp.config import GAT_HEADS, Backbone, ConfigError, ModelConfig, Placement, TrainConfig, TrialConfig
from bimp.semantics import BLOCK_MODELS, MODEL_SETTINGS, TRAIN_SETTINGS, preset
from bimp.tasks import TaskSpec, task_of

DATASETS = {
    "ZINC": "zinc",
    "MNIST": "smnist",
    "CIFAR10": "cifar10",
    "TSP": "tsp",
    "SBM_CLUSTER": "cluster",
    "CLUSTER": "cluster",
    "SBM_PATTERN": "pattern",
    "PATTERN": "pattern",
    "DD": "dd",
    "ENZYMES": "enzymes",
    "PROTEINS_full": "proteins",
}
"""Our name of each dataset of the released code."""

BACKBONES: dict[str, Backbone] = {"GCN": "gcn", "GraphSage": "graphsage", "GAT": "gat", "GatedGCN": "gated_gcn"}
"""Our name of each network of the released code."""

CLUSTERS = {
    ("zinc", 0.25): 9,
    ("smnist", 0.25): 18,
    ("cifar10", 0.1): 15,
    ("tsp", 0.25): 124,
    ("cluster", 0.25): 46,
    ("dd", 0.02): 114,
    ("enzymes", 0.1): 12,
    ("proteins", 0.1): 62,
}
"""K of the released runs by dataset and ``pool_ratio``: the ratio times the most nodes of a graph, rounded down."""

FIRST_SEED = 41
SECONDS_PER_HOUR = 3600

_MODEL = re.compile(rf"(?P<bi>bi)?(?P<backbone>{'|'.join(BACKBONES)})(?P<placement>_IL|_ALL)?")
_MODELS_EXPECTED = f"{', '.join(BACKBONES)}, with bi in front where gated, and then with _IL or _ALL behind or neither"
_TOP_KEYS = {"model", "dataset", "gpu", "out_dir", "params", "net_params"}
_TRAIN_KEYS = {
    "epochs": "max_epochs",
    "batch_size": "batch_size",
    "init_lr": "learning_rate",
    "lr_reduce_factor": "lr_factor",
    "lr_schedule_patience": "lr_patience",
    "min_lr": "min_lr",
}
_PARAMS = {*_TRAIN_KEYS, "seed", "weight_decay", "print_epoch_interval", "max_time", "mode"}
_NET_PARAMS = {
    "L", "hidden_dim", "out_dim", "n_heads", "residual", "readout", "in_feat_dropout", "dropout", "batch_norm",
    "self_loop", "edge_feat", "sage_aggregator", "layer_type", "sigma", "pool_ratio", "pos_enc", "pos_enc_dim",
    "assign_dim", "device", "gpu_id", "in_dim", "in_dim_edge", "n_classes", "num_atom_type", "num_bond_type", "gcn",
    "total_param",
}  # fmt: skip
_ALWAYS = {
    "residual": True, "batch_norm": True, "in_feat_dropout": 0, "dropout": 0, "self_loop": False,
    "sage_aggregator": "maxpool",
}  # fmt: skip
"""What the released runs never change, and what is therefore not built."""


class ReleasedError(ValueError):
    """A configuration or checkpoint that is not of the released code, or that it could not have made."""


def load_config(
    config: Path | str | Mapping[str, Any], *, fold: int | None = None, num_clusters: int | None = None
) -> TrialConfig:
    """The trial that a configuration of the released code describes; its semantics are ``released``.

    What is missing of ``params`` is the benchmark's protocol for the dataset.

    Args:
        config: the configuration, or the path of its JSON file.
        fold: of a dataset with folds, counted from 0, which the configuration does not name.
        num_clusters: K where ``net_params.assign_dim`` is missing, as it is in the files: the released scripts work it
            out from ``pool_ratio`` and the data. It need not be given for the ratios of the released runs.

    Raises:
        ReleasedError: not such a configuration, or one with an unknown key or with a network that is not built here.
    """
    where, given = _read(config)
    try:
        return _trial(given, fold, num_clusters)
    except ConfigError as error:
        raise ReleasedError(f"{where}: {error}") from error


def _read(config: Path | str | Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    if isinstance(config, Mapping):
        return "released configuration", config
    try:
        given = json.loads(Path(config).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReleasedError(f"{config}: found no readable JSON ({error}), expected a released configuration") from error
    if not isinstance(given, dict):
        raise ReleasedError(f"{config}: found a {type(given).__name__}, expected a mapping with model and dataset")
    return str(config), given


def _trial(given: Mapping[str, Any], fold: int | None, num_clusters: int | None) -> TrialConfig:
    _require_known(given, _TOP_KEYS, "")
    params, net_params = _mapping(given, "params"), _mapping(given, "net_params")
    _require_known(params, _PARAMS, "params.")
    _require_known(net_params, _NET_PARAMS, "net_params.")
    task = task_of(DATASETS[_choice(given, "dataset", DATASETS)])
    model = _model(_required(given, "model", ""), task, net_params, num_clusters)
    return TrialConfig(
        dataset=task.dataset,
        model=model,
        train=_train(params, task, model),
        seed=params.get("seed", FIRST_SEED),
        fold=fold,
    )


def _model(name: Any, task: TaskSpec, net_params: Mapping[str, Any], num_clusters: int | None) -> ModelConfig:
    parts = _MODEL.fullmatch(str(name))
    if parts is None or (parts["placement"] and not parts["bi"]):
        raise ConfigError("model", f"found {name!r}, expected one of {_MODELS_EXPECTED}")
    _check_fixed("net_params.", net_params, _ALWAYS)
    _check_inputs(task, net_params)
    backbone, gated = BACKBONES[parts["backbone"]], bool(parts["bi"])
    layers = _whole(net_params, "L")
    hidden_dim = _whole(net_params, "hidden_dim")
    heads = _whole({"n_heads": GAT_HEADS, **net_params}, "n_heads") if backbone == "gat" else 1
    return ModelConfig(
        backbone=backbone,
        layers=layers,
        hidden_dim=hidden_dim,
        heads=heads,
        placement=_placement(parts["placement"], task.dataset, layers) if gated else "none",
        readout=net_params.get("readout", "mean"),
        semantics="released",
        pos_enc_dim=_required(net_params, "pos_enc_dim", "net_params.") if net_params.get("pos_enc") else None,
        out_dim=_out_dim(task.dataset, net_params, heads * hidden_dim),
        **(_gate(task.dataset, net_params, num_clusters) if gated else {}),
        **_settings(task, backbone, gated, net_params),
    )


def _settings(task: TaskSpec, backbone: Backbone, gated: bool, net_params: Mapping[str, Any]) -> dict[str, Any]:
    values = preset("released", dataset=task.dataset, backbone=backbone, gated=gated)
    settings = {key: value for key, value in values.items() if key in MODEL_SETTINGS}
    if backbone == "gated_gcn" and task.edge_input != "ones" and not net_params.get("edge_feat", True):
        settings["edge_features"] = "ones"
    return settings


def _placement(suffix: str | None, dataset: str, layers: int) -> Placement:
    if suffix == "_ALL":
        return "dense"
    if suffix is None:
        return "boosting"
    # The interleaved nets of the block models gate every third layer, those of all other datasets every second.
    return tuple(range(3, layers + 1, 3)) if dataset in BLOCK_MODELS else "interleaved"


def _out_dim(dataset: str, net_params: Mapping[str, Any], row_dim: int) -> int | None:
    """The width of the last layer where it is not that of the others; nets of the block models ignore it."""
    out_dim = net_params.get("out_dim", row_dim)
    return None if dataset in BLOCK_MODELS or out_dim == row_dim else out_dim


def _gate(dataset: str, net_params: Mapping[str, Any], num_clusters: int | None) -> dict[str, Any]:
    return {
        "gate": "bilateral",
        "num_clusters": _clusters(dataset, net_params, num_clusters),
        "sigma_m": _number(net_params.get("sigma", 1.0), "net_params.sigma"),
    }


def _clusters(dataset: str, net_params: Mapping[str, Any], num_clusters: int | None) -> int:
    """K as written, else as the caller says, else as in the released run of that ratio."""
    ratio = _number(net_params.get("pool_ratio", 0.0), "net_params.pool_ratio")
    known: int | None = num_clusters or CLUSTERS.get((dataset, ratio))
    written: int | None = net_params.get("assign_dim", known)
    if written is None:
        raise ConfigError(
            "net_params.assign_dim",
            "found nothing, expected K: pool_ratio times the most nodes of a graph of the data, rounded down",
        )
    return written


def _check_inputs(task: TaskSpec, net_params: Mapping[str, Any]) -> None:
    """Inputs and classes that the released scripts write into the configuration must be those of the dataset."""
    expected = {
        "in_dim": task.node_dim,
        "num_atom_type": task.node_dim,
        "num_bond_type": task.edge_dim,
        "n_classes": task.num_outputs,
    }
    for key, value in expected.items():
        if net_params.get(key, value) != value:
            raise ConfigError(
                f"net_params.{key}", f"found {net_params[key]!r}, expected {value}, as in {task.title}, or nothing"
            )


def _train(params: Mapping[str, Any], task: TaskSpec, model: ModelConfig) -> TrainConfig:
    _check_fixed("params.", params, {"weight_decay": 0, "mode": "mincut"})
    gated = bool(model.gated_layers)
    settings = preset("released", dataset=task.dataset, backbone=model.backbone, gated=gated)
    protocol = task.protocol
    hours = params.get("max_time")
    values: dict[str, Any] = {
        "max_epochs": protocol.max_epochs,
        "batch_size": protocol.batch_size,
        "learning_rate": protocol.learning_rate,
        "lr_patience": protocol.lr_patience,
        "min_lr": protocol.min_lr,
        **{ours: _plain_number(params[key], f"params.{key}") for key, ours in _TRAIN_KEYS.items() if key in params},
        **{key: value for key, value in settings.items() if key in TRAIN_SETTINGS},
    }
    return TrainConfig(
        unsupervised_weight=1.0 if gated else None,
        time_limit_s=None if hours is None else _number(hours, "params.max_time") * SECONDS_PER_HOUR,
        **values,
    )


def _check_fixed(prefix: str, given: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    for key, value in expected.items():
        if given.get(key, value) != value:
            raise ConfigError(f"{prefix}{key}", f"found {given[key]!r}, expected {value!r}: nothing else is built")


def _require_known(given: Mapping[str, Any], known: set[str], prefix: str) -> None:
    unknown = sorted(set(given) - known)
    if unknown:
        raise ConfigError(f"{prefix}{unknown[0]}", f"found an unknown key, expected one of {', '.join(sorted(known))}")


def _whole(net_params: Mapping[str, Any], key: str) -> int:
    value = _required(net_params, key, "net_params.")
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"net_params.{key}", f"found {value!r}, expected a whole number of 1 or more")
    return value


def _plain_number(value: Any, key: str) -> int | float:
    return value if isinstance(value, int) else _number(value, key)


def _number(value: Any, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(key, f"found {value!r}, expected a number")
    return float(value)


def _mapping(given: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = given.get(key, {})
    if not isinstance(value, Mapping):
        raise ConfigError(key, f"found {value!r}, expected a mapping")
    return value


def _required(given: Mapping[str, Any], key: str, prefix: str) -> Any:
    if key not in given:
        raise ConfigError(f"{prefix}{key}", "found nothing, expected a value")
    return given[key]


def _choice(given: Mapping[str, Any], key: str, choices: Mapping[str, str]) -> str:
    value = _required(given, key, "")
    if not isinstance(value, str) or value not in choices:
        raise ConfigError(key, f"found {value!r}, expected one of {', '.join(choices)}")
    return value
