"""What each kernel for main memory is worth: ``python -m benchmarks.kernels``.

A training step with all of them, and without one, in turns in one process. ``--quick`` takes few turns and writes
nothing; else a part of docs/performance.md is written.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from statistics import median
from unittest.mock import patch

import torch
from rich.console import Console
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from benchmarks.contenders import build_network, our_loss, our_step, trial_config
from benchmarks.environment import start_as_a_worker
from benchmarks.graphs import workload
from benchmarks.measure import Ratio, interleave, milliseconds
from benchmarks.page import Table, on_one_thread, write_part
from bimp.config import Backbone, TrialConfig
from bimp.data import GraphBatch
from bimp.tasks import task_of

LAYERS = 4
TURNS, QUICK_TURNS = 9, 2


@dataclass(frozen=True)
class Kernel:
    """A place where a kernel is chosen, and where it is measured.

    Attributes:
        title: what the kernel does.
        module: which asks ``kernels_serve`` there.
        backbone: of the networks that are trained.
        datasets: of the batches.
    """

    title: str
    module: str
    backbone: Backbone
    datasets: tuple[str, ...]


EVERY_DATASET = ("zinc", "smnist", "cluster", "tsp")
KERNELS = (
    Kernel("Linear maps", "bimp.kernels.linear", "gcn", EVERY_DATASET),
    Kernel("First layer on what rows were embedded from", "bimp.embedded", "gcn", EVERY_DATASET),
    Kernel("Ends of layers", "bimp.layers.residual", "gcn", EVERY_DATASET),
    Kernel("Ends of layers", "bimp.layers.residual", "gat", EVERY_DATASET),
    Kernel("Sums of neighbours", "bimp.neighbourhood", "gcn", EVERY_DATASET),
    Kernel("Maxima of neighbours", "bimp.neighbourhood", "graphsage", EVERY_DATASET),
    Kernel("Attention", "bimp.layers.gat", "gat", EVERY_DATASET),
    Kernel("Edges of GatedGCN", "bimp.layers.gated_gcn", "gated_gcn", EVERY_DATASET),
    Kernel("Head of edges", "bimp.head", "gcn", ("tsp",)),
)


def main() -> None:
    """Start anew with the environment of a study's workers; then measure, print and write the part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few turns; writes nothing")
    quick: bool = parser.parse_args().quick
    start_as_a_worker("benchmarks.kernels")
    torch.set_num_threads(1)
    console = Console()
    rows = []
    for kernel in KERNELS:
        for dataset in kernel.datasets:
            with console.status(f"{kernel.title}: timing {kernel.backbone} on {dataset}"):
                measured = measure(kernel, dataset, QUICK_TURNS if quick else TURNS)
            rows.append((kernel.title, f"{task_of(dataset).title}-like", kernel.backbone, *measured))
    table = Table(
        title="Steps without a kernel",
        note=f"Vanilla training steps, {LAYERS} layers, on a batch, with all kernels and with the plain function in "
        "the place of one: milliseconds of CPU time, their quotient (below 1 the kernel costs time there), and what "
        "the forward pass keeps for the backward pass.",
        columns=(
            "Kernel",
            "Dataset",
            "Backbone",
            "With all, ms",
            "Without it, ms",
            "Without / with",
            "With all, MB",
            "Without it, MB",
        ),
        rows=tuple(rows),
        labels=3,
    )
    console.print(table.for_terminal())
    if not quick:
        write_part("kernels", "Kernels for main memory", (on_one_thread("kernels"),), [table])


def measure(kernel: Kernel, dataset: str, turns: int) -> tuple[str, ...]:
    """Medians with all kernels and without this one, their quotient, and what both ways keep."""
    drawn = workload(dataset)
    batches = [drawn.graphs.gather(picks) for picks in drawn.picks()]
    config = trial_config(drawn, kernel.backbone, LAYERS, gated=False)
    step, plain_step = our_step(config, batches), our_step(config, batches)

    def without(turn: int) -> object:
        with _left_out(kernel):
            return plain_step(turn)

    contenders: dict[str, Callable[[int], object]] = {"with": step, "without": without}
    spent = {name: timings.cpu for name, timings in interleave(contenders, turns).items()}
    quotient = Ratio.between(spent["without"], spent["with"]).describe()
    with_all = kept_bytes(config, batches[0])
    with _left_out(kernel):
        without_it = kept_bytes(config, batches[0])
    kept = (f"{size / 1e6:.1f}" for size in (with_all, without_it))
    return milliseconds(median(spent["with"])), milliseconds(median(spent["without"])), quotient, *kept


def _left_out(kernel: Kernel) -> AbstractContextManager[object]:
    return patch(f"{kernel.module}.kernels_serve", lambda *_: False)


def kept_bytes(config: TrialConfig, batch: GraphBatch) -> int:
    """What the forward pass of a training step keeps, each piece of memory once, parameters and inputs included."""
    pieces: dict[int, int] = {}

    def noted(tensor: Tensor) -> Tensor:
        # A sparse matrix is what an operator within a kernel was given, and is let go with it.
        if tensor.layout == torch.strided:
            storage = tensor.untyped_storage()
            pieces[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(noted, lambda tensor: tensor):
        loss = our_loss(build_network(config).train(), replace(batch))
    assert loss.requires_grad
    return sum(pieces.values())


if __name__ == "__main__":
    main()
