"""In what a cell of ours was not run as a published row was: every such setting, with both values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.published.data_size import has_other_size, published_graphs
from reports.published.rows import OtherRow, PaperRow, paper_datasets, paper_protocols
from reports.records.used_data import UsedData
from reports.summary.summarise import CellSummary

RELEASED = "released"
"""The reading of the paper by which its rows were run: its authors' code."""

UNKNOWN = "not on record"
NOT_SAID = "not said"
SINGLE = "float32"
"""The precision of a configuration that names none."""
_YES = {True: "yes", False: "no"}
_SCHEDULE = ("lr_factor", "lr_patience", "min_lr", "max_epochs", "time_limit_s")
"""The epoch rule: names of ``TrainConfig``, the same in :class:`reports.published.rows.PaperProtocol`."""


@dataclass(frozen=True, kw_only=True)
class Flag:
    """One setting and its values, as text: of our cell, and of the published row."""

    setting: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        return f"{self.setting.replace('_', ' ')} {self.ours} ({self.theirs})"


def flags_text(flags: Sequence[Flag]) -> str:
    """The flags in words, those whose value of ours is not known together at the end."""
    known = [str(flag) for flag in flags if flag.ours != UNKNOWN]
    unknown = [flag.setting.replace("_", " ") for flag in flags if flag.ours == UNKNOWN]
    return "; ".join([*known, *([f"{UNKNOWN}: {', '.join(unknown)}"] if unknown else [])])


@dataclass(frozen=True, kw_only=True)
class OurSide:
    """A cell of ours and what its records tell of how it was run.

    Attributes:
        model, train: of ``config_json``; empty where no confirm trial is on record.
        searched: number of search trials behind the choice. cut: runs that the time limit ended.
        data_fingerprint: of the data that they were run on; None where no confirm trial is on record.
        data: what that holds; None where it is not known.
    """

    summary: CellSummary
    model: Mapping[str, Any]
    train: Mapping[str, Any]
    searched: int
    cut: int
    data_fingerprint: str | None
    data: UsedData | None = None

    @property
    def gate(self) -> str | None:
        """``none`` of a vanilla cell; None where it is still searched."""
        chosen = self.summary.chosen
        return "none" if chosen.placement == "none" else chosen.gate

    @property
    def gated_layers(self) -> frozenset[int] | None:
        """Positions of the gated layers, from 1; None while they are not known."""
        return gated_layers(self.summary.chosen.placement, self.summary.chosen.layers)

    @property
    def edge_features(self) -> bool | None:
        """Whether edge inputs enter the model."""
        if self.summary.cell.backbone != "gated_gcn":
            return False
        given = self.model.get("edge_features")
        return None if given is None else given == "given" and _has_edge_inputs(self.summary.cell.dataset)


def gated_layers(placement: str | None, layers: int | None) -> frozenset[int] | None:
    """Positions, from 1, of the layers that ``placement`` gates in a network of ``layers``; None: not known."""
    if placement is None or layers is None:
        return None
    named = {
        "none": frozenset[int](),
        "boosting": frozenset({2}),
        "interleaved": frozenset(range(2, layers + 1, 2)),
        "dense": frozenset(range(1, layers + 1)),
    }
    if placement in named:
        return named[placement]
    positions = [position.strip() for position in placement.split(",")]
    return frozenset(map(int, positions)) if all(position.isdigit() for position in positions) else None


def model_flags(ours: OurSide, row: PaperRow) -> tuple[Flag, ...]:
    """Where our model is another one than the row's: its depth, the place and kind of its gate, a departing setting."""
    return tuple(_different(_model_settings(ours, row))) + tuple(_departures(ours))


def paper_flags(ours: OurSide, row: PaperRow) -> tuple[Flag, ...]:
    """Every setting in which ``ours`` was not run as a row of the paper."""
    return (*model_flags(ours, row), *_different(_paper_settings(ours, row)), *_own_ways(ours))


def other_flags(ours: OurSide, row: OtherRow, runs: int | None) -> tuple[Flag, ...]:
    """What is known to differ from a row outside the paper, whose training is not on record here.

    Args:
        ours: our cell.
        row: of the benchmark or of a later paper.
        runs: behind the row's number; None: not said.
    """
    chosen, is_later = ours.summary.chosen, runs is None
    settings: list[tuple[str, object, object]] = [
        *([("recipe", "this study's", row.model)] if is_later else []),
        ("backbone", ours.summary.cell.backbone, row.backbone),
        ("gate", ours.gate, "none"),
        ("params", chosen.params, f"budget {row.budget:,}" if row.params is None else row.params),
        ("positional_encoding", _ours(_encodes(ours)), _theirs(row.positional_encoding)),
        ("edge_features", _ours(ours.edge_features), _theirs(row.edge_features)),
        ("runs", ours.summary.finished, NOT_SAID if runs is None else runs),
    ]
    return (*_different(settings), *_departures(ours), *_own_ways(ours))


def _model_settings(ours: OurSide, row: PaperRow) -> Iterator[tuple[str, object, object]]:
    chosen = ours.summary.chosen
    yield "layers", chosen.layers, row.layers
    if ours.gated_layers is None or ours.gated_layers != gated_layers(row.placement, chosen.layers):
        yield "placement", chosen.placement, row.placement
    yield "gate", ours.gate, "none" if row.placement == "none" else "bilateral"


def _paper_settings(ours: OurSide, row: PaperRow) -> Iterator[tuple[str, object, object]]:
    chosen, gated, protocol = ours.summary.chosen, row.placement != "none", paper_protocols()[row.dataset]
    yield "params", chosen.params, row.params_true
    yield "hidden_dim", chosen.hidden_dim, row.hidden_dim
    if row.backbone == "gat":
        yield "heads", ours.model.get("heads"), row.heads
    if ours.model.get("out_dim") is not None:
        yield "out_dim", ours.model["out_dim"], row.out_dim
    yield "positional_encodings", (ours.model.get("pos_enc_dim") or 0) if ours.model else None, row.pos_enc_dim
    yield "edge_features", _ours(ours.edge_features), _theirs(row.edge_features)
    if gated and ours.gate != "none":
        yield "num_clusters", chosen.num_clusters, row.num_clusters
        if ours.gate != "uniform":
            yield "sigma_m", chosen.sigma_m, row.sigma_m
        yield "unsupervised_weight", chosen.unsupervised_weight, protocol.unsupervised_weight
    readout = protocol.gated_readout if gated else protocol.readout
    if readout is not None:
        yield "readout", ours.model.get("readout"), readout
    yield "batch_size", ours.train.get("batch_size"), row.batch_size
    yield "learning_rate", ours.train.get("learning_rate"), row.learning_rate
    for name in _SCHEDULE:
        # No limit of time is a rule as well; only a configuration that does not name it is unknown.
        yield name, ours.train[name] or "none" if name in ours.train else None, getattr(protocol, name)
    yield "semantics", ours.model.get("semantics"), RELEASED
    on_folds = ours.summary.cell.folds is not None
    yield "folds" if on_folds else "seeds", ours.summary.finished, row.runs


def _departures(ours: OurSide) -> Iterator[Flag]:
    preset = ours.model.get("semantics", "the preset")
    for name, value in ours.summary.chosen.departures:
        yield Flag(setting=name, ours=value, theirs=f"not that of {preset}")


def _own_ways(ours: OurSide) -> Iterator[Flag]:
    if ours.searched:
        yield Flag(setting="search", ours=f"of {ours.searched} trials", theirs="none known")
    if ours.data is not None and has_other_size(ours.data):
        yield from _different([("graphs", ours.data.graphs, published_graphs(ours.data))])
    precision = ours.train.get("precision", SINGLE)
    if precision != SINGLE:
        yield Flag(setting="precision", ours=str(precision), theirs=NOT_SAID)
    if ours.cut:
        yield Flag(setting="runs", ours=f"{ours.cut} ended by the time limit", theirs=NOT_SAID)


def _different(settings: Iterable[tuple[str, object, object]]) -> Iterator[Flag]:
    for name, ours, theirs in settings:
        if ours != theirs:
            yield Flag(setting=name, ours=_text(ours), theirs=_text(theirs))


def _text(value: object) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _ours(value: bool | None) -> str:
    return UNKNOWN if value is None else _YES[value]


def _theirs(value: bool | None) -> str:
    return NOT_SAID if value is None else _YES[value]


def _encodes(ours: OurSide) -> bool | None:
    return bool(ours.model.get("pos_enc_dim")) if ours.model else None


def _has_edge_inputs(dataset: str) -> bool:
    return any(row.dataset.casefold() == dataset.casefold() and row.edge_features for row in paper_datasets())
