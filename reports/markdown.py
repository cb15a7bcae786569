"""A table as Markdown (GitHub's tables), in the paper's shape: vanilla on the left, gated on the right."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reports.cells import COLUMNS, columns, headings, text
from reports.labels import Detail, Label
from reports.layout import Block, ResultTable
from reports.marks import Mark
from reports.plain_text import plain
from reports.prose import Marked, Part

_BEST = " (best)"
_RULER = (":--", "--:", "--:", ":-:", ":-:", "--:")


def render_markdown(table: ResultTable) -> str:
    """The caption, a table for each dataset, and the notes. Red, which Markdown lacks, is written out: (best)."""
    lines = [text(table.caption, _MARKUP), ""]
    for block in table.blocks:
        lines += [f"### {_escape(block.title)}", "", *_block(block), ""]
    for note in table.notes:
        lines += [_escape(note.heading), ""]
        if note.items:
            lines += [*(f"- {text(item, _MARKUP)}" for item in note.items), ""]
    return "\n".join(lines[:-1]) + "\n"


class _MarkdownMarkup:
    dash = "–"  # noqa: RUF001

    def part(self, part: Part) -> str:
        if isinstance(part, Label):
            prefix = f"*{_escape(part.prefix)}*-" if part.prefix else ""
            details = ", ".join(self.part(detail) for detail in part.details)
            return prefix + _escape(part.name) + (f" ({details})" if details else "")
        if isinstance(part, Marked):
            return self._marked(_escape(part.words), part.mark)
        return _escape(plain(part) if isinstance(part, Detail) else part)

    def spread(self, mean: str, std: str, mark: Mark) -> str:
        return self._marked(f"{mean} ± {std}", mark)

    def _marked(self, words: str, mark: Mark) -> str:
        if mark is Mark.PLAIN:
            return words
        return f"**{words}**" + (_BEST if mark is Mark.BEST else "")


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


def _escape(words: str) -> str:
    return re.sub(r"([\\`*_<>|~$#\[\]&{}])", r"\\\1", re.sub(r"\s+", " ", words))
