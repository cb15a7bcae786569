"""What a table in the shape of a layout sets beside a gated cell, where that is not the cell that it is marked by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reports.layout.laid_out import Filled, Place, where
from reports.layout.placed import Placed
from reports.words.prose import Note, Text

OTHER_NEIGHBOUR = "Marked not by the vanilla model in its row, but by the one that it faces:"
"""Heading of the note on gated cells that stand beside another vanilla one."""


def other_neighbours(filled: Filled) -> tuple[Note, ...]:
    """A note on every gated cell in a row with vanilla ones of which it faces none: a layout goes by what it asks for.

    A study's own table sets each gated cell beside the vanilla one that it faces.
    """
    if "test" not in filled.layout.columns:
        return ()
    by_name = {cell.name: cell for cell in (*filled.cells, *filled.left)}
    rows = (row for sections in filled.blocks for rows in sections for row in rows)
    items = tuple(
        (*_named(gated), ": ", *(_named(by_name[gated.faces]) if gated.faces else ("it faces none",)))
        for row in rows
        for gated in _strangers(row)
    )
    return (Note(heading=OTHER_NEIGHBOUR, items=items),) if items else ()


def _strangers(row: Sequence[Place]) -> Iterator[Placed]:
    cells = [place.cell for place in row if place.cell and place.cell.summary]
    vanillas = {cell.name for cell in cells if cell.values["placement"] == "none"}
    if vanillas:
        yield from (cell for cell in cells if cell.name not in vanillas and cell.faces not in vanillas)


def _named(cell: Placed) -> Text:
    return (f"{cell.dataset_title}, ", cell.label, *where(cell))
