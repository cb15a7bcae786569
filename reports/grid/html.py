"""A plain table as a page of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from reports.grid.shape import Column, Grid, Section
from reports.words.parts import escape_html, html_part
from reports.words.prose import Text

_STYLE = """
body { font: 13px/1.45 system-ui, sans-serif; margin: 1.5rem; color: #1a1a1a; background: #fff; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; max-width: 70rem; padding-bottom: 0.75rem; }
th, td { padding: 0.2rem 0.45rem; text-align: left; vertical-align: top; white-space: nowrap; }
thead th, tbody:first-of-type:not(thead + tbody) tr:first-child > * { border-top: 2px solid; }
.heads th { border-bottom: 1px solid; vertical-align: bottom; }
tbody th { padding-top: 0.7rem; }
tbody + tbody tr:first-child > * { border-top: 1px solid #999; }
tbody:last-of-type tr:last-child > * { border-bottom: 2px solid; }
.right { text-align: right; }
.centre { text-align: center; }
.apart { padding-left: 2rem; }
.wrapped { white-space: normal; }
.best { color: #c00000; }
.notes { max-width: 70rem; }
"""


def render_html(grid: Grid) -> str:
    """A page of its own that needs nothing else."""
    has_heads = any(section.heads for section in grid.sections)
    head = "" if has_heads else f"<thead>{_heads(grid, [column.head for column in grid.columns])}</thead>"
    nothing = f'<tbody><tr><td colspan="{len(grid.columns)}">{escape_html(grid.nothing)}</td></tr></tbody>'
    bodies = [_body(grid, section) for section in grid.sections] or [nothing]
    notes = [(note.heading, [_text(item) for item in note.items]) for note in grid.notes]
    return page_of(grid.title, _text(grid.caption), head, bodies, notes)


def page_of(
    title: str, caption: str, head: str, bodies: Sequence[str], notes: Sequence[tuple[str, Sequence[str]]]
) -> str:
    """A page with one table; ``title`` and the headings of ``notes`` are plain, everything else is HTML already."""
    remarks = [
        f"<p>{escape_html(heading)}</p>"
        + (f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>" if items else "")
        for heading, items in notes
    ]
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape_html(title)}</title>",
        f"<style>{_STYLE}</style></head>",
        "<body>",
        '<div class="wide"><table>',
        f"<caption>{caption}</caption>",
        *([head] if head else []),
        *bodies,
        "</table></div>",
        '<div class="notes">',
        *remarks,
        "</div>",
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _body(grid: Grid, section: Section) -> str:
    title = ""
    if section.title is not None:
        centred = ' class="centre"' if section.heads else ""
        title = f'<tr><th colspan="{len(grid.columns)}"{centred}>{escape_html(section.title)}</th></tr>\n'
    if section.heads:
        title += f"{_heads(grid, section.heads)}\n"
    rows = (
        "".join(f"<td{_attributes(column)}>{_text(cell)}</td>" for column, cell in zip(grid.columns, row, strict=True))
        for row in section.rows
    )
    return f"<tbody>\n{title}" + "\n".join(f"<tr>{row}</tr>" for row in rows) + "\n</tbody>"


def _heads(grid: Grid, heads: Sequence[str]) -> str:
    cells = (
        f"<th{_attributes(column)}>{escape_html(head)}</th>" for column, head in zip(grid.columns, heads, strict=True)
    )
    return f'<tr class="heads">{"".join(cells)}</tr>'


def _attributes(column: Column) -> str:
    classes: list[str] = [column.align] if column.align != "left" else []
    classes += ["wrapped"] if column.width is not None else []
    classes += ["apart"] if column.apart else []
    style = f' style="min-width: {column.width / 2:g}em"' if column.width is not None else ""
    return (f' class="{" ".join(classes)}"' if classes else "") + style


def _text(text: Text) -> str:
    return "".join(map(html_part, text))
