"""What the models of a table are called: the paper's names, and what tells apart rows that share one."""

from __future__ import annotations

from collections import Counter, defaultdict
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
        replace(label, details=tuple(detail(summary, key) for key in named))
        for label, summary, named in zip(plain, summaries, _named(summaries), strict=True)
    ]
    places_of: defaultdict[tuple[Label, int | None], list[int]] = defaultdict(list)
    for place, (label, summary) in enumerate(zip(plain, summaries, strict=True)):
        places_of[label, summary.chosen.layers].append(place)
    for places in places_of.values():
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


def _settings_that_differ(together: Sequence[CellSummary]) -> Iterator[tuple[Detail, ...]]:
    """Of each of several equal names, what not all have of semantics, encodings, departures and other settings."""
    cells = [summary.cell for summary in together]
    own = {name: {getattr(cell, name) for cell in cells} for name in ("semantics", "pos_enc_dim")}
    departing = Counter(departure for cell in cells for departure in set(cell.departures))
    values: defaultdict[str, set[str]] = defaultdict(set)
    for name, value in (setting for cell in cells for setting in cell.other_settings or ()):
        values[name].add(value)
    for cell in cells:
        told = {name: getattr(cell, name) for name, found in own.items() if len(found) > 1}
        yield (
            *(Detail(key=name, value=str(value)) for name, value in told.items() if value is not None),
            *(Detail(key=name, value=value) for name, value in cell.departures if departing[name, value] < len(cells)),
            # A plan of an older version lacks some: then these tell nothing apart.
            *(Detail(key=name, value=value) for name, value in cell.other_settings or () if len(values[name]) > 1),
        )


def _named(together: Sequence[CellSummary]) -> list[tuple[str, ...]]:
    """What each name carries: what was searched, and the arms of the gate in which cells that stand together differ."""
    arms = {
        key
        for key in ("num_clusters", "sigma_m", "unsupervised_weight")
        if len({getattr(summary.cell, key) for summary in together} - {None}) > 1
    }
    return [
        tuple(
            key
            for key in DISTINGUISHING
            # Of what the plan gives a gate nothing is left where the search chose a vanilla model.
            if key in summary.searched or (key in arms and getattr(summary.chosen, key) is not None)
        )
        for summary in together
    ]


def _distinguish(summaries: Sequence[CellSummary]) -> list[tuple[Detail, ...]]:
    named = {key for keys in _named(summaries) for key in keys}
    keys = [key for key in DISTINGUISHING if key in named or len({detail(summary, key) for summary in summaries}) > 1]
    details = [
        (*(detail(summary, key) for key in keys), *differing)
        for summary, differing in zip(summaries, _settings_that_differ(summaries), strict=True)
    ]
    count = Counter(details)
    return [
        found if count[found] == 1 else (*found, Detail(key="cell", value=summary.cell.id))
        for found, summary in zip(details, summaries, strict=True)
    ]
