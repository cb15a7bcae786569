"""The cells of a study as a table of a terminal: as many columns as it has room for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from study.causes import by_status
from study.progress import CellLine, StudyView

LEAST_NAME = 12
"""Columns that the name of a cell has at least; numbers are cut on a terminal that is narrower still."""

ENOUGH_NAME = 30
_LEFT_OUT_FIRST = ("pruned", "diverged", "failed")
"""Columns that go where a name would have less room than enough, one after the other."""

_DONE, _HEAD = Style(dim=True), Style(bold=True)
_GAP = "  "


@dataclass(frozen=True)
class CellTable:
    """A table of cells: its columns of numbers, as wide as the whole study needs them, and the room for names."""

    columns: Sequence[tuple[str, Callable[[CellLine], str]]]
    widths: Sequence[int]
    room: int
    width: int

    @classmethod
    def of(cls, view: StudyView, width: int) -> CellTable:
        """The columns for a terminal of so many; where names get too little room, counts that stand above go."""
        names = max([len("cell"), *(len(line.goal.cell) for line in view.cells)])
        columns = _all_columns(view)
        for less in ("", *_LEFT_OUT_FIRST):
            columns = [(heading, text) for heading, text in columns if heading != less]
            widths = [max([len(heading), *(len(text(line)) for line in view.cells)]) for heading, text in columns]
            room = width - sum(widths) - len(_GAP) * len(widths)
            if room >= min(names, ENOUGH_NAME):
                break
        return cls(columns, widths, max(LEAST_NAME, min(names, room)), width)

    def height(self, line: CellLine) -> int:
        """Lines that a cell takes: its name is folded where it is too long."""
        return len(folded(line.goal.cell, self.room))

    def rows(self, shown: Iterable[CellLine]) -> list[Text]:
        """The heading, and every cell."""
        heading = self._row("cell", [heading for heading, _ in self.columns], _HEAD)
        cells = (
            self._row(line.goal.cell, [text(line) for _, text in self.columns], _DONE if line.ended else None)
            for line in shown
        )
        return [cut(text, self.width) for row in (heading, *cells) for text in row]

    def _row(self, name: str, numbers: Sequence[str], style: Style | None) -> list[Text]:
        first, *rest = folded(name, self.room)
        aligned = "".join(f"{_GAP}{number:>{width}}" for number, width in zip(numbers, self.widths, strict=True))
        return [Text(f"{first:{self.room}}{aligned}", style or ""), *(Text(part, style or "") for part in rest)]


def folded(name: str, room: int) -> list[str]:
    """The name of a cell in lines of at most ``room`` letters, parted behind a hyphen or underscore if one is near."""
    lines = []
    while len(name) > room:
        near = max(name.rfind(mark, 0, room) for mark in "-_") + 1
        end = near if near > room // 2 else room
        lines.append(name[:end])
        name = name[end:]
    return [*lines, name]


def _all_columns(view: StudyView) -> list[tuple[str, Callable[[CellLine], str]]]:
    metrics = {line.goal.metric for line in view.cells}
    shared = metrics.pop() if len(metrics) == 1 else None
    statuses = sorted(by_status(view.troubles))
    return [
        ("search", lambda line: f"{line.searched}/{line.goal.trials}" if line.goal.trials else "-"),
        (word_for_live(view), lambda line: str(line.running or "-")),
        ("pruned", lambda line: str(line.pruned or "-")),
        *((status, lambda line, status=status: str(getattr(line, status) or "-")) for status in statuses),
        (f"best {shared}" if shared else "best", lambda line: best_text(line, with_metric=shared is None)),
        ("confirm", lambda line: f"{line.confirmed}/{line.confirm_trials}" if line.confirm_trials else "-"),
    ]


def best_text(line: CellLine, *, with_metric: bool = True) -> str:
    """The best validation metric so far."""
    if line.best is None:
        return "-"
    return f"{line.best:.4f} {line.goal.metric}" if with_metric else f"{line.best:.4f}"


def word_for_live(view: StudyView) -> str:
    """What live trials are called: those of a run that stopped wait for the next."""
    return "running" if view.at_work or not view.running else "unfinished"


def cut(line: Text, width: int) -> Text:
    """The line, cut to the width of the terminal."""
    line.truncate(width, overflow="ellipsis")
    line.no_wrap = True
    return line
