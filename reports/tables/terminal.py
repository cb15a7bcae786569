"""A table for the terminal, at most 100 columns wide: gated models stand below the vanilla model that they face."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from rich.box import HEAVY_HEAD
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from reports.layout.columns import columns, headings, text
from reports.layout.result_table import Block, ResultTable, Row
from reports.summary.labels import Label
from reports.summary.marks import Mark
from reports.words.plain_text import plain
from reports.words.prose import Marked, Part

WIDTH = 100
"""Columns that the view needs at most."""
LEAST_NAME = 12
"""Columns that the name of a model has at least; it is folded where it is longer."""
_GAP = 2
"""Columns between two of a table without a frame."""


def print_terminal(table: ResultTable, stream: IO[str]) -> None:
    """Print ``table``, :data:`WIDTH` columns wide; on a narrower terminal as wide as that, if its numbers fit."""
    width = WIDTH
    if (terminal := Console(file=stream)).is_terminal:
        width = min(WIDTH, max(terminal.width, least_width(table)))
    Console(file=stream, width=width, highlight=False).print(render_terminal(table, width))


def least_width(table: ResultTable) -> int:
    """Columns in which no number of ``table`` is cut."""
    widths = [_least_widths(block) for block in table.blocks]
    return max(sum(found) + _GAP * (len(found) - 1) for found in widths)


def render_terminal(table: ResultTable, width: int = WIDTH) -> RenderableType:
    """What ``rich.console.Console(width=width).print`` shows. Marks survive without colour: * better, ** best.

    On fewer columns than :data:`WIDTH` the table has no frame, whose room the names of models need.
    """
    parts: list[RenderableType] = [_block(block, width) for block in table.blocks]
    parts.append(text(table.caption, _MARKUP))
    for note in table.notes:
        parts.append(escape(note.heading))
        parts += [f"  {text(item, _MARKUP)}" for item in note.items]
    return Group(*parts)


class _TerminalMarkup:
    dash = "–"  # noqa: RUF001

    def part(self, part: Part) -> str:
        if isinstance(part, Label):
            italic = f"[italic]{escape(part.prefix)}[/italic]-" if part.prefix else ""
            details = escape(", ".join(plain(detail) for detail in part.details))
            return italic + escape(part.name) + (f" ({details})" if details else "")
        if isinstance(part, Marked):
            return self._marked(escape(part.words), part.mark)
        return escape(plain(part))

    def spread(self, mean: str, std: str, mark: Mark) -> str:
        return self._marked(f"{mean} ± {std}", mark)

    def _marked(self, words: str, mark: Mark) -> str:
        if mark is Mark.PLAIN:
            return words
        return f"[bold red]{words}[/bold red] **" if mark is Mark.BEST else f"[bold]{words}[/bold] *"


_MARKUP = _TerminalMarkup()


def _block(block: Block, width: int) -> Table:
    box = HEAVY_HEAD if width == WIDTH else None
    shown = Table(title=escape(block.title), title_justify="left", width=width, box=box, pad_edge=box is not None)
    for place, (heading, least) in enumerate(zip(headings(block), _least_widths(block), strict=True)):
        is_name, is_number = place == 0, place in (1, 2, 5)
        shown.add_column(
            heading,
            justify="right" if is_number else "left",
            no_wrap=not is_name,
            ratio=1 if is_name else None,
            min_width=least,
            overflow="fold" if is_name else "ellipsis",
        )
    for section in block.sections:
        for cells in _lines(section):
            shown.add_row(*cells)
        shown.add_section()
    return shown


def _lines(section: Sequence[Row]) -> list[Sequence[str]]:
    return [columns(entry, _MARKUP) for row in section for entry in (row.vanilla, row.gated) if entry]


def _least_widths(block: Block) -> list[int]:
    """Of each column; names are folded, numbers are not."""
    lines = [headings(block), *(cells for section in block.sections for cells in _lines(section))]
    _, *numbers = (max(Text.from_markup(cell).cell_len for cell in column) for column in zip(*lines, strict=True))
    return [LEAST_NAME, *numbers]
