"""What the models of a table are called: the paper's names, and what tells apart rows that share one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reports.summary.summarise import CellSummary

BACKBONE_NAMES = {"gcn": "GCN", "graphsage": "GraphSAGE", "gat": "GAT", "gated_gcn": "GatedGCN"}
DISTINGUISHING = ("num_clusters", "sigma_m", "unsupervised_weight", "budget", "hidden_dim")
"""What is appended to names, in this order, where it was searched and to equal names where its values differ."""


@dataclass(frozen=True, kw_only=True)
class Detail:
    """A setting and its value as text; ``key`` is a field of ``Chosen``, or ``cell`` for a cell's id."""

    key: str
    value: str


@dataclass(frozen=True, kw_only=True)
class Label:
    """A model's name: ``prefix``-``name`` (details). The prefix is set in italics; a vanilla model has none."""

    prefix: str | None
    name: str
    details: tuple[Detail, ...] = ()


def is_vanilla_cell(summary: CellSummary) -> bool:
    """Whether the plan makes this cell a baseline, which stands on the left."""
    return summary.cell.placement == "none"


def detail(summary: CellSummary, key: str) -> Detail:
    """The cell's value of ``key``; ``searched`` while the search has not chosen it."""
    # A width tells cells apart where the plan fixes it; one solved from the budget only follows from the rest.
    value = getattr(summary.cell if key == "hidden_dim" else summary.chosen, key)
    if value is None:
        return Detail(key=key, value="searched")
    if not isinstance(value, float):
        return Detail(key=key, value=str(value))
    # A sampled number has more digits than a name bears; the tidy table holds them all.
    is_sampled = getattr(summary.cell, key) is None
    return Detail(key=key, value=f"{value:.3g}" if is_sampled else f"{value:g}")


def label_cells(summaries: Sequence[CellSummary]) -> tuple[Label, ...]:
    """The names of cells that stand together between two rules of a table, told apart where they would be equal.

    A name carries the value of what was searched within its cell, or is an arm of the gate here, and has no column.
    Cells whose number of layers differs need no more than that: it has its own column.
    """
    plain = [_plain_label(summary) for summary in summaries]
    labels = [
        replace(label, details=tuple(detail(summary, key) for key in _named(summary, summaries)))
        for label, summary in zip(plain, summaries, strict=True)
    ]
    names = [(label, summary.chosen.layers) for label, summary in zip(plain, summaries, strict=True)]
    for name in sorted(set(names), key=names.index):
        places = [place for place, other in enumerate(names) if other == name]
        if len(places) > 1:
            for place, details in zip(places, _distinguish([summaries[place] for place in places]), strict=True):
                labels[place] = replace(labels[place], details=details)
    return tuple(labels)


def model_label(backbone: str, placement: str | None, gate: str | None) -> Label:
    """The name of a model, as in the paper; ``placement`` is None where it is not known."""
    name = BACKBONE_NAMES.get(backbone, backbone.rpartition(":")[2])
    if placement == "none":
        return Label(prefix=None, name=name)
    where = None if placement in (None, "boosting") else placement
    if where and where[0].isdigit():
        where = f"layers {where}"
    if gate == "uniform":
        return Label(prefix=f"uniform {where}" if where else "uniform", name=name)
    return Label(prefix=where or "bi", name=name)


def _plain_label(summary: CellSummary) -> Label:
    return model_label(summary.cell.backbone, summary.chosen.placement, summary.chosen.gate)


def _settings_that_differ(summary: CellSummary, together: Sequence[CellSummary]) -> Iterator[Detail]:
    """Of equal names, what not all have of semantics, encodings, departures and other settings."""
    for name in ("semantics", "pos_enc_dim"):
        value = getattr(summary.cell, name)
        if value is not None and any(getattr(other.cell, name) != value for other in together):
            yield Detail(key=name, value=str(value))
    for name, value in summary.cell.departures:
        if any((name, value) not in other.cell.departures for other in together):
            yield Detail(key=name, value=value)
    for name, value in summary.cell.other_settings or ():
        if any(dict(other.cell.other_settings or ()).get(name, value) != value for other in together):
            yield Detail(key=name, value=value)


def _named(summary: CellSummary, together: Sequence[CellSummary]) -> tuple[str, ...]:
    """What a name carries: what was searched, and the arms of the gate in which cells that stand together differ."""
    arms = {
        key
        for key in ("num_clusters", "sigma_m", "unsupervised_weight")
        if getattr(summary.cell, key) is not None and len({getattr(other.cell, key) for other in together} - {None}) > 1
    }
    return tuple(key for key in DISTINGUISHING if key in summary.searched or key in arms)


def _distinguish(summaries: Sequence[CellSummary]) -> list[tuple[Detail, ...]]:
    keys = [
        key
        for key in DISTINGUISHING
        if any(key in _named(summary, summaries) for summary in summaries)
        or len({detail(summary, key) for summary in summaries}) > 1
    ]
    details = [
        (*(detail(summary, key) for key in keys), *_settings_that_differ(summary, summaries)) for summary in summaries
    ]
    count = Counter(details)
    return [
        found if count[found] == 1 else (*found, Detail(key="cell", value=summary.cell.id))
        for found, summary in zip(details, summaries, strict=True)
    ]
