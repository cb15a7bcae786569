"""Steps on a GPU, and what is known of them without one: ``python -m benchmarks.gpu_step``.

Writes a part of docs/performance.md. ``--data FOLDER`` names prepared datasets, whose graphs take the place of drawn
ones; ``--quick`` measures 4 layers in a few turns and writes nothing.
"""

from __future__ import annotations

import argparse
from dataclasses import astuple
from pathlib import Path

import torch
from rich.console import Console

from benchmarks.gpu_contenders import GpuCell, time_on_gpu
from benchmarks.graphs import WORKLOADS, Workload, drawn_graphs, workload
from benchmarks.measure import Ratio, Timings, milliseconds
from benchmarks.operators import Called, operators_of_a_step, operators_of_gathering
from benchmarks.padding import Padded, padded
from benchmarks.page import Table, versions_of, write_part
from bimp.config import BACKBONES, Backbone
from bimp.data import GraphSplit, open_prepared
from bimp.device.ahead import MOST_STEPS
from bimp.tasks import task_of
from study.provenance import device_name

DRAWN = 2_000
"""Graphs that are drawn where a dataset is not prepared."""
FASTER = 5.0
STEP_S = 3e-3
TURNS, QUICK_TURNS = 20, 3
LAYERS = (4, 16)
_DEPTHS = tuple(f"{layers} layers" for layers in LAYERS)


def padding_table(data: Path) -> Table:
    """What padding adds to a step."""
    rows = [_padding_row(name, data) for name in WORKLOADS]
    return Table(
        title="Padding",
        note="Batches of the protocol's size, padded to the sizes that a run chooses. Nodes and edges computed beyond "
        "the real ones, means over ten epochs of training; the share of training steps that no size holds, which are "
        "taken as they are; and nodes and edges together in evaluation. Each size is captured once.",
        columns=("Dataset", "Batch", "Sizes", "Nodes beyond", "Edges beyond", "Too large", "Evaluation"),
        rows=tuple(rows),
        labels=1,
    )


def _padding_row(name: str, data: Path) -> tuple[str, ...]:
    task = task_of(name)
    batch_size = task.protocol.batch_size
    if (data / name / "manifest.json").exists():
        dataset = open_prepared(name, data)
        title, train, validation = task.title, dataset.split("train", None), dataset.split("val", None)
    else:
        graphs = drawn_graphs(name, DRAWN)
        numbers = torch.arange(DRAWN)
        title, train, validation = f"{task.title}-like", GraphSplit(graphs, numbers), GraphSplit(graphs, numbers[:1000])
    found: Padded = padded(train, validation, batch_size)
    return (
        title,
        str(batch_size),
        str(found.sizes),
        f"{found.nodes:.1%}",
        f"{found.edges:.1%}",
        f"{found.too_large:.2%}",
        f"{found.evaluation:.1%}",
    )


def operators_table() -> Table:
    """How many operators a step calls."""
    drawn = workload("zinc")
    return Table(
        title="Operators of a step",
        note="Operators that a training step with boosting calls on a padded ZINC-like batch, Adam and measurements "
        f"included, views and allocations left out; and what gathering {MOST_STEPS} batches at once calls, the orders "
        "of their edges found, before as many steps (fewer where an epoch has fewer of a size, or they are large). "
        "Launches: where more than one is known of an operator on a GPU (benchmarks/operators.py has the list: a sort "
        "counts 8, Adam one for 36 parameters). What the libraries for products and sums part into two is not known "
        "here. A captured step is one call of the host.",
        columns=(
            "Backbone",
            *(f"{part}, {what}" for part in (*_DEPTHS, "Gathering") for what in ("operators", "launches")),
        ),
        rows=tuple(
            (
                backbone,
                *(f"{count:,}" for called in _calls(drawn, backbone) for count in astuple(called)),
            )
            for backbone in BACKBONES
        ),
        labels=1,
    )


def _calls(drawn: Workload, backbone: Backbone) -> list[Called]:
    of_steps = [operators_of_a_step(drawn, backbone, layers) for layers in LAYERS]
    return [*of_steps, operators_of_gathering(drawn, backbone)]


def gpu_tables(cells: list[GpuCell]) -> list[Table]:
    """Targets, and steps beside the usual way."""
    return [
        Table(
            title="What is aimed at on a GPU",
            note="Steps with boosting, loading included, by the clock.",
            columns=("Target", "Measured", "Met"),
            rows=tuple(_targets(cells)),
            labels=1,
        ),
        Table(
            title="Steps on a GPU",
            note="A training step by the clock, milliseconds: ours is an epoch's time over its steps, gathering and "
            "the wait at its end included, after everything was captured; the usual way moves a batch that is collated "
            "already to the GPU and waits for the loss, as the engine's plain loop does.",
            columns=("Dataset", "Layers", "Backbone", "Boosting", "Vanilla", "Usual", "Times faster"),
            rows=tuple(
                (
                    cell.title,
                    str(cell.layers),
                    cell.backbone,
                    _by_the_clock(cell.boosting),
                    _by_the_clock(cell.vanilla),
                    _by_the_clock(cell.usual),
                    Ratio.between(cell.usual.wall, cell.vanilla.wall).describe(),
                )
                for cell in cells
            ),
            labels=3,
        ),
    ]


def _targets(cells: list[GpuCell]) -> list[tuple[str, str, str]]:
    rows = []
    for title in dict.fromkeys(cell.title for cell in cells):
        slowest = min(Ratio.between(cell.usual.wall, cell.vanilla.wall).median for cell in cells if cell.title == title)
        met = "yes" if slowest >= FASTER else "no"
        rows.append((f"{title}: {FASTER:.0f} times the usual way, slowest cell", f"{slowest:.2f}", met))
    for cell in cells:
        if (cell.title, cell.layers, cell.backbone) == ("ZINC-like", 16, "gated_gcn"):
            found = cell.boosting.wall_median
            met = "yes" if found < STEP_S else "no"
            rows.append(("bi-GatedGCN of 16 layers, 128 ZINC-like graphs: under 3 ms", milliseconds(found), met))
    return rows


def _by_the_clock(timings: Timings) -> str:
    return milliseconds(timings.wall_median)


def main() -> None:
    """Measure and write the part of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"), help="prepared datasets (default: data)")
    parser.add_argument("--quick", action="store_true", help="4 layers, few turns; writes no page")
    given = parser.parse_args()
    torch.set_num_threads(1)
    console = Console()
    tables = [padding_table(given.data), operators_table()]
    named = versions_of("python", "torch", "torch-geometric")
    paragraphs = [
        f"`python -m benchmarks.gpu_step`, with {named}. On a GPU steps are captured at a few sizes and replayed "
        "(docs/architecture.md)."
    ]
    if torch.cuda.is_available():
        layers = LAYERS[:1] if given.quick else LAYERS
        turns = QUICK_TURNS if given.quick else TURNS
        cells = [cell for name in WORKLOADS for depth in layers for cell in time_on_gpu(workload(name), depth, turns)]
        tables = [*gpu_tables(cells), *tables]
        paragraphs.append(f"Times were measured on {device_name(torch.device('cuda'))}.")
    else:
        paragraphs.append(
            "No GPU was here: nothing of this part is a time, and the targets (under 3 ms for a step of "
            "bi-GatedGCN with 16 layers on 128 ZINC-like graphs, five times the usual way) are open."
        )
    for table in tables:
        console.print(table.for_terminal())
    if not given.quick:
        write_part("gpu_step", "Steps on a GPU", paragraphs, tables)
        console.print("written to docs/performance.md")


if __name__ == "__main__":
    main()
