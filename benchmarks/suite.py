"""The whole benchmark: prepare graphs, time them, print the tables and write docs/performance.md."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import torch
import torch_geometric.typing
from rich.console import Console

from benchmarks import tables
from benchmarks.allocation import CLUSTER_BATCH, ProcessCost, compare
from benchmarks.contenders import BUDGET, DIFFERENT_BATCHES, LAYERS, NUM_CLUSTERS, time_dataset
from benchmarks.measure import WARM_UP
from benchmarks.page import Table, as_page
from bimp.data import PreparedDataset, prepare
from bimp.tasks import task_of
from study.provenance import device_name, library_versions

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
RAW_DATA = "BIMP_RAW_DATA"
TURNS = 9
ALLOCATION_PAIRS = 2


def run() -> None:
    """Measure everything, print it and write the page."""
    torch.set_num_threads(1)
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with console.status("preparing graphs"):
            datasets = _prepare(root)
        timed = []
        for dataset in datasets:
            with console.status(f"timing {dataset.name}"):
                timed.append(time_dataset(dataset, TURNS))
        with console.status("comparing allocator settings"):
            costs = _compare_allocation(root) if sys.platform == "linux" else {}
    page = [
        tables.loading(timed),
        tables.gates(timed),
        tables.shares(timed),
        tables.usual_way(timed, _extensions()),
    ]
    if costs:
        page.append(tables.allocation(costs))
    for table in page:
        console.print(table.for_terminal())
    _write(page, with_zinc=len(datasets) > 1)
    console.print(f"written to {PAGE.relative_to(PAGE.parent.parent)}")


def _prepare(root: Path) -> list[PreparedDataset]:
    datasets = [prepare("digits", root)]
    if raw := os.environ.get(RAW_DATA):
        # Whoever names the folder vouches for its pickles, as for the tests on real data.
        datasets.append(prepare("zinc", root, raw=Path(raw) / "zinc", trust=True))
    return datasets


def _compare_allocation(root: Path) -> dict[str, tuple[list[ProcessCost], list[ProcessCost]]]:
    prepare("cluster", root, size=CLUSTER_BATCH)
    return {
        f"{task_of(name).title}, {graphs} graphs": compare(name, root, ALLOCATION_PAIRS)
        for name, graphs in (("digits", task_of("digits").protocol.batch_size), ("cluster", CLUSTER_BATCH))
    }


def _extensions() -> str:
    installed = {
        "torch-scatter": torch_geometric.typing.WITH_TORCH_SCATTER,
        "pyg-lib": torch_geometric.typing.WITH_PYG_LIB,
    }
    return ", ".join(f"{'with' if present else 'without'} {name}" for name, present in installed.items())


def _write(page: list[Table], *, with_zinc: bool) -> None:
    command = f"{RAW_DATA}=FOLDER make bench" if with_zinc else "make bench"
    versions = library_versions()
    named = ", ".join(f"{name} {versions[name]}" for name in ("python", "torch", "torch-geometric"))
    zinc = "" if with_zinc else f" ZINC is left out: {RAW_DATA} named no folder that holds it."
    paragraphs = (
        f"Written by `{command}`; do not edit. Measured on one thread of {device_name(torch.device('cpu'))} with "
        f"{named}.{zinc}",
        f"Networks of {LAYERS} layers within {BUDGET:,} parameters, K = {NUM_CLUSTERS}, at the batch size of the "
        "benchmark's protocol, under the allocator settings of a study's workers. Everything about a dataset was timed "
        f"in one process in {TURNS} turns after {WARM_UP} that are not counted: in each turn everything ran once, on "
        f"the same one of {DIFFERENT_BATCHES} random batches of the training split. Times are medians; ratios are of "
        "CPU time, the median of the quotients within a turn and, in parentheses, their quartiles. The machine may "
        "have had other work: ratios travel, milliseconds do not.",
        "Not measured yet: a GPU, two threads, 16 layers, peak memory beside the usual way.",
    )
    PAGE.write_text(as_page(paragraphs, page), encoding="utf-8")
