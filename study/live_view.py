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
        with Live(render_view(self._look()), console=self._console, auto_refresh=False) as live:
            while not self._ended.wait(1 / REFRESHES_PER_SECOND):
                live.update(render_view(self._look()), refresh=True)
            live.update(render_view(self._look()), refresh=True)

    def _run_plain(self) -> None:
        shown = ""
        while not self._ended.wait(PLAIN_LINE_EVERY_S):
            line = plain_line(self._look())
            if line != shown:
                self._console.print(line, highlight=False, soft_wrap=True)
                shown = line
        self._console.print(plain_line(self._look()), highlight=False, soft_wrap=True)


def render_view(view: StudyView) -> RenderableType:
    """The view as a table of cells under a bar."""
    table = Table(box=None, header_style="bold", padding=(0, 1))
    table.add_column("cell", overflow="fold", max_width=44)
    for heading in ("search", "running", "pruned", "failed", "best", "confirm"):
        table.add_column(heading, justify="right")
    for line in view.cells:
        table.add_row(
            line.goal.cell,
            f"{line.searched}/{line.goal.trials}",
            str(line.running or "-"),
            str(line.pruned or "-"),
            _troubles(line),
            _best(line),
            f"{line.confirmed}/{line.goal.confirm_trials}",
        )
    bar = Table.grid(padding=(0, 1))
    bar.add_row(ProgressBar(total=max(1, view.total), completed=view.ended, width=30), Text(_headline(view)))
    return Group(bar, table)


def plain_line(view: StudyView) -> str:
    """The view in one line."""
    best = ", ".join(f"{line.goal.cell} {_best(line)}" for line in view.cells if line.best is not None)
    return f"{_headline(view)}{'; best so far: ' if best else ''}{best}"


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


def _best(line: CellLine) -> str:
    return "-" if line.best is None else f"{line.best:.4f} {line.goal.metric}"


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
