"""The shape of the paper's tables 2 and 3: a block a dataset, vanilla models on the left, gated ones on the right."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from reports.layout.facing import vanilla_of
from reports.layout.table_notes import different_data, other_choices, other_sizes, undecided
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
    """The table of a study, its cells in the plan's order."""
    summaries = summarise(results)
    blocks = tuple(_block(group) for group in _grouped((summary.cell.dataset, summary) for summary in summaries))
    labelled = tuple((entry.summary, entry.label) for entry in _entries(blocks))
    faced = {entry.summary.cell.id: entry.faces for entry in _entries(blocks) if entry.faces is not None}
    return ResultTable(
        study=results.plan.study,
        caption=caption(results.plan.caption, summaries),
        blocks=blocks,
        notes=(
            *other_sizes(results, summaries),
            *different_data(summaries),
            *undecided(labelled),
            *other_choices(labelled, faced),
            *notes(labelled, trials_outside_plan(results)),
        ),
    )


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
    facing = {summary.cell.id: vanilla_of(summary, vanillas) for summary in summaries if not is_vanilla_cell(summary)}
    gated_of: dict[str, list[CellSummary]] = {}
    for summary in summaries:
        faced = facing.get(summary.cell.id)
        if faced is not None:
            gated_of.setdefault(faced.cell.id, []).append(summary)
    pairs: list[Pair] = []
    for summary in summaries:
        if is_vanilla_cell(summary):
            gated = gated_of.get(summary.cell.id, [])
            pairs += [(summary, other) for other in gated] or [(summary, None)]
        elif facing[summary.cell.id] is None:
            pairs.append((None, summary))
    return pairs


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
