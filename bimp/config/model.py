"""What a network is, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from bimp.config.backbone import Backbone, require_backbone
from bimp.config.placement import Placement, gated_layers
from bimp.config.requirements import (
    ConfigError,
    require_above_zero,
    require_at_least_one,
    require_choice,
    require_meaning,
)
from bimp.semantics import (
    ATTENTION_SLOPE,
    MODEL_SETTINGS,
    AssignmentWidth,
    ConcatenatedRow,
    CutAdjacency,
    CutScope,
    EdgeFeatures,
    EdgeGate,
    GateNormalisation,
    GCNNormalisation,
    LastWidth,
    Semantics,
)

Gate = Literal["bilateral", "uniform"]
Readout = Literal["mean", "sum", "max"]
Head = Literal["mlp", "linear"]

_CHOICES: Mapping[str, tuple[str, ...]] = {
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

    Raises:
        ConfigError: a value that there is not, of a gate where no layer is gated, or of a setting that means nothing
            in this network.
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
        require_choice("readout", self.readout, get_args(Readout))
        for key, choices in _CHOICES.items():
            require_choice(key, getattr(self, key), choices)
        for key in ("layers", "hidden_dim", "heads"):
            require_at_least_one(key, getattr(self, key))
        for key in ("pos_enc_dim", "out_dim"):
            if getattr(self, key) is not None:
                require_at_least_one(key, getattr(self, key))
        for key in ("attention_slope", "gated_attention_slope", "distance_epsilon", "gate_epsilon", "cut_epsilon"):
            if not getattr(self, key) >= 0:
                raise ConfigError(key, f"found {getattr(self, key)}, expected 0 or more")
        if self.heads != 1 and self.backbone != "gat":
            raise ConfigError("heads", f"found {self.heads} on {self.backbone}, expected 1: only gat has heads")
        if self.gated_layers:
            require_choice("gate", self.gate, get_args(Gate))
            require_at_least_one("num_clusters", self.num_clusters)
            require_above_zero("sigma_m", self.sigma_m)
        else:
            for key in ("gate", "num_clusters", "sigma_m"):
                if getattr(self, key) is not None:
                    raise ConfigError(key, f"found {getattr(self, key)!r}, expected nothing: no layer is gated")
        require_meaning(MODEL_SETTINGS, self, self.backbone, bool(self.gated_layers))

    @property
    def gated_layers(self) -> tuple[int, ...]:
        """Positions of the gated layers, counted from 1."""
        return gated_layers(self.placement, self.layers)

    @property
    def reads_edge_attr(self) -> bool:
        """Whether the inputs of the edges have a part in anything."""
        return self.backbone == "gated_gcn" and self.edge_features == "given"

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
