"""The whole benchmark: draw graphs, time them, print the tables and write docs/performance.md."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import torch
import torch_geometric.typing
from rich.console import Console

from benchmarks import tables
from benchmarks.contenders import BUDGETS, NUM_CLUSTERS, Cell, time_cells
from benchmarks.graphs import BATCHES, WORKLOADS, workload
from benchmarks.machines import note, product_speeds
from benchmarks.measure import WARM_UP
from benchmarks.own_process import ProcessCost, Way, cost_of
from benchmarks.page import PERFORMANCE, Table, processor, versions_of, write_part
from benchmarks.summary import limits, summary

TURNS = {"zinc": 7, "smnist": 5, "cluster": 3, "tsp": 3}
"""Turns that are counted: fewer where a turn takes a minute."""
QUICK_TURNS = 2
IN_OWN_PROCESS = ("gat", "gated_gcn")
"""The backbones with rows or numbers for each edge, which decide how much memory is needed."""


@dataclass(frozen=True, kw_only=True)
class Processes:
    """What was measured in processes of their own.

    Attributes:
        memory: ours and the usual way by dataset and backbone, vanilla, at most layers.
        largest: bi-GatedGCN of most layers on CLUSTER-like batches.
        settings: ours and the usual way, each without and with the allocator settings of workers.
        threads: by number of threads and backbone, ours and the usual way on CLUSTER-like batches.
    """

    memory: dict[tuple[str, str], tuple[ProcessCost, ProcessCost]]
    largest: ProcessCost
    settings: dict[Way, tuple[ProcessCost, ProcessCost]]
    threads: dict[tuple[int, str], tuple[ProcessCost, ProcessCost]]


def run(*, quick: bool, only: str | None) -> None:
    """Measure everything and print it; write the page unless it is to be ``quick`` or of one dataset ``only``."""
    torch.set_num_threads(1)
    console = Console()
    processes = None  # measured first: later this process holds what the largest steps took
    is_whole = not quick and only is None
    if sys.platform == "linux" and is_whole:
        with console.status("measuring processes of their own"):
            processes = _measure_processes()
    cells: list[Cell] = []
    for layers in (min(BUDGETS),) if quick else tuple(BUDGETS):
        for name in WORKLOADS if only is None else (only,):
            with console.status(f"timing {layers} layers on {name}"):
                cells += time_cells(workload(name), layers, QUICK_TURNS if quick else TURNS[name])
    page = [tables.usual_way(cells, _extensions()), tables.gates(cells), tables.shares(cells), tables.loading(cells)]
    if processes is not None:
        page += [
            tables.memory(processes.memory),
            tables.settings(processes.settings),
            tables.threads(processes.threads),
        ]
    targets = summary(cells, processes.memory if processes else {}, processes.largest if processes else None)
    for table in (targets, *page):
        console.print(table.for_terminal())
    if not quick:
        # What is a median or a maximum over all datasets cannot be told from one of them.
        told = [row for row in targets.rows if is_whole or row[0].startswith(cells[0].workload.title)]
        note([*product_speeds(), *limits(cells), *((target, measured) for target, measured, _ in told)])
    if is_whole:
        _write([targets, *page])
    if not quick:
        console.print(f"written to docs/{PERFORMANCE.name}")


def _measure_processes() -> Processes:
    deep, shallow = max(BUDGETS), min(BUDGETS)
    ways: tuple[Way, Way] = ("vanilla", "usual")
    return Processes(
        memory={
            (name, backbone): (
                cost_of("vanilla", name, backbone, deep),
                cost_of("usual", name, backbone, deep),
            )
            for name in WORKLOADS
            for backbone in IN_OWN_PROCESS
        },
        largest=cost_of("boosting", "cluster", "gated_gcn", deep),
        settings={
            way: (
                cost_of(way, "cluster", "gated_gcn", shallow, settings=False),
                cost_of(way, "cluster", "gated_gcn", shallow),
            )
            for way in ways
        },
        threads={
            (count, backbone): (
                cost_of("vanilla", "cluster", backbone, shallow, threads=count),
                cost_of("usual", "cluster", backbone, shallow, threads=count),
            )
            for backbone in ("gcn", "gated_gcn")
            for count in (1, 2)
        },
    )


def _extensions() -> str:
    installed = {
        "torch-scatter": torch_geometric.typing.WITH_TORCH_SCATTER,
        "pyg-lib": torch_geometric.typing.WITH_PYG_LIB,
    }
    return ", ".join(f"{'with' if present else 'without'} {name}" for name, present in installed.items())


def _write(page: list[Table]) -> None:
    named = versions_of("python", "torch", "torch-geometric")
    widths = " and ".join(f"{layers} layers within {budget:,} parameters" for layers, budget in BUDGETS.items())
    turns = ", ".join(f"{name}: {count}" for name, count in TURNS.items())
    paragraphs = (
        f"Measured on {processor()} with {named}, on one thread where no other number is named.",
        f"Networks of {widths}, K = {NUM_CLUSTERS}, on graphs drawn with the sizes, degrees and inputs of the "
        "benchmark's, under the allocator settings of a study's workers. All about a dataset and a depth was timed in "
        f"one process, in turns ({turns}; {WARM_UP} before them are not counted): in each turn everything ran once, on "
        f"the same batch, another one of {BATCHES} in every turn. Times are medians; ratios are of CPU time, the "
        "median of the quotients within a turn and, in parentheses, their quartiles. The machine may have had other "
        "work: milliseconds do not travel, and ratios only between like processors (see the next part).",
        "Not measured here: a GPU.",
    )
    write_part("step", "Training steps", paragraphs, page)
