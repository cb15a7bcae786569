"""Every hyperparameter of a study file: the values it takes, the ranges it can be sampled from, when it exists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, Field, PlainValidator, StrictBool
from pydantic_core import PydanticCustomError

from bimp.config import ConfigError, Gate, Head, NamedPlacement, Placement, Precision, Readout, require_backbone
from bimp.semantics import (
    SETTINGS,
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
    Semantics,
    ValidationLoss,
)
from bimp.tasks import TASKS
from study.spec.domains import ChoiceDomain, FloatDomain, IntDomain
from study.spec.strict import refused

Value = str | int | float | bool | tuple[int, ...] | None
"""The value of a hyperparameter; explicit placements are ascending tuples."""

Values = Mapping[str, Value]
"""Values of hyperparameters by name."""

PLACEMENTS: tuple[NamedPlacement, ...] = get_args(NamedPlacement)
_PLACEMENT_EXPECTED = f"one of {', '.join(PLACEMENTS)}, or a list of layers such as [2, 4]"


def placement_text(placement: Placement) -> str:
    """A placement as one word: its name, or explicit layers as ``2,4``."""
    return placement if isinstance(placement, str) else ",".join(map(str, placement))


def placement_of(text: str) -> Placement:
    """The placement that :func:`placement_text` wrote."""
    for name in PLACEMENTS:
        if text == name:
            return name
    return tuple(int(layer) for layer in text.split(","))


def _dataset(value: str) -> str:
    if value not in TASKS:
        raise refused(value, f"one of {', '.join(TASKS)}")
    return value


def _backbone(value: object) -> str:
    """One of the four, or a layer of the user's own: naming it in a study file is what imports it."""
    try:
        require_backbone(value)
        backbone = str(value)
        if ":" in backbone:
            # The four need no PyTorch to be read.
            from bimp.layers.own import import_layer

            import_layer(backbone)
    except ConfigError as error:
        raise PydanticCustomError("refused", "{message}", {"message": error.message}) from error
    return backbone


def _placement(value: object) -> Placement:
    if isinstance(value, str) and value in PLACEMENTS:
        return placement_of(value)
    if isinstance(value, list | tuple) and value:
        layers = [layer for layer in value if isinstance(layer, int) and not isinstance(layer, bool) and layer >= 1]
        if len(layers) == len(value) == len(set(layers)):
            return tuple(sorted(layers))
        raise refused(value, "a list of different layers, counted from 1")
    # In a list of values, [2, 4] reads as two values.
    hint = " as an entry of its own: [[2, 4]]" if isinstance(value, int) else ""
    raise refused(value, _PLACEMENT_EXPECTED + hint)


Whole = Annotated[int, Field(strict=True, ge=1)]
Count = Annotated[int, Field(strict=True, ge=1, le=1000)]
Width = Annotated[int, Field(strict=True, ge=1, le=100_000)]
Budget = Annotated[int, Field(strict=True, ge=1, le=10**12)]
Batch = Annotated[int, Field(strict=True, ge=1, le=10**9)]
"""Far more than any study wants. A slip beyond would be counted layer by layer, or in numbers that no tensor holds."""

WholeOrZero = Annotated[int, Field(strict=True, ge=0)]
Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
PositiveOrZero = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(strict=True, gt=0, lt=1)]
PlacementValue = Annotated[Any, PlainValidator(_placement)]


@dataclass(frozen=True)
class Hyperparameter:
    """One key of ``arms``, ``space`` and ``fixed``.

    Attributes:
        value: the pydantic type of one value.
        domain: the pydantic type of what stands for it in ``space``; None where it cannot be sampled.
        in_fixed: whether it can stand in ``fixed``.
    """

    value: Any
    domain: Any
    in_fixed: bool = True

    @property
    def sections(self) -> tuple[str, ...]:
        """Where it can stand."""
        return ("arms", *(("space",) if self.domain else ()), *(("fixed",) if self.in_fixed else ()))


HYPERPARAMETERS: dict[str, Hyperparameter] = {
    "dataset": Hyperparameter(Annotated[str, AfterValidator(_dataset)], None, in_fixed=False),
    "backbone": Hyperparameter(Annotated[Any, PlainValidator(_backbone)], None, in_fixed=False),
    "placement": Hyperparameter(PlacementValue, ChoiceDomain[PlacementValue]),
    "gate": Hyperparameter(Gate, ChoiceDomain[Gate]),
    "layers": Hyperparameter(Count, IntDomain[Count]),
    "budget": Hyperparameter(Budget, IntDomain[Budget]),
    "hidden_dim": Hyperparameter(Width, IntDomain[Width]),
    "heads": Hyperparameter(Count, IntDomain[Count]),
    "num_clusters": Hyperparameter(Width, IntDomain[Width]),
    "sigma_m": Hyperparameter(Positive, FloatDomain[Positive]),
    "unsupervised_weight": Hyperparameter(PositiveOrZero, FloatDomain[PositiveOrZero]),
    "readout": Hyperparameter(Readout, ChoiceDomain[Readout]),
    "head": Hyperparameter(Head, ChoiceDomain[Head]),
    "semantics": Hyperparameter(Semantics, ChoiceDomain[Semantics]),
    "batch_size": Hyperparameter(Batch, IntDomain[Batch]),
    "learning_rate": Hyperparameter(Positive, FloatDomain[Positive]),
    "lr_factor": Hyperparameter(Fraction, FloatDomain[Fraction]),
    "lr_patience": Hyperparameter(WholeOrZero, IntDomain[WholeOrZero]),
    "min_lr": Hyperparameter(Positive, FloatDomain[Positive]),
    "max_epochs": Hyperparameter(Whole, None),
    "time_limit_s": Hyperparameter(Positive | None, None),
    "pos_enc_dim": Hyperparameter(Width | None, None),
    "out_dim": Hyperparameter(Width, IntDomain[Width]),
    "last_width": Hyperparameter(LastWidth, ChoiceDomain[LastWidth]),
    "gcn_normalisation": Hyperparameter(GCNNormalisation, ChoiceDomain[GCNNormalisation]),
    "concatenated_row": Hyperparameter(ConcatenatedRow, ChoiceDomain[ConcatenatedRow]),
    "edge_gate": Hyperparameter(EdgeGate, ChoiceDomain[EdgeGate]),
    "edge_features": Hyperparameter(EdgeFeatures, ChoiceDomain[EdgeFeatures]),
    "attention_slope": Hyperparameter(PositiveOrZero, FloatDomain[PositiveOrZero]),
    "attention_bias": Hyperparameter(StrictBool, ChoiceDomain[StrictBool]),
    "gated_attention_slope": Hyperparameter(PositiveOrZero, FloatDomain[PositiveOrZero]),
    "gated_attention_bias": Hyperparameter(StrictBool, ChoiceDomain[StrictBool]),
    "assignment_bias": Hyperparameter(StrictBool, ChoiceDomain[StrictBool]),
    "assignment_width": Hyperparameter(AssignmentWidth, ChoiceDomain[AssignmentWidth]),
    "metric_bias": Hyperparameter(StrictBool, ChoiceDomain[StrictBool]),
    "metric_relu": Hyperparameter(StrictBool, ChoiceDomain[StrictBool]),
    "distance_epsilon": Hyperparameter(PositiveOrZero, FloatDomain[PositiveOrZero]),
    "gate_normalisation": Hyperparameter(GateNormalisation, ChoiceDomain[GateNormalisation]),
    "gate_epsilon": Hyperparameter(PositiveOrZero, FloatDomain[PositiveOrZero]),
    "cut_scope": Hyperparameter(CutScope, ChoiceDomain[CutScope]),
    "cut_adjacency": Hyperparameter(CutAdjacency, ChoiceDomain[CutAdjacency]),
    "cut_epsilon": Hyperparameter(PositiveOrZero, FloatDomain[PositiveOrZero]),
    "reduction": Hyperparameter(Reduction, ChoiceDomain[Reduction]),
    "validation_loss": Hyperparameter(ValidationLoss, ChoiceDomain[ValidationLoss]),
    "clip_norm": Hyperparameter(Positive | None, FloatDomain[Positive]),
    "report": Hyperparameter(Report, ChoiceDomain[Report]),
    "precision": Hyperparameter(Precision, None),
}
"""All of them, by their name in a study file."""

GATE_KEYS = (
    "gate",
    "num_clusters",
    "sigma_m",
    "unsupervised_weight",
    *(name for name, scope in SETTINGS.items() if scope.gated),
)
"""What describes a gate: none of it exists for a vanilla network."""

BACKBONE_OF = {"heads": "gat", **{name: scope.backbone for name, scope in SETTINGS.items() if scope.backbone}}
"""The backbone of each key that means something for a single one."""

DEFAULTS: dict[str, Value] = {"placement": "none", "gate": "bilateral", "sigma_m": 1.0, "unsupervised_weight": 1.0}
"""Values of keys that a study does not give; the others come from the dataset's protocol or from the model."""

PARENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(BACKBONE_OF, ("backbone",)),
    **{key: ("placement", "backbone") if key in BACKBONE_OF else ("placement",) for key in GATE_KEYS},
    "sigma_m": ("placement", "gate"),
}
"""The keys whose values decide whether a key exists; sampled before it."""


def exists(key: str, known: Mapping[str, Value]) -> bool:
    """Whether ``key`` means anything beside the values ``known``.

    Gate keys exist where a layer is gated, ``sigma_m`` where that gate is bilateral (a uniform gate does not depend
    on it), ``heads`` and other keys of one backbone for that.
    """
    if key in GATE_KEYS and known.get("placement", DEFAULTS["placement"]) == "none":
        return False
    if key == "sigma_m" and known.get("gate", DEFAULTS["gate"]) != "bilateral":
        return False
    return key not in BACKBONE_OF or known.get("backbone") == BACKBONE_OF[key]


def existing(given: Mapping[str, Value]) -> dict[str, Value]:
    """The values of ``given`` that exist beside the others."""
    return {key: value for key, value in given.items() if exists(key, given)}


def sampling_order(keys: Iterable[str]) -> list[str]:
    """``keys`` in their order, except that a key comes after those that decide whether it exists."""
    waiting = list(keys)
    order: list[str] = []
    while waiting:
        ready = next(key for key in waiting if not set(PARENTS.get(key, ())) & set(waiting) - {key})
        waiting.remove(ready)
        order.append(ready)
    return order
