"""A table whose rows a reader may sort: what a column holds, and each cell as it is read and as it is compared."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from reports.page.markup import NOTHING


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column: its head, whether its cells compare as numbers or as text, and how much text they hold."""

    head: str
    kind: Literal["text", "number"] = "text"
    width: Literal["short", "middling", "wide"] = "short"

    @property
    def classes(self) -> str:
        """How its cells are set."""
        return "right" if self.kind == "number" else self.width


@dataclass(frozen=True, kw_only=True)
class Value:
    """A cell: ``shown`` to the reader (escaped, unless it is Markup), and what it is sorted by.

    ``key`` is empty where there is no value (such rows come last in either direction), None where it is the text shown.
    """

    shown: str | Markup
    key: str | None = None


Row = tuple[Value, ...]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Rows that are sorted among themselves; ``title`` stands above them: None, nothing does."""

    title: str | None
    rows: tuple[Row, ...]


@dataclass(frozen=True, kw_only=True)
class SortableTable:
    """Rows under columns, each row as long as there are columns; ``caption`` tells a screen reader what it is."""

    caption: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]

    @property
    def num_rows(self) -> int:
        """Rows of all groups."""
        return sum(len(group.rows) for group in self.groups)


def flat_table(
    caption: str, columns: Sequence[Column], rows: Sequence[Row], kept: Collection[str] = ()
) -> SortableTable:
    """A table of one group, without the columns in which no row has a value; those with the heads ``kept`` stay."""
    places = [
        place
        for place, column in enumerate(columns)
        if column.head in kept or any(row[place].key != "" for row in rows)
    ]
    return SortableTable(
        caption=caption,
        columns=tuple(columns[place] for place in places),
        groups=(Group(title=None, rows=tuple(tuple(row[place] for place in places) for row in rows)),),
    )


def number(value: float | None, form: str = "", shown: str | Markup | None = None) -> Value:
    """A number, formatted by ``form`` unless ``shown`` is given, and sorted by all of its digits; None is missing."""
    if value is None:
        return Value(shown=NOTHING if shown is None else shown, key="")
    return Value(shown=format(value, form) if shown is None else shown, key=repr(value))


def words(value: str | None) -> Value:
    """Text; None is missing."""
    return Value(shown=NOTHING, key="") if value is None else Value(shown=value)
