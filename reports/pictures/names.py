"""What cells and arms are called in pictures: the table's labels, without values that a search chose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reports.evidence.study_facts import cell_name
from reports.layout.result_table import Entry
from reports.records.plan import PlanCell
from reports.summary.labels import Detail, Label, model_label
from reports.words.plain_text import plain

Panel = tuple[str, str, int | None, int | None]
"""Of cells that are compared: dataset, backbone, planned layers and budget."""


@dataclass(frozen=True, kw_only=True)
class CellNames:
    """A cell's name by itself, as ``ZINC bi-GCN 100k L4``; the name of its arm, as ``bi``; its label, as ``bi-GCN``.

    ``details`` are those of the label.
    """

    name: str
    arm: str
    label: str
    details: tuple[Detail, ...]


def panel_of(cell: PlanCell) -> Panel:
    """With which cells it stands in a panel."""
    return cell.dataset, cell.backbone, cell.layers, cell.budget


def panel_title(cells: Sequence[PlanCell]) -> str:
    """Of the cells of one panel, such as ``ZINC GCN backbone 100k L4``: ``GCN`` alone is the name of one of them."""
    first = cells[0]
    width = first.hidden_dim if len({cell.hidden_dim for cell in cells}) == 1 else None
    return cell_name(first.dataset_title, f"{backbone_name(first)} backbone", first.budget, width, first.layers)


def backbone_name(cell: PlanCell) -> str:
    """As in the tables; of a layer of the user's own the name of its class."""
    return model_label(cell.backbone, "none", None).name


def names_of(entries: Sequence[Entry]) -> Mapping[str, CellNames]:
    """The names of all cells of a study, by the cell's id; no two of a panel are alike."""
    named: dict[str, CellNames] = {}
    groups: dict[Panel, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(panel_of(entry.summary.cell), []).append(entry)
    for group in groups.values():
        for entry, label in zip(group, _told_apart(group), strict=True):
            cell = entry.summary.cell
            # Of a vanilla model only what tells it apart follows the word.
            arm = plain(replace(label, prefix=None, name=label.prefix or "vanilla"))
            text = plain(label)
            size = (cell.budget, cell.hidden_dim, cell.layers)
            named[cell.id] = CellNames(
                name=cell_name(cell.dataset_title, text, *size), arm=arm, label=text, details=label.details
            )
    return named


def _told_apart(group: Sequence[Entry]) -> Iterator[Label]:
    planned = [replace(entry.label, details=tuple(_planned(entry))) for entry in group]
    counts = Counter(planned)
    whole = Counter(entry.label for entry in group)
    for entry, label in zip(group, planned, strict=True):
        if counts[label] == 1:
            yield label
        elif whole[entry.label] == 1:
            yield entry.label
        else:
            yield replace(label, details=(*label.details, Detail(key="cell", value=entry.summary.cell.id)))


def _planned(entry: Entry) -> Iterator[Detail]:
    """What the label says beside values that a search chose; a departure is no field of a cell, and planned."""
    cell = entry.summary.cell
    return (detail for detail in entry.label.details if getattr(cell, detail.key, detail.value) is not None)
