"""The shape of the paper's tables 2 and 3: a block a dataset, vanilla models on the left, gated ones on the right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from reports.layout.facing import comparable, vanilla_of
from reports.published.data_size import amount_text, has_other_size
from reports.records.load import StudyResults
from reports.records.plan import PlanCell
from reports.summary.labels import Label, is_vanilla_cell, label_cells
from reports.summary.marks import Mark, best_cells, mark
from reports.summary.summarise import CellSummary, summarise, trials_outside_plan
from reports.words.prose import Note, Text, caption, notes
from study.counted import counted

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
    return ResultTable(
        study=results.plan.study,
        caption=caption(results.plan.caption, summaries),
        blocks=blocks,
        notes=(
            *_other_sizes(results, summaries),
            *_different_data(summaries),
            *_undecided(labelled),
            *notes(labelled, trials_outside_plan(results)),
        ),
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


DIFFERENT_DATA = (
    "Run on different data, by fingerprint, or folds, and marked and tested against models on the same alone:"
)
"""Heading of the note on datasets of which there are two versions or more, or models on other folds."""


def _different_data(summaries: Sequence[CellSummary]) -> tuple[Note, ...]:
    of_dataset: dict[str, list[CellSummary]] = {}
    for summary in summaries:
        if summary.data is not None:
            of_dataset.setdefault(summary.cell.dataset, []).append(summary)
    told: dict[str, Text] = {}
    for dataset, group in of_dataset.items():
        counts = Counter(summary.ground for summary in group)
        if len(counts) > 1:
            has_other_folds = len({folds for _, folds in counts}) > 1
            models = " and ".join(
                f"{data}{f', folds {_listed(folds)}' * has_other_folds} ({counted(count, 'model')})"
                for (data, folds), count in counts.items()
            )
            told[dataset] = (f"{group[0].cell.dataset_title}: {models}",)
    return (Note(heading=DIFFERENT_DATA, items=tuple(told.values()), about=tuple(told)),) if told else ()


def _listed(folds: Sequence[int]) -> str:
    return ", ".join(map(str, folds))


UNDECIDED = "Neither marked nor compared, since of the vanilla models two or more are equally near:"
"""Heading of the note on gated cells that face none of several."""


def _undecided(labelled: Sequence[tuple[CellSummary, Label]]) -> tuple[Note, ...]:
    vanillas: dict[str, list[CellSummary]] = {}
    for summary, _ in labelled:
        if is_vanilla_cell(summary):
            vanillas.setdefault(summary.cell.dataset, []).append(summary)
    found = [
        (summary, label)
        for summary, label in labelled
        for beside in [vanillas.get(summary.cell.dataset, [])]
        if not is_vanilla_cell(summary)
        and any(comparable(summary, vanilla) for vanilla in beside)
        and vanilla_of(summary, beside) is None
    ]
    items: tuple[Text, ...] = tuple((f"{summary.cell.dataset_title}, ", label) for summary, label in found)
    return (Note(heading=UNDECIDED, items=items, about=tuple(one.cell.id for one, _ in found)),) if found else ()


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
