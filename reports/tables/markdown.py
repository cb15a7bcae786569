"""A table as Markdown (GitHub's tables), in the paper's shape: vanilla on the left, gated on the right."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reports.layout.columns import COLUMNS, columns, headings, text
from reports.layout.result_table import Block, ResultTable
from reports.summary.marks import Mark
from reports.words.parts import escape_markdown, markdown_marked, markdown_part
from reports.words.prose import Part

_RULER = (":--", "--:", "--:", ":-:", ":-:", "--:")


def render_markdown(table: ResultTable) -> str:
    """The caption, a table for each dataset, and the notes. Red, which Markdown lacks, is written out: (best)."""
    lines = [text(table.caption, _MARKUP), ""]
    for block in table.blocks:
        lines += [f"### {escape_markdown(block.title)}", "", *_block(block), ""]
    for note in table.notes:
        lines += [escape_markdown(note.heading), ""]
        if note.items:
            lines += [*(f"- {text(item, _MARKUP)}" for item in note.items), ""]
    return "\n".join(lines[:-1]) + "\n"


class _MarkdownMarkup:
    dash = "–"  # noqa: RUF001

    def part(self, part: Part) -> str:
        return markdown_part(part)

    def spread(self, mean: str, std: str, mark: Mark) -> str:
        return markdown_marked(f"{mean} ± {std}", mark)


_MARKUP = _MarkdownMarkup()


def _block(block: Block) -> Iterable[str]:
    yield _line(headings(block) * 2)
    yield _line(_RULER * 2)
    for place, section in enumerate(block.sections):
        if place:
            yield _line(("",) * 2 * COLUMNS)
        for row in section:
            yield _line((*columns(row.vanilla, _MARKUP), *columns(row.gated, _MARKUP)))


def _line(cells: Iterable[str]) -> str:
    return re.sub(" +", " ", f"| {' | '.join(cells)} |")
