"""A table that is no more than headings and rows of text, in every format: for what has not the paper's shape."""

from __future__ import annotations

from pathlib import Path

from reports.grid.html import render_html
from reports.grid.latex import render_fragment, render_standalone
from reports.grid.markdown import render_markdown
from reports.grid.shape import Column, Grid, Section
from reports.words.plain_text import csv_text

__all__ = [
    "Column",
    "Grid",
    "Section",
    "render_csv",
    "render_fragment",
    "render_html",
    "render_markdown",
    "render_standalone",
    "write_grid",
]


def write_grid(grid: Grid, out: Path) -> tuple[Path, ...]:
    """Write the table into the folder ``out``: LaTeX to be read by another document and by itself, Markdown, CSV, HTML.

    Raises:
        OSError: ``out`` cannot be written.
    """
    contents = {
        f"{grid.name}.tex": render_fragment(grid),
        f"{grid.name}_standalone.tex": render_standalone(grid),
        f"{grid.name}.md": render_markdown(grid),
        f"{grid.name}.csv": render_csv(grid),
        f"{grid.name}.html": render_html(grid),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        # A name read from JSON may hold half a surrogate pair, which no encoding has.
        (out / name).write_text(content, encoding="utf-8", errors="replace", newline="\n")
    return tuple(out / name for name in contents)


def render_csv(grid: Grid) -> str:
    """One line a record; unknown values are empty."""
    return csv_text(grid.record_fields, grid.records)
