"""A table for the terminal, 100 columns wide: gated models stand below the vanilla model that they face."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from reports.layout.columns import columns, headings, text
from reports.layout.result_table import Block, ResultTable
from reports.summary.labels import Label
from reports.summary.marks import Mark
from reports.words.plain_text import plain
from reports.words.prose import Marked, Part

WIDTH = 100
"""Columns that the view needs at most."""


def render_terminal(table: ResultTable) -> RenderableType:
    """What ``rich.console.Console(width=WIDTH).print`` shows. Marks survive without colour: * better, ** best."""
    parts: list[RenderableType] = [_block(block) for block in table.blocks]
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


def _block(block: Block) -> Table:
    shown = Table(title=escape(block.title), title_justify="left", width=WIDTH)
    for place, heading in enumerate(headings(block)):
        is_number = place in (1, 2, 5)
        shown.add_column(
            heading, justify="right" if is_number else "left", no_wrap=place > 0, ratio=1 if not place else None
        )
    for section in block.sections:
        for row in section:
            for entry in (row.vanilla, row.gated):
                if entry:
                    shown.add_row(*columns(entry, _MARKUP))
        shown.add_section()
    return shown
