"""A study as it runs, in the terminal; plain lines where there is no terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live

from study.progress import StudyView
from study.view_lines import counts_of, time_left_text, view_lines
from study.view_table import best_text

REFRESH_EVERY_S = 0.5
LARGEST_SHARE = 0.01
"""Of the time, that drawing may take: what takes longer is drawn less often."""

PLAIN_LINE_EVERY_S = 15.0
PLAIN_SHARE = 0.02
PLAIN_AT_MOST_EVERY_S = 600.0
"""Plain lines come further apart as a study grows older: the next after a fiftieth of its age, but at least each ten
minutes. A day has 330 of them."""

CELLS_IN_A_LINE = 4
CAUSES_IN_A_LINE = 2


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
        if not self._console.is_terminal or self._console.is_dumb_terminal:
            self._run_plain()
            return
        with Live(self._fitted(), console=self._console, auto_refresh=False) as live:
            pause = REFRESH_EVERY_S
            while not self._ended.wait(pause):
                began = time.thread_time()
                live.update(self._fitted(), refresh=True)
                pause = max(REFRESH_EVERY_S, (time.thread_time() - began) / LARGEST_SHARE)
            live.update(render_view(self._look(), self._console.width), refresh=True)

    def _fitted(self) -> RenderableType:
        """The view, on as many lines as the terminal has; the last one is the cursor's."""
        return render_view(self._look(), self._console.width, self._console.height - 1)

    def _run_plain(self) -> None:
        shown = ""
        began = time.monotonic()
        while not self._ended.wait(plain_pause(time.monotonic() - began)):
            shown = self._print_changed(shown)
        self._print_changed(shown)

    def _print_changed(self, shown: str) -> str:
        line = plain_line(self._look())
        if line != shown:
            self._console.print(line, highlight=False, markup=False, soft_wrap=True)
        return line


def plain_pause(age_s: float) -> float:
    """Seconds from one plain line of a study of this age to the next."""
    return min(max(PLAIN_LINE_EVERY_S, PLAIN_SHARE * age_s), PLAIN_AT_MOST_EVERY_S)


def render_view(view: StudyView, width: int, height: int | None = None) -> RenderableType:
    """The view for a terminal of so many columns and lines; see :func:`study.view_lines.view_lines`."""
    return Group(*view_lines(view, width, height))


def plain_line(view: StudyView) -> str:
    """The view in one line."""
    left = time_left_text(view)
    parts = [f"{view.study}: {view.ended}/{view.total} trials", *counts_of(view), *([left] if left else [])]
    scored = [line for line in view.cells if line.best is not None]
    best = ", ".join(f"{line.goal.cell} {best_text(line)}" for line in scored[:CELLS_IN_A_LINE])
    more = f" and {len(scored) - CELLS_IN_A_LINE} more cells" if len(scored) > CELLS_IN_A_LINE else ""
    causes = [f"{trouble.trials} {trouble.status}: {trouble.cause}" for trouble in view.troubles[:CAUSES_IN_A_LINE]]
    sentences = [", ".join(parts), f"best so far: {best}{more}" if best else "", *causes]
    return "; ".join(sentence for sentence in sentences if sentence)
