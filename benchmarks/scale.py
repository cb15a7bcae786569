"""What the records of 100,000 trials take to compact and to read, in time and memory: ``python -m benchmarks.scale``.

Prints its table. Linux only: peak memory is counted as Linux does.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from rich.console import Console

from benchmarks.large_study import EPOCHS, TRIALS, make_large_study
from benchmarks.page import Table
from benchmarks.process_cost import cost_of
from study.records import COMPACTED_FILE

SINGLES = 2_000
"""Records in files of their own, which compacting adds to the rest."""
ROOT = Path(__file__).parent.parent


def measure(root: Path, singles: int) -> Table:
    """Make the study in ``root``, compact it, and read it as a user would."""
    folder = make_large_study(root, singles)
    results = str(folder.root.resolve())
    costs = {
        f"run_study.py compact, {singles:,} files into {TRIALS:,} records": cost_of("run_study.py", "compact", results),
        "aggregate.py tables": cost_of("aggregate.py", "tables", results),
        "run_study.py status": cost_of("run_study.py", "status", results),
    }
    size = (folder.records / COMPACTED_FILE).stat().st_size
    return Table(
        title=f"A study of {TRIALS:,} trials",
        note=f"{TRIALS * EPOCHS:,} epochs, {size / 1e6:,.0f} MB compacted. From the start of Python to its end: "
        "seconds by the clock, seconds of CPU time, and peak memory.",
        columns=("Command", "Clock, s", "CPU, s", "Peak, MB"),
        rows=tuple(
            (command, f"{cost.wall:.1f}", f"{cost.cpu:.1f}", f"{cost.peak_bytes / 1e6:,.0f}")
            for command, cost in costs.items()
        ),
        labels=1,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--singles", type=int, default=SINGLES, help="records in files of their own at first")
    parser.add_argument("--keep", type=Path, help="where to leave the study; must not exist")
    given = parser.parse_args()
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as scratch:
        table = measure(given.keep or Path(scratch), given.singles)
    Console().print(table.for_terminal())


if __name__ == "__main__":
    main()
