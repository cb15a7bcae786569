"""What stands below a study's table about its data, and about the vanilla models that gated ones face."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from reports.layout.facing import comparable, vanilla_of
from reports.published.data_size import amount_text, has_other_size
from reports.records.load import StudyResults
from reports.summary.labels import Label, is_vanilla_cell
from reports.summary.summarise import CellSummary, Chosen
from reports.words.prose import Note, Text
from study.counted import counted

Labelled = tuple[CellSummary, Label]
"""A cell and what the table calls it."""

OTHER_SIZES = "Trained and tested on another number of graphs than the paper's dataset of that name has:"
"""Heading of the note on them."""


def other_sizes(results: StudyResults, summaries: Sequence[CellSummary]) -> tuple[Note, ...]:
    """A note on datasets of another size than the paper's of that name, as far as numbers are of them."""
    # Not what is on record alone: of data that was prepared anew since, superseded trials are left.
    fingerprints = dict.fromkeys((summary.cell.dataset, summary.data) for summary in summaries if summary.data)
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


def different_data(summaries: Sequence[CellSummary]) -> tuple[Note, ...]:
    """A note on datasets whose models ran on different data or folds."""
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


def undecided(labelled: Sequence[Labelled]) -> tuple[Note, ...]:
    """A note on gated cells to which several vanilla ones are equally near."""
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


OTHER_CHOICES = "Marked by a vanilla model of another depth or budget, since the two searched that and chose otherwise:"
"""Heading of the note on gated cells that face one."""


def other_choices(labelled: Sequence[Labelled], faced: Mapping[str, str]) -> tuple[Note, ...]:
    """A note on gated cells whose search chose another depth or budget than that of the vanilla cell that they face.

    ``faced`` is the id of that cell, by theirs.
    """
    by_id = {summary.cell.id: (summary, label) for summary, label in labelled}
    items: dict[str, Text] = {}
    for summary, label in labelled:
        if summary.cell.id in faced:
            vanilla, vanilla_label = by_id[faced[summary.cell.id]]
            if told := _differences(summary.chosen, vanilla.chosen):
                items[summary.cell.id] = (f"{summary.cell.dataset_title}, ", label, ": ", vanilla_label, f" ({told})")
    return (Note(heading=OTHER_CHOICES, items=tuple(items.values()), about=tuple(items)),) if items else ()


def _differences(gated: Chosen, vanilla: Chosen) -> str:
    pairs = [(name, getattr(gated, name), getattr(vanilla, name)) for name in ("layers", "budget")]
    return ", ".join(
        f"{name} {ours:,} against {theirs:,}"
        for name, ours, theirs in pairs
        if ours is not None and theirs is not None and ours != theirs
    )
