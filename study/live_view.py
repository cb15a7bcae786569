"""A study as it runs, in the terminal; plain lines where there is no terminal."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from study.progress import CellLine, StudyView

REFRESHES_PER_SECOND = 2
PLAIN_LINE_EVERY_S = 15.0
CELLS_IN_A_LINE = 4
BAR_WIDTH = 20
LINES_BESIDE_CELLS = 7
"""Lines of the terminal that are kept for the bar, the headings, the count of hidden cells and long names."""


class LiveView:
    """Shows ``look()`` again and again while its block runs: in place on a terminal, else a line now and then.

    It draws from a thread of its own and never waits for the study, nor the study for it.
    """

    def __init__(self, look: Callable[[], StudyView], console: Console) -> None:
        self._look = look
        self._console = console
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="live view", daemon=True)

    def __enter__(self) -> LiveView:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        if not self._console.is_terminal:
            self._run_plain()
            return
        with Live(self._fitted(), console=self._console, auto_refresh=False) as live:
            while not self._ended.wait(1 / REFRESHES_PER_SECOND):
                live.update(self._fitted(), refresh=True)
            live.update(render_view(self._look()), refresh=True)

    def _fitted(self) -> RenderableType:
        """The view, of as many cells as the terminal has lines for."""
        return render_view(self._look(), most_cells=max(1, self._console.height - LINES_BESIDE_CELLS))

    def _run_plain(self) -> None:
        shown = ""
        while not self._ended.wait(PLAIN_LINE_EVERY_S):
            line = plain_line(self._look())
            if line != shown:
                self._console.print(line, highlight=False, soft_wrap=True)
                shown = line
        self._console.print(plain_line(self._look()), highlight=False, soft_wrap=True)


def render_view(view: StudyView, most_cells: int | None = None) -> RenderableType:
    """The view as a table of cells under a bar.

    Where there are more than ``most_cells``, those in which something runs come first, then those with work left.
    """
    shown = _foremost(view.cells, most_cells)
    metrics = {line.goal.metric for line in view.cells}
    shared_metric = metrics.pop() if len(metrics) == 1 else None
    table = Table(box=None, header_style="bold", padding=(0, 1), pad_edge=False)
    table.add_column("cell", overflow="fold")
    best = f"best\n{shared_metric}" if shared_metric else "best"
    for heading in ("search", "running", "pruned", "failed", best, "confirm"):
        table.add_column(heading, justify="right", no_wrap=True)
    for line in shown:
        table.add_row(
            line.goal.cell,
            f"{line.searched}/{line.goal.trials}" if line.goal.trials else "-",
            str(line.running or "-"),
            str(line.pruned or "-"),
            _troubles(line),
            _best(line, with_metric=shared_metric is None),
            f"{line.confirmed}/{line.goal.confirm_trials}",
        )
    bar = Table.grid(padding=(0, 1))
    bar.add_row(ProgressBar(total=max(1, view.total), completed=view.ended, width=BAR_WIDTH), Text(_headline(view)))
    hidden = len(view.cells) - len(shown)
    return Group(bar, table, Text(f"and {hidden} more cells")) if hidden else Group(bar, table)


def _foremost(cells: tuple[CellLine, ...], most: int | None) -> tuple[CellLine, ...]:
    if most is None or len(cells) <= most:
        return cells
    by_urgency = sorted(cells, key=lambda line: (not line.running, line.confirmed >= line.goal.confirm_trials))
    chosen = {line.goal.cell for line in by_urgency[:most]}
    return tuple(line for line in cells if line.goal.cell in chosen)


def plain_line(view: StudyView) -> str:
    """The view in one line."""
    scored = [line for line in view.cells if line.best is not None]
    best = ", ".join(f"{line.goal.cell} {_best(line)}" for line in scored[:CELLS_IN_A_LINE])
    more = f" and {len(scored) - CELLS_IN_A_LINE} more cells" if len(scored) > CELLS_IN_A_LINE else ""
    return f"{_headline(view)}{'; best so far: ' if best else ''}{best}{more}"


def _headline(view: StudyView) -> str:
    pruned = sum(line.pruned for line in view.cells)
    troubles = sum(line.failed + line.diverged for line in view.cells)
    slots = f"{view.running} running" if view.slots is None else f"{view.running} of {view.slots} slots running"
    parts = [f"{view.study}: {view.ended}/{view.total} trials", slots, f"{pruned} pruned"]
    if troubles:
        parts.append(f"{troubles} failed or diverged")
    if view.seconds_left is not None and view.ended < view.total:
        parts.append(f"about {_duration(view.seconds_left)} left")
    return ", ".join(parts)


def _best(line: CellLine, *, with_metric: bool = True) -> str:
    if line.best is None:
        return "-"
    return f"{line.best:.4f} {line.goal.metric}" if with_metric else f"{line.best:.4f}"


def _troubles(line: CellLine) -> str:
    parts = []
    if line.failed:
        parts.append(f"{line.failed}")
    if line.diverged:
        parts.append(f"{line.diverged} diverged")
    return " + ".join(parts) or "-"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
