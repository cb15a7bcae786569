"""The tables of comparisons, as the command ``tables`` writes them, with rows that sort and numbers that open."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

from markupsafe import Markup

from reports.compare.against_published import BesidePublished
from reports.compare.comparison_table import Pairing, comparison_grid
from reports.compare.published_table import published_grid
from reports.grid import Column as GridColumn
from reports.grid import Grid
from reports.layout.result_table import Entry
from reports.page.markup import NOTHING, written
from reports.page.shown import ShownTable, shown_notes
from reports.page.sortable import Column, Group, Row, SortableTable, Value
from reports.words.prose import Text

Anchor = Callable[[str], str]
"""From a cell's id to the id of its evidence in the page."""

Item = TypeVar("Item")

_MIDDLING = 40
"""Letters up to which a column of broken lines is not a wide one."""

_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
_LINKED = "Test"
"""Head of the columns that hold a cell's number."""


def shown_comparisons(pairings: Sequence[Pairing], anchors: Sequence[Anchor]) -> ShownTable:
    """Gated models against the vanilla ones that they face; ``anchors``: that of each pairing's study."""
    pairs = list(zip(pairings, anchors, strict=True))
    links = [
        (anchor(_cell(pairing.gated)), anchor(_cell(pairing.vanilla)))
        for pairing, anchor in _in_sections(pairs, lambda pair: _section(pair[0].gated))
    ]
    return _shown_grid(comparison_grid(pairings), links)


def shown_published(rows: Sequence[BesidePublished], anchor: Anchor) -> ShownTable:
    """Cells of one study beside published numbers."""
    ordered = _in_sections(rows, lambda row: (row.summary.cell.dataset_title, row.summary.cell.metric))
    return _shown_grid(published_grid(rows), [(anchor(row.summary.cell.id),) for row in ordered])


def _shown_grid(grid: Grid, links: Sequence[Sequence[str]]) -> ShownTable:
    """``grid`` with its words; ``links``: for each row, the evidence that its numbers open, in their order.

    A section's rows are sorted among themselves; columns that are set to the right as numbers.
    """
    columns = tuple(_column(column) for column in grid.columns)
    places = [place for place, column in enumerate(grid.columns) if column.head == _LINKED]
    by_place = iter([dict(zip(places, found, strict=True)) for found in links])
    return ShownTable(
        caption=written(grid.caption),
        table=SortableTable(
            caption=grid.title,
            columns=columns,
            groups=tuple(
                Group(
                    title=section.title,
                    rows=tuple(_row(row, columns, next(by_place)) for row in _filled(section.rows)),
                )
                for section in grid.sections
            ),
        ),
        notes=shown_notes(grid.notes),
        nothing=grid.nothing,
    )


def _filled(rows: Sequence[Sequence[Text]]) -> list[list[Text]]:
    """The rows with every cell filled: one without any part stands for the one above it, until rows are sorted."""
    filled: list[list[Text]] = []
    for row in rows:
        filled.append([cell or (filled[-1][place] if filled else cell) for place, cell in enumerate(row)])
    return filled


def _row(row: Sequence[Text], columns: Sequence[Column], links: Mapping[int, str]) -> Row:
    return tuple(
        _value(text, column, links.get(place)) for place, (text, column) in enumerate(zip(row, columns, strict=True))
    )


def _column(column: GridColumn) -> Column:
    if column.align == "right":
        return Column(head=column.head, kind="number")
    letters = column.width or 0
    return Column(head=column.head, width="wide" if letters > _MIDDLING else "middling" if letters else "short")


def _value(text: Text, column: Column, link: str | None) -> Value:
    """Sorted by the first number that the words hold, where the column is of numbers: the mean of mean ± std.

    What is said to be less than a number comes before it.
    """
    shown = written(text)
    plain = Markup(shown).striptags()
    if link is not None:
        shown = Markup('<a class="number" href="#{}">{}</a>').format(link, shown)
    if plain in ("", NOTHING):
        return Value(shown=shown, key="")
    if column.kind == "text":
        return Value(shown=shown, key=plain)
    found = _NUMBER.search(plain)
    key = found[0].replace(",", "") if found else ""
    return Value(shown=shown, key=repr(math.nextafter(float(key), -math.inf)) if key and plain[0] == "<" else key)


def _in_sections(items: Sequence[Item], section: Callable[[Item], Hashable]) -> list[Item]:
    """The items in the order of a grid's rows: by section, the sections in the order in which they come."""
    sections: dict[Hashable, list[Item]] = {}
    for item in items:
        sections.setdefault(section(item), []).append(item)
    return [item for found in sections.values() for item in found]


def _section(entry: Entry) -> Hashable:
    return entry.summary.cell.dataset_title, entry.summary.cell.metric


def _cell(entry: Entry) -> str:
    return entry.summary.cell.id
