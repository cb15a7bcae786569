"""Where the paper's text and the authors' code part: every difference as a setting, and its value in each reading.

``semantics: paper`` is the paper's text made whole, ``released`` what the authors' code computes. Each setting is a
field of its own of :class:`~bimp.config.ModelConfig` or :class:`~bimp.config.TrainConfig`, so that one can be switched
alone; a value that is not its preset's is a departure. docs/protocol.md says what each one does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Semantics = Literal["paper", "released"]
GateNormalisation = Literal["sigmoid", "softmax"]
CutScope = Literal["graph", "batch"]
CutAdjacency = Literal["normalised", "raw"]
AssignmentWidth = Literal["hidden_dim", "head"]
GCNNormalisation = Literal["mean", "symmetric"]
ConcatenatedRow = Literal["input", "pooled"]
EdgeGate = Literal["updated", "raw"]
EdgeFeatures = Literal["given", "ones"]
LastWidth = Literal["row_dim", "hidden_dim"]
Reduction = Literal["dataset", "batch"]
ValidationLoss = Literal["supervised", "total"]
Report = Literal["last"]

Setting = str | int | float | bool | None
"""The value of a setting."""

SUPERPIXELS = ("smnist", "cifar10")
BLOCK_MODELS = ("cluster", "pattern")
SMALL = ("dd", "enzymes", "proteins")

DISTANCE_EPSILON = 1e-9
GATE_EPSILON = 1e-6
CUT_EPSILON = 1e-9
SUPERPIXEL_CLIP_NORM = 0.3
ATTENTION_SLOPE = 0.2
PER_HEAD_ATTENTION_SLOPE = 0.01
"""Of the released GAT layers that keep each head by itself: all gated ones, and some beside them."""


@dataclass(frozen=True)
class Scope:
    """Where a setting means anything; elsewhere it has its neutral value, and no study file can set it.

    Attributes:
        backbone: the only backbone; None: all.
        gated: whether a layer must be gated.
        neutral: the value that a configuration has where it means nothing.
    """

    neutral: Setting
    backbone: str | None = None
    gated: bool = False

    def holds(self, backbone: str, gated: bool) -> bool:
        """Whether the setting means anything in a network of ``backbone`` of which some layer is ``gated``."""
        return self.backbone in (None, backbone) and (gated or not self.gated)


MODEL_SETTINGS: Mapping[str, Scope] = MappingProxyType(
    {
        "head": Scope("mlp"),
        "last_width": Scope("row_dim", backbone="gat", gated=True),
        "gcn_normalisation": Scope("mean", backbone="gcn"),
        "concatenated_row": Scope("input", backbone="graphsage"),
        "edge_gate": Scope("updated", backbone="gated_gcn"),
        "edge_features": Scope("given", backbone="gated_gcn"),
        "attention_slope": Scope(ATTENTION_SLOPE, backbone="gat"),
        "attention_bias": Scope(False, backbone="gat"),
        "gated_attention_slope": Scope(ATTENTION_SLOPE, backbone="gat", gated=True),
        "gated_attention_bias": Scope(False, backbone="gat", gated=True),
        "assignment_bias": Scope(True, gated=True),
        "assignment_width": Scope("hidden_dim", backbone="gat", gated=True),
        "metric_bias": Scope(False, gated=True),
        "metric_relu": Scope(False, gated=True),
        "distance_epsilon": Scope(0.0, gated=True),
        "gate_normalisation": Scope("sigmoid", gated=True),
        "gate_epsilon": Scope(0.0, gated=True),
        "cut_scope": Scope("graph", gated=True),
        "cut_adjacency": Scope("normalised", gated=True),
        "cut_epsilon": Scope(0.0, gated=True),
    }
)
"""Settings of the network, by field of ``ModelConfig``."""

TRAIN_SETTINGS: Mapping[str, Scope] = MappingProxyType(
    {
        "reduction": Scope("dataset"),
        "validation_loss": Scope("supervised", gated=True),
        "clip_norm": Scope(None),
        "report": Scope("last"),
    }
)
"""Settings of the training, by field of ``TrainConfig``."""

SETTINGS: Mapping[str, Scope] = MappingProxyType({**MODEL_SETTINGS, **TRAIN_SETTINGS})
"""Every setting that a preset gives."""


def preset(semantics: Semantics, *, dataset: str, backbone: str, gated: bool) -> Mapping[str, Setting]:
    """The value of every setting that means anything in such a network, under ``semantics``."""
    values = _released(dataset, backbone, gated) if semantics == "released" else _paper(dataset, gated)
    return MappingProxyType({name: values[name] for name, scope in SETTINGS.items() if scope.holds(backbone, gated)})


def _paper(dataset: str, gated: bool) -> dict[str, Setting]:
    return {**{name: scope.neutral for name, scope in SETTINGS.items()}, **_shape_of_gat(dataset, gated)}


def _shape_of_gat(dataset: str, gated: bool) -> dict[str, Setting]:
    """What the text leaves open of bi-GAT and its tables count: the same in both readings."""
    return {
        "last_width": "hidden_dim" if gated and dataset in BLOCK_MODELS else "row_dim",
        "gated_attention_bias": dataset != "zinc",
    }


def _released(dataset: str, backbone: str, gated: bool) -> dict[str, Setting]:
    guards_the_root = backbone in ("gat", "graphsage")
    each_head_by_itself = gated and dataset in ("tsp", *SMALL)
    return {
        "head": "mlp",
        **_shape_of_gat(dataset, gated),
        "gcn_normalisation": "mean",
        "concatenated_row": "pooled",
        "edge_gate": "raw",
        "edge_features": "given",
        "attention_slope": PER_HEAD_ATTENTION_SLOPE if each_head_by_itself else ATTENTION_SLOPE,
        "attention_bias": False,
        "gated_attention_slope": PER_HEAD_ATTENTION_SLOPE,
        "assignment_bias": True,
        "assignment_width": "hidden_dim",
        "metric_bias": True,
        "metric_relu": backbone == "gat",
        "distance_epsilon": DISTANCE_EPSILON if guards_the_root else 0.0,
        "gate_normalisation": "softmax" if backbone == "graphsage" else "sigmoid",
        "gate_epsilon": GATE_EPSILON,
        "cut_scope": "batch",
        "cut_adjacency": "raw",
        "cut_epsilon": CUT_EPSILON if backbone == "gat" else 0.0,
        "reduction": "batch",
        "validation_loss": "total" if gated else "supervised",
        "clip_norm": SUPERPIXEL_CLIP_NORM if gated and dataset in SUPERPIXELS else None,
        "report": "last",
    }
