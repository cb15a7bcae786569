"""What a study costs beside its training, in one page: ``python -m benchmarks.study_costs`` writes docs/study_costs.md.

Runs ``benchmarks.trivial_trials`` and every part of ``benchmarks.mirror``. Linux only.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import torch
from rich.console import Console

from benchmarks import mirror, trivial_trials
from benchmarks.page import as_page
from study.provenance import device_name, library_versions

PAGE = Path(__file__).parent.parent / "docs" / "study_costs.md"


def main() -> None:
    """Measure everything, print it and write the page."""
    console = Console()
    load = os.getloadavg()[0]
    tables = []
    with tempfile.TemporaryDirectory() as scratch:
        tables.append(trivial_trials.table(trivial_trials.run(Path(scratch), trivial_trials.TRIALS)))
        console.print(tables[-1].for_terminal())
    for name, part in mirror.PARTS.items():
        with tempfile.TemporaryDirectory() as scratch, console.status(name):
            tables.append(part(Path(scratch)))
        console.print(tables[-1].for_terminal())
    busy = (load + os.getloadavg()[0]) / 2
    versions = library_versions()
    named = ", ".join(f"{name} {versions[name]}" for name in ("python", "ray", "mlflow", "torch"))
    paragraphs = (
        "Written by `make bench` (`python -m benchmarks.study_costs`); do not edit. Measured on "
        f"{os.cpu_count()} cores of {device_name(torch.device('cpu'))} with {named}, while {busy:.1f} processes wanted "
        "a core on average (with more than there are cores, times by the clock say more of the others than of this "
        "program; CPU times hold).",
        "What a training step costs is in docs/performance.md, what searcher and scheduler cost in docs/cluster.md.",
    )
    PAGE.write_text(as_page(paragraphs, tables, title="What a study costs beside its training"), encoding="utf-8")
    console.print(f"written to {PAGE.relative_to(PAGE.parent.parent)}")


if __name__ == "__main__":
    main()
