"""A plain table as GitHub's Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reports.grid.shape import Grid, Section
from reports.words.parts import escape_markdown, markdown_part
from reports.words.prose import Text

_ALIGN = {"left": ":--", "right": "--:", "centre": ":-:"}


def render_markdown(grid: Grid) -> str:
    """The caption, a table for each section that has a title, and the notes."""
    blank = _line("" for _ in grid.columns)
    tables: list[list[str]] = []
    for section in grid.sections:
        rows = [_line(map(_text, row)) for row in section.rows]
        if section.title is None and tables:
            tables[-1] += [blank, *rows]
        else:
            title = [] if section.title is None else [f"### {escape_markdown(section.title)}", ""]
            tables.append([*title, *_head(grid, section), *rows])
    lines = [_text(grid.caption), ""]
    for table in tables or [[escape_markdown(grid.nothing)]]:
        lines += [*table, ""]
    for note in grid.notes:
        lines += [escape_markdown(note.heading), ""]
        lines += [*(f"- {_text(item)}" for item in note.items), ""] if note.items else []
    return "\n".join(lines[:-1]) + "\n"


def _head(grid: Grid, section: Section) -> Iterable[str]:
    yield _line(map(escape_markdown, section.heads or [column.head for column in grid.columns]))
    yield _line(_ALIGN[column.align] for column in grid.columns)


def _line(cells: Iterable[str]) -> str:
    return re.sub(" +", " ", f"| {' | '.join(cells)} |")


def _text(text: Text) -> str:
    return "".join(map(markdown_part, text))
