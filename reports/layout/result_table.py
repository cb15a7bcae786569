"""The shape of the paper's tables 2 and 3: a block a dataset, vanilla models on the left, gated ones on the right."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from reports.published.data_size import amount_text, has_other_size
from reports.records.load import StudyResults
from reports.records.plan import PlanCell
from reports.summary.labels import Label, is_vanilla_cell, label_cells
from reports.summary.marks import Mark, best_cells, mark
from reports.summary.summarise import CellSummary, summarise, trials_outside_plan
from reports.words.prose import Note, Text, caption, notes

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One cell where it stands in the table; ``faces`` is the id of the vanilla cell it is compared with."""

    summary: CellSummary
    label: Label
    mark: Mark
    faces: str | None


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the table; a side is None where nothing faces the other, or where it stands in a row above."""

    vanilla: Entry | None
    gated: Entry | None


@dataclass(frozen=True, kw_only=True)
class Block:
    """One dataset; its sections (one for each depth and budget) are lists of rows parted by a rule."""

    title: str
    metric: str
    sections: tuple[tuple[Row, ...], ...]


@dataclass(frozen=True, kw_only=True)
class ResultTable:
    """A table ready to be written in any format."""

    study: str
    caption: Text
    blocks: tuple[Block, ...]
    notes: tuple[Note, ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every cell once, in the order of reading."""
        return tuple(_entries(self.blocks))


def build_table(results: StudyResults) -> ResultTable:
    """The table of a study, its cells in the plan's order.

    Raises:
        ResultsError: a confirm record holds no configuration.
    """
    summaries = summarise(results)
    blocks = tuple(_block(group) for group in _grouped((summary.cell.dataset, summary) for summary in summaries))
    labelled = tuple((entry.summary, entry.label) for entry in _entries(blocks))
    return ResultTable(
        study=results.plan.study,
        caption=caption(results.plan.caption, summaries),
        blocks=blocks,
        notes=(*_other_sizes(results, summaries), *notes(labelled, trials_outside_plan(results))),
    )


OTHER_SIZES = "Trained and tested on another number of graphs than the paper's dataset of that name has:"
"""Heading of the note on them."""


def _other_sizes(results: StudyResults, summaries: Sequence[CellSummary]) -> tuple[Note, ...]:
    cells = {summary.cell.id: summary.cell for summary in summaries}
    fingerprints = dict.fromkeys(
        (cells[trial.cell].dataset, trial.data_fingerprint)
        for trial in results.trials
        if trial.phase == "confirm" and trial.cell in cells
    )
    other = [
        (dataset, results.data[found])
        for dataset, found in fingerprints
        if found in results.data and has_other_size(results.data[found])
    ]
    items: tuple[Text, ...] = tuple((f"{used.title}: {amount_text(used)}",) for _, used in other)
    return (Note(heading=OTHER_SIZES, items=items, about=tuple(dataset for dataset, _ in other)),) if other else ()


Pair = tuple[CellSummary | None, CellSummary | None]


def _block(summaries: Sequence[CellSummary]) -> Block:
    best = best_cells(summaries)
    # A section is what the plan fixes, not what a search chose: a row keeps its place as results come in.
    sections = _grouped(((_lead(pair).layers, _lead(pair).budget), pair) for pair in _pairs(summaries))
    return Block(
        title=summaries[0].cell.dataset_title,
        metric=summaries[0].cell.metric,
        sections=tuple(_rows(section, best) for section in sections),
    )


def _entries(blocks: Iterable[Block]) -> Iterable[Entry]:
    rows = (row for block in blocks for section in block.sections for row in section)
    return (entry for row in rows for entry in (row.vanilla, row.gated) if entry)


def _pairs(summaries: Sequence[CellSummary]) -> list[Pair]:
    vanillas = [summary for summary in summaries if is_vanilla_cell(summary)]
    facing = {summary.cell.id: _vanilla_of(summary, vanillas) for summary in summaries if not is_vanilla_cell(summary)}
    pairs: list[Pair] = []
    for summary in summaries:
        if summary in vanillas:
            gated = [other for other in summaries if facing.get(other.cell.id) is summary]
            pairs += [(summary, other) for other in gated] or [(summary, None)]
        elif facing[summary.cell.id] is None:
            pairs.append((None, summary))
    return pairs


def _vanilla_of(gated: CellSummary, vanillas: Sequence[CellSummary]) -> CellSummary | None:
    """The vanilla cell of the same backbone, semantics, layers and budget; None without one, or a single closest."""
    candidates = [vanilla for vanilla in vanillas if _comparable(gated, vanilla)]
    closeness = [_closeness(gated, vanilla) for vanilla in candidates]
    closest = [place for place, value in enumerate(closeness) if value == max(closeness)]
    return candidates[closest[0]] if len(closest) == 1 else None


def _closeness(gated: CellSummary, vanilla: CellSummary) -> tuple[int, int, int]:
    """In how much two comparable cells agree beside that; where the first are equal the second decides, and so on."""
    departures = set(gated.cell.departures) ^ set(vanilla.cell.departures)
    return (
        sum(getattr(gated.chosen, key) == getattr(vanilla.chosen, key) for key in ("layers", "budget", "hidden_dim"))
        + sum(getattr(gated.cell, key) == getattr(vanilla.cell, key) for key in ("departures", "pos_enc_dim")),
        -len(departures),
        len(set(gated.cell.other_settings or ()) & set(vanilla.cell.other_settings or ())),
    )


def _comparable(gated: CellSummary, vanilla: CellSummary) -> bool:
    # Two cells that both search their depth are arms of one comparison, whichever depths they end up with.
    return (
        gated.cell.backbone == vanilla.cell.backbone
        and (gated.cell.hidden_dim is None) == (vanilla.cell.hidden_dim is None)
        and (gated.cell.semantics == vanilla.cell.semantics or None in (gated.cell.semantics, vanilla.cell.semantics))
        and all(_same(gated, vanilla, key) for key in ("layers", "budget"))
    )


def _same(gated: CellSummary, vanilla: CellSummary, key: str) -> bool:
    chosen = getattr(gated.chosen, key)
    settled = chosen is not None and chosen == getattr(vanilla.chosen, key)
    return settled or bool(getattr(gated.cell, key) == getattr(vanilla.cell, key))


def _lead(pair: Pair) -> PlanCell:
    return next(summary.cell for summary in pair if summary is not None)


def _rows(pairs: Sequence[Pair], best: frozenset[str]) -> tuple[Row, ...]:
    left = {vanilla.cell.id: vanilla for vanilla, _ in pairs if vanilla}
    right = {gated.cell.id: gated for _, gated in pairs if gated}
    labels = {
        cell_id: label
        for side in (left, right)
        for cell_id, label in zip(side, label_cells(tuple(side.values())), strict=True)
    }

    def entry(summary: CellSummary | None, vanilla: CellSummary | None) -> Entry | None:
        if summary is None:
            return None
        return Entry(
            summary=summary,
            label=labels[summary.cell.id],
            mark=mark(summary, vanilla, best),
            faces=vanilla.cell.id if vanilla else None,
        )

    shown: set[str] = set()
    rows = []
    for vanilla, gated in pairs:
        repeated = vanilla is not None and vanilla.cell.id in shown
        shown |= {vanilla.cell.id} if vanilla else set()
        rows.append(Row(vanilla=None if repeated else entry(vanilla, None), gated=entry(gated, vanilla)))
    return tuple(rows)


def _grouped(pairs: Iterable[tuple[Hashable, Value]]) -> list[list[Value]]:
    groups: dict[Hashable, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return list(groups.values())
