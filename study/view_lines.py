"""A study's view as lines of a terminal: never wider than it, never more than it has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.style import Style
from rich.text import Text

from study.causes import by_status
from study.counted import counted
from study.duration import duration
from study.progress import CellLine, StudyView
from study.view_table import CellTable, cut, word_for_live

BAR_WIDTH = 20
MOST_CAUSES = 3
_BAD = Style(color="red")


def view_lines(view: StudyView, width: int, height: int | None = None) -> list[Text]:
    """The view on ``height`` lines at most, each of at most ``width`` columns; None: as many as there are.

    Counts come first, then a line for every cell, then why trials failed. Where there are more cells than lines, those
    at work come first, then those with work left; the rest is one line of counts.
    """
    head = [*_headline(view, width), *_counts(view, width)]
    causes = _causes(view, width)
    if height is None:
        return [*head, *CellTable.of(view, width).rows(view.cells), *causes]
    # The counts above all, then the cells; a cause more is worth less than a cell.
    room = max(0, height - len(head))
    causes = causes[: max(1, room // 4)]
    return [*head, *_fitting_cells(view, width, room - len(causes)), *causes][:height]


def time_left_text(view: StudyView) -> str | None:
    """How long it takes still and how that is known; None of a study that has ended."""
    if view.ended >= view.total:
        return None
    left = view.time_left
    if left is None:
        return "time left: not known before a trial has ended" if view.slots is not None else None
    trials = counted(left.ended, "ended trial")
    cells = f"; {left.borrowed} {'cell has' if left.borrowed == 1 else 'cells have'} none" if left.borrowed else ""
    return f"about {duration(left.seconds)} left (from {trials}{cells})"


def counts_of(view: StudyView) -> list[str]:
    """What runs and what went otherwise than to its end, as parts of a sentence."""
    if view.slots is None:
        slots = f"{view.running} {word_for_live(view)}"
    elif view.running > view.slots:  # some are trained together
        slots = f"{view.running} running in {counted(view.slots, 'slot')}"
    else:
        slots = f"{view.running} of {counted(view.slots, 'slot')} running"
    pruned = sum(line.pruned for line in view.cells)
    troubles = by_status(view.troubles)
    waiting = [f"{view.waiting} waiting for a worker"] if view.waiting else []
    counts = (f"{count:,} {status}" for status, count in sorted(troubles.items()))
    return [slots, *waiting, f"{pruned:,} pruned", *counts]


# ---- parts


def _headline(view: StudyView, width: int) -> list[Text]:
    share = view.ended / view.total if view.total else 1.0
    full = int(BAR_WIDTH * share)
    bar = Text.assemble(("━" * full, "green"), ("━" * (BAR_WIDTH - full), "bright_black"))
    return [cut(Text.assemble(bar, f" {view.study}: {view.ended:,}/{view.total:,} trials"), width)]


def _counts(view: StudyView, width: int) -> list[Text]:
    parts = counts_of(view)
    left = time_left_text(view)
    return [cut(Text(line), width) for line in _filled([*parts, *([left] if left else [])], width)]


def _filled(parts: Iterable[str], width: int) -> list[str]:
    """The parts in as few lines as they need, none broken."""
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]}, {part}" if lines[-1] else part
        if len(longer) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines


def _causes(view: StudyView, width: int) -> list[Text]:
    lines = []
    for trouble in view.troubles[:MOST_CAUSES]:
        cells = f" in {trouble.cells} cells" if trouble.cells > 1 else ""
        lines.append(cut(Text(f"{trouble.trials:,} {trouble.status}{cells}: {trouble.cause}", _BAD), width))
    more = len(view.troubles) - MOST_CAUSES
    if more > 0:
        lines.append(cut(Text(f"and {more} other {'cause' if more == 1 else 'causes'}", _BAD), width))
    return lines


def _fitting_cells(view: StudyView, width: int, room: int) -> list[Text]:
    """The cells that fit on ``room`` lines, and one line for the others."""
    columns = CellTable.of(view, width)
    if sum(map(columns.height, view.cells)) < room:
        return columns.rows(view.cells)
    left = room - 2  # the heading, and the line for the others
    chosen = set()
    for line in sorted(view.cells, key=lambda line: (not line.running, not line.waiting, line.ended, not line.begun)):
        left -= columns.height(line)
        if left < 0:
            break
        chosen.add(line.goal.cell)
    shown = [line for line in view.cells if line.goal.cell in chosen]
    return [*(columns.rows(shown) if shown else ()), *_rest(view.cells, shown, width)][: max(0, room)]


def _rest(cells: Sequence[CellLine], shown: Sequence[CellLine], width: int) -> list[Text]:
    there = {line.goal.cell for line in shown}
    hidden = [line for line in cells if line.goal.cell not in there]
    if not hidden:
        return []
    counts = (
        (sum(line.running > 0 for line in hidden), "at work"),
        (sum(line.ended for line in hidden), "ended"),
        (sum(line.begun and not line.running and not line.ended for line in hidden), "waiting"),
        (sum(not line.begun and not line.ended for line in hidden), "not begun"),
    )
    parts = ", ".join(f"{count:,} {word}" for count, word in counts if count)
    more = "more " if shown else ""
    return [cut(Text(f"and {len(hidden):,} {more}{'cell' if len(hidden) == 1 else 'cells'}: {parts}"), width)]
