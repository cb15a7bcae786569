"""What a study costs beside its training, in one page: ``python -m benchmarks.study_costs`` writes docs/study_costs.md.

Runs ``benchmarks.trivial_trials`` and every part of ``benchmarks.mirror``. Linux only.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from benchmarks import mirror, trivial_trials
from benchmarks.page import Table, as_page, processor, versions_of

PAGE = Path(__file__).parent.parent / "docs" / "study_costs.md"


def _trivial(root: Path) -> Table:
    return trivial_trials.table(trivial_trials.run(root, trivial_trials.TRIALS))


def main() -> None:
    """Measure one part after the other, print it and write the page of all so far."""
    console = Console()
    parts: tuple[Callable[[Path], Table], ...] = (_trivial, *mirror.PARTS.values())
    tables = []
    for part in parts:
        with tempfile.TemporaryDirectory() as scratch:
            began = os.getloadavg()[0]
            table = part(Path(scratch))
        busy = (began + os.getloadavg()[0]) / 2
        tables.append(table.with_remark(f"On average {busy:.1f} processes wanted a core meanwhile."))
        console.print(tables[-1].for_terminal())
        PAGE.write_text(as_page(_introduction(), tables, title="What a study costs beside its training"), "utf-8")
    console.print(f"written to {PAGE.relative_to(PAGE.parent.parent)}")


def _introduction() -> tuple[str, ...]:
    named = versions_of("python", "ray", "mlflow", "torch")
    return (
        "Written by `make bench` (`python -m benchmarks.study_costs`); do not edit. Measured on "
        f"{os.cpu_count()} cores of {processor()} with {named}. Where more processes wanted a "
        "core than there are, times by the clock tell of the others too; CPU times hold.",
        "What a training step costs is in docs/performance.md, what searcher and scheduler cost in docs/cluster.md.",
    )


if __name__ == "__main__":
    main()
