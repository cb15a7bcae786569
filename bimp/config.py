"""What one trial is: its model, its training and its data, as frozen values.

A :class:`TrialConfig` is complete: nothing that changes a result is left to a default elsewhere.
Its hash, :func:`trial_key`, is the identity of the trial: the same on every machine and at every start.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from bimp.semantics import (
    ATTENTION_SLOPE,
    MODEL_SETTINGS,
    TRAIN_SETTINGS,
    AssignmentWidth,
    ConcatenatedRow,
    CutAdjacency,
    CutScope,
    EdgeFeatures,
    EdgeGate,
    GateNormalisation,
    GCNNormalisation,
    LastWidth,
    Reduction,
    Report,
    Scope,
    Semantics,
    Setting,
    ValidationLoss,
    preset,
)

NamedBackbone = Literal["gcn", "graphsage", "gat", "gated_gcn"]
Backbone = str
"""A :data:`NamedBackbone`, or a layer of the user's own as ``module:Class`` (see :mod:`bimp.layers.own`)."""
NamedPlacement = Literal["none", "boosting", "interleaved", "dense"]
Placement = NamedPlacement | tuple[int, ...]
Gate = Literal["bilateral", "uniform"]
Readout = Literal["mean", "sum", "max"]
Head = Literal["mlp", "linear"]
Phase = Literal["search", "confirm"]
Precision = Literal["float32", "bfloat16"]

BACKBONES: tuple[NamedBackbone, ...] = get_args(NamedBackbone)
GAT_HEADS = 8
"""Heads of every GAT of the benchmark (the last layer has a single one)."""


_OWN_LAYER = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


class ConfigError(ValueError):
    """A configuration that no model or training can be built from; names the key and what was expected."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"{key}: {message}")
        self.key = key
        self.message = message


def require_backbone(backbone: object) -> None:
    """Check that ``backbone`` is one of the four or has the form ``module:Class``; nothing is imported.

    Raises:
        ConfigError: it is neither.
    """
    if isinstance(backbone, str) and ":" in backbone:
        if _OWN_LAYER.fullmatch(backbone) is None:
            raise ConfigError("backbone", f"found {backbone!r}, expected module:Class such as my_lab.layers:MyConv")
    else:
        _require_choice("backbone", backbone, BACKBONES)


def gated_layers(placement: Placement, layers: int) -> tuple[int, ...]:
    """Positions, counted from 1, of the layers that carry a gate (paper, section 3.3 and figure S1).

    ``boosting`` gates layer 2, ``interleaved`` the even layers, ``dense`` all; a tuple names them.

    Raises:
        ConfigError: an explicit layer lies outside ``1..layers``, or stands twice, or a placement other
            than ``none`` gates no layer of so shallow a network.
    """
    if isinstance(placement, tuple):
        outside = [layer for layer in placement if not 1 <= layer <= layers]
        if outside or not placement or len(set(placement)) != len(placement):
            raise ConfigError(
                "placement", f"found layers {list(placement)}, expected different layers from 1 to {layers}"
            )
        return tuple(sorted(placement))
    positions = {
        "none": (),
        "boosting": (2,) if layers >= 2 else (),
        "interleaved": tuple(range(2, layers + 1, 2)),
        "dense": tuple(range(1, layers + 1)),
    }
    if placement not in positions:
        raise ConfigError(
            "placement", f"found {placement!r}, expected one of {', '.join(positions)} or a list of layers"
        )
    if placement != "none" and not positions[placement]:
        raise ConfigError("placement", f"{placement!r} gates no layer of a network of {layers}; expected layers >= 2")
    return positions[placement]


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """One network: a backbone of ``layers`` layers, some of which are gated.

    Attributes:
        backbone: the message-passing layer (appendix, equations S1 to S12), or one of the user's own as
            ``module:Class``.
        layers: number of layers L.
        hidden_dim: width of a layer; for ``gat`` the width of one head.
        heads: attention heads of ``gat``; 1 for the others.
        placement: which layers are gated.
        gate: ``bilateral`` (equation 10), ``uniform`` (the control beta_hat = 1/deg), None for a vanilla network.
        num_clusters: K of the soft assignment (equation 5); None for a vanilla network.
        sigma_m: sensitivity of the modular gradient (equation 8); None for a vanilla network.
        readout: how node rows become a graph row (equation 4); used by graph-level tasks.
        head: ``mlp`` of three layers (as every printed count needs) or one ``linear`` layer (equations 2, 3).
        pos_enc_dim: number of positional encodings that a linear layer adds to the node embedding; None: none.
        out_dim: width of the last layer's rows; None: as ``last_width`` says.
        semantics: the reading of the paper that the settings below are taken from; it changes nothing by itself.
        last_width: without ``out_dim``, the last layer of ``gat`` is ``row_dim`` or one head's ``hidden_dim`` wide.
        gcn_normalisation: neighbours are averaged (S1), or summed with (deg_u deg_v)^-1/2 (``symmetric``).
        concatenated_row: of the node itself in GraphSAGE: ``input`` h_v (S3), or ``pooled`` ReLU(V h_v).
        edge_gate: GatedGCN's gate comes from the ``updated`` residual row of an edge (S10), or the ``raw`` row before
            its normalisation.
        edge_features: ``given`` by the task, or constant ``ones``.
        attention_slope, attention_bias: of ``gat``'s layers without a gate: negative slope of the LeakyReLU, and
            whether projection and attention have biases. ``gated_...``: the same of its gated layers.
        assignment_bias: whether the two assignment layers have biases.
        assignment_width: D' between them: ``hidden_dim``, or the width of a ``head`` of the gated layer (they part in
            the last layer of ``gat`` only).
        metric_bias, metric_relu: ``D = ||f((s_u - s_v) W_m + b)||`` with b, and with a ReLU as f.
        distance_epsilon: added inside the square root of D and to the exponent of beta; 0: D = 0 has gradient 0.
        gate_normalisation: beta_hat is ``sigmoid(beta)`` over its sum (equation 10), or a ``softmax`` of beta.
        gate_epsilon: added to the sum of the sigmoids.
        cut_scope: the unsupervised loss is of each ``graph``, averaged, or of the whole ``batch`` as one graph.
        cut_adjacency: its adjacency, ``normalised`` D^-1/2 A D^-1/2, or ``raw`` with out-degrees.
        cut_epsilon: added to the min-cut ratio and, within its norm, to every entry of S^T S.
    """

    backbone: Backbone
    layers: int
    hidden_dim: int
    heads: int = 1
    placement: Placement = "none"
    gate: Gate | None = None
    num_clusters: int | None = None
    sigma_m: float | None = None
    readout: Readout = "mean"
    head: Head = "mlp"
    pos_enc_dim: int | None = None
    out_dim: int | None = None
    semantics: Semantics = "paper"
    last_width: LastWidth = "row_dim"
    gcn_normalisation: GCNNormalisation = "mean"
    concatenated_row: ConcatenatedRow = "input"
    edge_gate: EdgeGate = "updated"
    edge_features: EdgeFeatures = "given"
    attention_slope: float = ATTENTION_SLOPE
    attention_bias: bool = False
    gated_attention_slope: float = ATTENTION_SLOPE
    gated_attention_bias: bool = False
    assignment_bias: bool = True
    assignment_width: AssignmentWidth = "hidden_dim"
    metric_bias: bool = False
    metric_relu: bool = False
    distance_epsilon: float = 0.0
    gate_normalisation: GateNormalisation = "sigmoid"
    gate_epsilon: float = 0.0
    cut_scope: CutScope = "graph"
    cut_adjacency: CutAdjacency = "normalised"
    cut_epsilon: float = 0.0

    def __post_init__(self) -> None:
        require_backbone(self.backbone)
        _require_choice("readout", self.readout, get_args(Readout))
        for key, choices in _MODEL_CHOICES.items():
            _require_choice(key, getattr(self, key), choices)
        for key in ("layers", "hidden_dim", "heads"):
            _require_at_least_one(key, getattr(self, key))
        for key in ("pos_enc_dim", "out_dim"):
            if getattr(self, key) is not None:
                _require_at_least_one(key, getattr(self, key))
        for key in ("attention_slope", "gated_attention_slope", "distance_epsilon", "gate_epsilon", "cut_epsilon"):
            if not getattr(self, key) >= 0:
                raise ConfigError(key, f"found {getattr(self, key)}, expected 0 or more")
        if self.heads != 1 and self.backbone != "gat":
            raise ConfigError("heads", f"found {self.heads} on {self.backbone}, expected 1: only gat has heads")
        if self.gated_layers:
            _require_choice("gate", self.gate, get_args(Gate))
            _require_at_least_one("num_clusters", self.num_clusters)
            if self.sigma_m is None or not self.sigma_m > 0:
                raise ConfigError("sigma_m", f"found {self.sigma_m}, expected a number above 0")
        else:
            for key in ("gate", "num_clusters", "sigma_m"):
                if getattr(self, key) is not None:
                    raise ConfigError(key, f"found {getattr(self, key)!r}, expected nothing: no layer is gated")
        _require_meaning(MODEL_SETTINGS, self, self.backbone, bool(self.gated_layers))

    @property
    def gated_layers(self) -> tuple[int, ...]:
        """Positions of the gated layers, counted from 1."""
        return gated_layers(self.placement, self.layers)

    @property
    def row_dim(self) -> int:
        """Width of a node's row between layers: ``heads * hidden_dim``."""
        return self.heads * self.hidden_dim

    @property
    def last_dim(self) -> int:
        """Width of a node's row after the last layer."""
        if self.out_dim is not None:
            return self.out_dim
        return self.hidden_dim if self.last_width == "hidden_dim" else self.row_dim


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
        for key, choices in _TRAIN_CHOICES.items():
            _require_choice(key, getattr(self, key), choices)
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ConfigError("clip_norm", f"found {self.clip_norm}, expected a number above 0, or nothing")
        for key in ("max_epochs", "batch_size"):
            _require_at_least_one(key, getattr(self, key))
        if self.lr_patience < 0:
            raise ConfigError("lr_patience", f"found {self.lr_patience}, expected 0 or more")
        for key in ("learning_rate", "min_lr"):
            if not getattr(self, key) > 0:
                raise ConfigError(key, f"found {getattr(self, key)}, expected a number above 0")
        if self.min_lr > self.learning_rate:
            raise ConfigError("min_lr", f"found {self.min_lr}, expected at most learning_rate = {self.learning_rate}")
        if not 0 < self.lr_factor < 1:
            raise ConfigError("lr_factor", f"found {self.lr_factor}, expected a number between 0 and 1")
        if self.unsupervised_weight is not None and not self.unsupervised_weight >= 0:
            raise ConfigError("unsupervised_weight", f"found {self.unsupervised_weight}, expected 0 or more")
        if self.time_limit_s is not None and not self.time_limit_s > 0:
            raise ConfigError("time_limit_s", f"found {self.time_limit_s}, expected a number above 0, or nothing")


@dataclass(frozen=True, kw_only=True)
class TrialConfig:
    """One trial: a network trained on one dataset from one seed (and, where the dataset has folds, on one fold)."""

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
        _require_meaning(TRAIN_SETTINGS, self.train, self.model.backbone, gated)

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
            plain["model"]["placement"] = list(self.model.placement)
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


_MODEL_CHOICES: Mapping[str, tuple[str, ...]] = {
    "head": get_args(Head),
    "semantics": get_args(Semantics),
    "last_width": get_args(LastWidth),
    "gcn_normalisation": get_args(GCNNormalisation),
    "concatenated_row": get_args(ConcatenatedRow),
    "edge_gate": get_args(EdgeGate),
    "edge_features": get_args(EdgeFeatures),
    "assignment_width": get_args(AssignmentWidth),
    "gate_normalisation": get_args(GateNormalisation),
    "cut_scope": get_args(CutScope),
    "cut_adjacency": get_args(CutAdjacency),
}
_TRAIN_CHOICES: Mapping[str, tuple[str, ...]] = {
    "reduction": get_args(Reduction),
    "validation_loss": get_args(ValidationLoss),
    "report": get_args(Report),
    "precision": get_args(Precision),
}


def _require_meaning(scopes: Mapping[str, Scope], settings: object, backbone: str, gated: bool) -> None:
    """One network has one configuration: a setting that means nothing in it has its neutral value."""
    for key, scope in scopes.items():
        value = getattr(settings, key)
        if value != scope.neutral and not scope.holds(backbone, gated):
            where = "a network without a gate" if scope.backbone in (None, backbone) else backbone
            raise ConfigError(key, f"found {value!r}, expected {scope.neutral!r}: it means nothing in {where}")


def _require_choice(key: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(key, f"found {value!r}, expected one of {', '.join(choices)}")


def _require_at_least_one(key: str, value: int | None) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(key, f"found {value!r}, expected a whole number of 1 or more")
