"""A plain table as LaTeX: a fragment to be read by another document, and one of its own, both in plain ASCII."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from reports.grid.shape import Column, Grid, Section
from reports.words.latex_text import escape
from reports.words.parts import latex_part
from reports.words.plain_text import plain
from reports.words.prose import Text

ROWS_OF_A_PAGE = 36
"""Lines of text that a page of the document bears."""

_ALIGN = {"left": "l", "right": "r", "centre": "c"}
_PACKAGES = ("array", "booktabs", "graphicx", "xcolor")
_FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
"""Shrinks what is wider than the page, and leaves the rest as it is."""


def render_fragment(grid: Grid) -> str:
    """A ``table`` environment, or several where the rows fill more than a page, for the input command of LaTeX.

    It needs the packages array, booktabs, graphicx and xcolor, and rotating where the table is wide.
    """
    kind = "sidewaystable" if grid.wide else "table"
    packages = (*_PACKAGES, *(("rotating",) if grid.wide else ()))
    lines = ["% Needs " + " ".join(rf"\usepackage{{{package}}}" for package in packages)]
    for number, page in enumerate(_pages(grid)):
        again = number > 0
        lines += [
            rf"\begin{{{kind}}}",
            r"\centering",
            r"\addtocounter{table}{-1}" if again else "",
            rf"\caption{{{escape(grid.title) + ', continued' if again else _text(grid.caption)}}}",
            "" if again else rf"\label{{tab:{grid.name}}}",
            r"\smallskip",
            _FITTED,
            *_tabular(grid, page),
            "}",
            rf"\end{{{kind}}}",
        ]
    lines[-1:] = [r"\par\medskip", *_notes(grid), rf"\end{{{kind}}}"]
    return "\n".join(line for line in lines if line) + "\n"


def render_standalone(grid: Grid) -> str:
    """A whole document with the table, which pdflatex compiles with the packages that TeX Live recommends."""
    lines = [
        r"\documentclass{article}",
        r"\usepackage[a4paper,landscape,margin=12mm]{geometry}",
        *(rf"\usepackage{{{package}}}" for package in (*_PACKAGES, "caption")),
        r"\setlength{\parindent}{0pt}",
        r"\pagestyle{empty}",
        r"\begin{document}",
        r"\begin{center}",
        rf"\captionof{{table}}{{{_text(grid.caption)}}}",
        r"\medskip",
    ]
    for number, page in enumerate(_pages(grid)):
        lines += [r"\newpage" if number else "", _FITTED, *_tabular(grid, page), "}"]
    lines += [r"\end{center}", *_notes(grid), r"\end{document}"]
    return "\n".join(lines) + "\n"


def _pages(grid: Grid) -> Iterator[list[Section]]:
    """The sections in order, broken where a page is full; one page without any where there are no rows."""
    page: list[Section] = []
    height = 0
    leading: Section | None = None
    for section in grid.sections:
        rows: list[tuple[Text, ...]] = []
        leading = section if section.heads else leading
        lead = section
        height += 2
        for row in section.rows:
            lines = _lines_of(grid, row)
            if height + lines > ROWS_OF_A_PAGE and (page or rows):
                yield [*page, *([replace(lead, rows=tuple(rows))] if rows else [])]
                page, rows, height = [], [], 2
                # Heads that stand on the page before are needed on this one too.
                lead = leading or section
            rows.append(row)
            height += lines
        page.append(replace(lead, rows=tuple(rows)))
    yield page


def _lines_of(grid: Grid, row: Sequence[Text]) -> int:
    lengths = (
        sum(len(plain(part)) for part in cell) / column.width
        for column, cell in zip(grid.columns, row, strict=True)
        if column.width is not None
    )
    return 1 + int(max(lengths, default=0.0))


def _tabular(grid: Grid, sections: Sequence[Section]) -> Iterable[str]:
    count = len(grid.columns)
    yield rf"\begin{{tabular}}{{{''.join(map(_spec, grid.columns))}}}"
    yield r"\toprule"
    if not any(section.heads for section in sections):
        yield _line(escape(column.head) for column in grid.columns)
    for number, section in enumerate(sections):
        yield from _above(section, count, is_first=number == 0)
        for row in section.rows:
            yield _line(_cell(column, cell) for column, cell in zip(grid.columns, row, strict=True))
    if not sections:
        yield r"\midrule"
        yield rf"\multicolumn{{{count}}}{{l}}{{{escape(grid.nothing)}}} \\"
    yield r"\bottomrule"
    yield r"\end{tabular}%"


def _above(section: Section, count: int, is_first: bool) -> Iterable[str]:
    """The rule, title and heads above the rows of a section."""
    title = "" if section.title is None else escape(section.title)
    if section.heads is None:
        yield r"\midrule"
        if title:
            yield rf"\multicolumn{{{count}}}{{l}}{{{title}}} \\[2pt]"
        return
    if not is_first:
        yield from (r"\midrule", r"\midrule")
    if title:
        yield rf"\multicolumn{{{count}}}{{c}}{{{title}}} \\"
        yield rf"\cmidrule(lr){{1-{count}}}"
    yield _line(map(escape, section.heads))
    yield r"\midrule"


def _spec(column: Column) -> str:
    room = r"@{\hspace{2em}}" if column.apart else ""
    if column.width is None:
        return room + _ALIGN[column.align]
    return rf"{room}>{{\raggedright\arraybackslash}}p{{{column.width / 2:g}em}}"


def _cell(column: Column, cell: Text) -> str:
    words = _text(cell)
    # A hyphen before a digit is a minus, which is longer.
    return words if column.align == "left" else re.sub(r"(?<![\w.])-(?=\d)", "$-$", words)


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _notes(grid: Grid) -> Iterable[str]:
    yield r"{\footnotesize\raggedright"
    for note in grid.notes:
        yield rf"{escape(note.heading)}\par"
        yield from (rf"\quad {_text(item)}\par" for item in note.items)
    yield "}"


def _text(text: Text) -> str:
    return "".join(map(latex_part, text))
