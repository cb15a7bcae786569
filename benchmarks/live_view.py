"""What a refresh of the live view costs, at 10 and at 2,000 trials: ``python -m benchmarks.live_view``.

The study is simulated half-way: its coordinator, records and tallies are those of a run. A refresh is all of it: look
at the coordinator, lay out the lines, draw them by rich's live display.
"""

from __future__ import annotations

import io
import tempfile
import time
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.live import Live

from benchmarks.page import Table
from benchmarks.simulated_pool import FakeTraining, SimulatedPool, simulated_coordinator
from study.coordinator import StudyCoordinator
from study.live_view import REFRESH_EVERY_S, plain_line, render_view
from study.plan import plan
from study.results import ResultsFolder
from study.spec import read_study

WIDTH, HEIGHT, SLOTS, REFRESHES = 120, 50, 32, 200
TARGET = 0.01

STUDY = """
name: view
arms:
  dataset: [digits, zinc, cluster]
  backbone: [gcn, graphsage, gat, gated_gcn]
  placement: [none, boosting, interleaved, dense]
  budget: 20000
  layers: 4
space:
  learning_rate: {log_uniform: [1.0e-3, 1.0e-2]}
  sigma_m: {log_uniform: [0.1, 10]}
  num_clusters: {choice: [4, 8, 16]}
fixed: {max_epochs: 9}
search: {sampler: random, trials: 1, asha: {grace_epochs: 1, reduction_factor: 3}}
confirm: {seeds: [41, 95, 12, 35]}
"""
SMALL = (
    STUDY.replace("[digits, zinc, cluster]", "digits")
    .replace("[gcn, graphsage, gat, gated_gcn]", "gcn")
    .replace("[none, boosting, interleaved, dense]", "[none, boosting]")
)


def half_way(text: str, trials: int, root: Path) -> StudyCoordinator:
    """The coordinator of a study whose every cell has ended, and which was then asked for as much again."""
    spec, folder = read_study(text), ResultsFolder(root)
    planned = plan(spec)
    cells = len(planned.cells)
    training = FakeTraining(
        seconds=lambda assignment: 1.0,
        val_metric=lambda assignment, epoch: int(assignment.key[:6], 16) / 2**24 + epoch,
        last_epoch=lambda assignment: assignment.config.train.max_epochs,
    )
    done = [max(1, trials // (2 * cells))] * cells
    SimulatedPool(simulated_coordinator(spec, planned, folder, done), folder, SLOTS, training).run()
    coordinator = simulated_coordinator(spec, planned, folder, [2 * count for count in done])
    for _ in range(min(SLOTS, trials // 2)):
        coordinator.next_trial()
    return coordinator


def measure(text: str, trials: int) -> tuple[str, ...]:
    """A row: the trials, and milliseconds of CPU for a refresh on a terminal and for a plain line."""
    with tempfile.TemporaryDirectory() as root:
        coordinator = half_way(text, trials, Path(root))
        console = Console(file=io.StringIO(), width=WIDTH, height=HEIGHT, force_terminal=True)
        refreshes, lines = [], []
        with Live(console=console, auto_refresh=False) as live:
            for _ in range(REFRESHES):
                began = time.process_time()
                live.update(render_view(coordinator.view(SLOTS), WIDTH, HEIGHT - 1), refresh=True)
                middle = time.process_time()
                plain_line(coordinator.view(SLOTS))
                refreshes.append(middle - began)
                lines.append(time.process_time() - middle)
        seen = coordinator.view(SLOTS)
        refresh = median(refreshes)
        return (
            f"{seen.total:,} in {len(seen.cells)} cells",
            f"{1000 * refresh:.2f}",
            f"{100 * refresh / REFRESH_EVERY_S:.2f}%",
            f"{1000 * median(lines):.2f}",
        )


def main() -> None:
    """Print the table."""
    table = Table(
        title=f"The live view on {WIDTH} columns and {HEIGHT} lines",
        note=f"Medians of {REFRESHES}; a refresh each {REFRESH_EVERY_S:g} s. To be reached: {TARGET:.0%} of a core.",
        columns=("Trials", "Refresh, ms of CPU", "Of a core", "Plain line, ms"),
        rows=(measure(SMALL, 10), measure(STUDY, 2000)),
        labels=1,
    )
    Console().print(table.for_terminal())


if __name__ == "__main__":
    main()
