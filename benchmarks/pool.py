"""What 10,000 trials cost the searcher and the scheduler of a run, were training free: ``python -m benchmarks.pool``.

Prints its table. A virtual clock stands in for the cluster, made-up numbers for training; sampling, halving, journal
and records are those of a run.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from rich.console import Console

from benchmarks.page import Table
from benchmarks.simulated_pool import Cost, FakeTraining, SimulatedPool, Timeline, simulated_coordinator
from study.assignment import TrialAssignment
from study.journal import Journal
from study.plan import plan
from study.results import ResultsFolder
from study.sealing import seal
from study.spec import read_study

TRIALS, SLOTS, EPOCHS = 10_000, 32, 27
TARGET_S = 60

STUDY = f"""
name: pool
arms:
  dataset: [digits, zinc]
  backbone: [gcn, graphsage, gat, gated_gcn]
  placement: [none, boosting, interleaved, dense]
  budget: 20000
  layers: 4
space:
  learning_rate: {{log_uniform: [1.0e-3, 1.0e-2]}}
  sigma_m: {{log_uniform: [0.1, 10]}}
  num_clusters: {{choice: [4, 8, 16]}}
fixed: {{max_epochs: {EPOCHS}}}
search: {{sampler: tpe, trials: 1, asha: {{grace_epochs: 1, reduction_factor: 3}}}}
confirm: {{seeds: [41, 95, 12, 35]}}
"""


def measure(root: Path, trials: int) -> Table:
    """Run the study in ``root`` with so many search trials, and tell what the answers of its driver cost."""
    spec = read_study(STUDY)
    planned = plan(spec)
    cells = len(planned.cells)
    folder = ResultsFolder(root)
    sizes = [trials // cells + (cell < trials % cells) for cell in range(cells)]
    coordinator = simulated_coordinator(spec, planned, folder, sizes)
    pool = SimulatedPool(coordinator, folder, SLOTS, _training())
    with _timed("study.coordinator.seal", seal) as sealing, _timed(_APPEND, Journal.append) as journal:
        line = pool.run()
    suggest, report, end = (pool.costs[name] for name in ("suggest", "report", "end"))
    sampled = Cost(len(line.stays), suggest.cpu - journal.cpu, suggest.wall - journal.wall)
    told = Cost(end.times, end.cpu - sealing.cpu, end.wall - sealing.wall)
    parts = (sampled, told, report)
    both = Cost(len(line.stays), sum(part.cpu for part in parts), sum(part.wall for part in parts))
    return Table(
        title=f"{trials:,} search trials and {len(line.stays) - _searched(line):,} confirm trials in {cells} cells",
        note=f"Up to {EPOCHS} epochs, {SLOTS} slots, of which {100 * line.busy:.2f}% were busy until the tail. "
        f"To be reached by searcher and scheduler: {TARGET_S} s.",
        columns=("What", "Times", "CPU, s", "Clock, s"),
        rows=(
            _row("Searcher: trials sampled", sampled),
            _row("Searcher: ends told to samplers", told),
            _row("Scheduler: reports judged", report),
            _row("Searcher and scheduler", both),
            _row("Journal, flushed to the disk for each trial", journal),
            _row("Records sealed", sealing),
        ),
        labels=1,
    )


_APPEND = "study.journal.Journal.append"


def _searched(line: Timeline) -> int:
    return sum(stay.phase == "search" for stay in line.stays)


def _row(what: str, cost: Cost) -> tuple[str, ...]:
    return what, f"{cost.times:,}", f"{cost.cpu:.1f}", f"{cost.wall:.1f}"


@contextmanager
def _timed(name: str, function: Callable[..., Any]) -> Iterator[Cost]:
    cost = Cost()

    def timed(*arguments: Any, **named: Any) -> Any:
        with cost.timed():
            return function(*arguments, **named)

    with mock.patch(name, timed):
        yield cost


def _training() -> FakeTraining:
    def unit(*parts: object) -> float:
        return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6], "big") / 2**48

    def val_metric(assignment: TrialAssignment, epoch: int) -> float:
        return (unit(assignment.key) + 0.3 * unit(assignment.key, epoch)) * (1 - 0.7**epoch)

    return FakeTraining(
        seconds=lambda assignment: 0.5 + unit(assignment.key, "seconds"),
        val_metric=val_metric,
        last_epoch=lambda assignment: EPOCHS,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS, help="search trials of the study")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        table = measure(Path(scratch), given.trials)
    Console().print(table.for_terminal())


if __name__ == "__main__":
    main()
