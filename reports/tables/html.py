"""A result table in the paper's shape as a page of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable

from reports.grid.html import page_of
from reports.layout.columns import COLUMNS, columns, headings, text
from reports.layout.result_table import Block, ResultTable
from reports.summary.marks import Mark
from reports.words.parts import escape_html, html_part
from reports.words.prose import Marked, Part

_ALIGN = ("", "right", "right", "centre", "centre", "right")
_CLASSES = (*_ALIGN, "apart", *_ALIGN[1:])


def render_html(table: ResultTable) -> str:
    """Vanilla models on the left, gated ones on the right; what is red has the class ``best``."""
    bodies = [f"<tbody>\n{line}\n</tbody>" for block in table.blocks for line in _bodies(block)]
    notes = [(note.heading, [text(item, _MARKUP) for item in note.items]) for note in table.notes]
    return page_of(table.study, text(table.caption, _MARKUP), "", bodies, notes)


class _HtmlMarkup:
    dash = "–"  # noqa: RUF001

    def part(self, part: Part) -> str:
        return html_part(part)

    def spread(self, mean: str, std: str, mark: Mark) -> str:
        return html_part(Marked(words=f"{mean} ± {std}", mark=mark))


_MARKUP = _HtmlMarkup()


def _bodies(block: Block) -> Iterable[str]:
    """A heading, then the rows of each section under a rule."""
    heads = _cells("th", tuple(map(escape_html, headings(block) * 2)))
    title = f'<tr><th class="centre" colspan="{2 * COLUMNS}">{escape_html(block.title)}</th></tr>'
    yield f'{title}\n<tr class="heads">{heads}</tr>'
    for section in block.sections:
        yield "\n".join(
            f"<tr>{_cells('td', (*columns(row.vanilla, _MARKUP), *columns(row.gated, _MARKUP)))}</tr>"
            for row in section
        )


def _cells(tag: str, cells: tuple[str, ...]) -> str:
    classes = (f' class="{name}"' if name else "" for name in _CLASSES)
    return "".join(f"<{tag}{attribute}>{cell}</{tag}>" for cell, attribute in zip(cells, classes, strict=True))
