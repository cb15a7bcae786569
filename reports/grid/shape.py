"""What a plain table is: headings and rows of text, the words around them, and unrounded values for the CSV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from reports.words.prose import Note, Text

Align = Literal["left", "right", "centre"]


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column.

    Attributes:
        width: in letters, of one whose text is broken into lines; None: as wide as its text.
        apart: whether more room than usual parts it from the column on its left.
    """

    head: str
    align: Align = "left"
    width: int | None = None
    apart: bool = False


@dataclass(frozen=True, kw_only=True)
class Section:
    """Rows between two rules, a text for each column.

    Attributes:
        title: what stands above them; None: nothing does.
        heads: heads of its own under its title; they hold for the sections below it too, up to the next that has some.
            Either the first section has heads, and the table then no others, or none has.
    """

    title: str | None
    rows: tuple[tuple[Text, ...], ...]
    heads: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table ready to be written.

    Attributes:
        name: of its files, and of its label in LaTeX; letters, digits, hyphens and underscores.
        title: of the page, in a few words.
        nothing: what stands in the place of rows where there are none.
        wide: whether it needs the breadth of a page that is turned.
        record_fields, records: the rows of the CSV, with unrounded values.
    """

    name: str
    title: str
    caption: Text
    columns: tuple[Column, ...]
    sections: tuple[Section, ...]
    notes: tuple[Note, ...]
    nothing: str
    wide: bool
    record_fields: tuple[str, ...]
    records: tuple[Mapping[str, object], ...]
