"""Tables of measurements, for the terminal and for docs/performance.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import fill

from rich.table import Table as RichTable

WIDTH = 120


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of text; the first ``labels`` columns name a row, the others hold numbers."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: int

    def with_remark(self, remark: str) -> Table:
        """The same with a sentence more in its note."""
        return replace(self, note=f"{self.note} {remark}")

    def for_terminal(self) -> RichTable:
        """As rich prints it."""
        table = RichTable(title=self.title, title_justify="left", caption=self.note, caption_justify="left")
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="left" if number < self.labels else "right", overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        return table

    def as_markdown(self) -> str:
        """A section of a Markdown page."""
        rule = ["---" if number < self.labels else "---:" for number in range(len(self.columns))]
        lines = [_line(self.columns), _line(rule), *(_line(row) for row in self.rows)]
        return f"## {self.title}\n\n{_wrapped(self.note)}\n\n" + "\n".join(lines) + "\n"


def as_page(introduction: Sequence[str], tables: Sequence[Table], title: str = "Performance") -> str:
    """A whole page: paragraphs, then tables."""
    paragraphs = [f"{_wrapped(paragraph)}\n" for paragraph in introduction]
    return "\n".join([f"# {title}\n", *paragraphs, *(table.as_markdown() for table in tables)])


def _wrapped(text: str) -> str:
    return fill(text, WIDTH, break_on_hyphens=False)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
