"""The pieces of the page, ready for its templates: text escaped, numbers as they are printed, ids told apart."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from reports.evidence.cell_evidence import CellEvidence, SearchEvidence
from reports.layout.columns import headings
from reports.layout.result_table import Block, Row
from reports.page.markup import NOTHING, side, written
from reports.page.sortable import SortableTable
from reports.words.prose import METRIC_NAMES, Note
from reports.words.units import scale_of

BEST_SHOWN = 10
"""Search trials of a cell that its evidence lists; a study may have thousands."""


@dataclass(frozen=True, kw_only=True)
class ShownBlock:
    """The paper's table of one dataset: its heads, and its sections of rows of cells."""

    title: str
    head: tuple[str, ...]
    sections: tuple[tuple[tuple[Markup, ...], ...], ...]


@dataclass(frozen=True, kw_only=True)
class ShownNote:
    """A remark below a table."""

    heading: str
    items: tuple[Markup, ...]


@dataclass(frozen=True, kw_only=True)
class ShownPicture:
    """A picture as a part of the page; ``is_wide``: it needs a line of its own."""

    anchor: str
    title: str
    caption: str
    svg: Markup
    is_wide: bool


@dataclass(frozen=True, kw_only=True)
class ShownEvidence:
    """The evidence of a cell under its id in the page; ``scale``: from a fraction to the table's unit."""

    anchor: str
    cell: CellEvidence
    scale: float

    @property
    def has_folds(self) -> bool:
        """Whether runs differ in their fold."""
        return any(trial.fold is not None for trial in self.cell.trials)

    @property
    def has_uncounted(self) -> bool:
        """Whether some confirm trial is not behind the number."""
        return not all(trial.counted for trial in self.cell.trials)

    @property
    def best(self) -> tuple[SearchEvidence, ...]:
        """The best search trials, and the chosen one wherever it stands."""
        trials, key = self.cell.chosen.trials, self.cell.chosen.key
        return (*trials[:BEST_SHOWN], *(trial for trial in trials[BEST_SHOWN:] if trial.key == key))

    def in_units(self, value: float | None) -> str:
        """A metric in the unit of the table, with two digits more than there."""
        return NOTHING if value is None else f"{self.scale * value:.5f}"


@dataclass(frozen=True, kw_only=True)
class ShownTable:
    """A table of the sections that span all studies; ``nothing`` stands in its place where it has no row."""

    caption: Markup
    table: SortableTable
    notes: tuple[ShownNote, ...]
    nothing: str


def plain_id(name: str) -> str:
    """A part of an id: the name itself where it is plain, so that a reader can type it, else told apart by a hash."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


def anchor_of_cell(prefix: str, cell: str) -> str:
    """Id of a cell's evidence, from that of the cell."""
    return f"{prefix}cell-{plain_id(cell)}"


def shown_block(block: Block, prefix: str) -> ShownBlock:
    """The paper's table of one dataset, of the sides that hold a model."""
    rows = [row for section in block.sections for row in section]
    sides = [name for name in ("vanilla", "gated") if any(getattr(row, name) for row in rows)]
    return ShownBlock(
        title=f"{block.title} ({METRIC_NAMES[block.metric]})",
        head=headings(block) * len(sides),
        sections=tuple(tuple(_row(row, sides, prefix) for row in section) for section in block.sections),
    )


def _row(row: Row, sides: Sequence[str], prefix: str) -> tuple[Markup, ...]:
    entries = [getattr(row, name) for name in sides]
    anchors = [anchor_of_cell(prefix, entry.summary.cell.id) if entry else None for entry in entries]
    return tuple(cell for pair in zip(entries, anchors, strict=True) for cell in side(*pair))


def shown_notes(notes: Sequence[Note]) -> tuple[ShownNote, ...]:
    """Remarks below a table."""
    return tuple(ShownNote(heading=note.heading, items=tuple(map(written, note.items))) for note in notes)


def shown_evidence(cell: CellEvidence, metric: str, anchor: str) -> ShownEvidence:
    """The evidence of a cell under the id ``anchor``; ``metric`` as in its records."""
    return ShownEvidence(anchor=anchor, cell=cell, scale=scale_of(metric))
