"""A table as LaTeX: a fragment to be read by another document, and one of its own, both in plain ASCII."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined

from reports.layout.columns import COLUMNS, columns, headings, text
from reports.layout.result_table import Block, ResultTable, Row
from reports.summary.marks import Mark
from reports.words.latex_text import escape
from reports.words.parts import latex_part
from reports.words.prose import Part

_SIDE_SPEC = "lrrccr"
_ROWS_OF_A_PAGE = 30


def render_fragment(table: ResultTable) -> str:
    """A ``table`` environment for the input command of LaTeX; it needs the packages booktabs, graphicx and xcolor.

    Where vanilla and gated models stand side by side it is turned on its side, by the package rotating.
    """
    return _render("results.tex.jinja", table)


def render_standalone(table: ResultTable) -> str:
    """A whole document with the table, which pdflatex compiles with the packages that TeX Live recommends."""
    return _render("results_standalone.tex.jinja", table)


class _LatexMarkup:
    dash = "--"

    def part(self, part: Part) -> str:
        return latex_part(part)

    def spread(self, mean: str, std: str, mark: Mark) -> str:
        number = rf"${mean} \pm {std}$"
        if mark is Mark.PLAIN:
            return number
        bold = rf"{{\boldmath{number}}}"
        return rf"\textcolor{{red}}{{{bold}}}" if mark is Mark.BEST else bold


_MARKUP = _LatexMarkup()


def _render(template: str, table: ResultTable) -> str:
    rows = [row for block in table.blocks for section in block.sections for row in section]
    sides = (any(row.vanilla for row in rows), any(row.gated for row in rows))
    count = sum(sides)
    blocks = [_block(block, sides) for block in table.blocks]
    return (
        _environment()
        .get_template(template)
        .render(
            caption=text(table.caption, _MARKUP),
            label=f"tab:{_slug(table.study)}",
            width=COLUMNS * count,
            wide=count > 1,
            kind="sidewaystable" if count > 1 else "table",
            column_spec=r"@{\hspace{2em}}".join([_SIDE_SPEC] * count),
            blocks=blocks,
            pages=_pages(blocks),
            notes=[(escape(note.heading), [text(item, _MARKUP) for item in note.items]) for note in table.notes],
        )
    )


@dataclass(frozen=True, kw_only=True)
class _LatexBlock:
    title: str
    head: tuple[str, ...]
    sections: list[list[tuple[str, ...]]]

    @property
    def num_rows(self) -> int:
        return sum(map(len, self.sections))


def _block(block: Block, sides: tuple[bool, bool]) -> _LatexBlock:
    return _LatexBlock(
        title=escape(block.title),
        head=headings(block) * sum(sides),
        sections=[[_row(row, sides) for row in section] for section in block.sections],
    )


def _pages(blocks: list[_LatexBlock]) -> list[list[_LatexBlock]]:
    """The blocks in order, as many together as can be read on one page of the document."""
    pages: list[list[_LatexBlock]] = []
    for block in blocks:
        if pages and sum(other.num_rows for other in (*pages[-1], block)) <= _ROWS_OF_A_PAGE:
            pages[-1].append(block)
        else:
            pages.append([block])
    return pages


def _row(row: Row, sides: tuple[bool, bool]) -> tuple[str, ...]:
    entries = (row.vanilla, row.gated)
    return tuple(cell for entry, shown in zip(entries, sides, strict=True) if shown for cell in columns(entry, _MARKUP))


def _slug(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-") or "results"


def _environment() -> Environment:
    # Braces and percent signs are LaTeX's own, so templates mark their places otherwise.
    return Environment(
        loader=PackageLoader("reports.tables"),
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
