"""What it is worth that products go over whole multiples of rows: ``python -m benchmarks.batch_sizes``.

Networks are trained on ZINC-like batches, all of different sizes, in two processes that take turns: with
:data:`bimp.kernels.room.MULTIPLE` as it is, and with 1, so that every size is a product's own. Writes a part of
docs/performance.md. Linux only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch
from rich.console import Console

from benchmarks.environment import start_as_a_worker
from benchmarks.measure import Ratio, milliseconds
from benchmarks.own_process import memory
from benchmarks.page import Table, on_one_thread, write_part
from bimp.config import BACKBONES, Backbone
from bimp.data import GraphBatch

DATASET, LAYERS = "zinc", 4
SEED = 0
STEPS_BEFORE, STEPS, QUICK_STEPS = 40, 200, 20
"""Steps of a process that are not counted, and those that are: three epochs of ZINC in all."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Of a backbone: CPU seconds of each step and the peak of a process, with products of few sizes and of any."""

    backbone: Backbone
    few: tuple[float, ...]
    any: tuple[float, ...]
    few_bytes: int
    any_bytes: int


class Trainee:
    """A process that trains a network step by step.

    Args:
        backbone: of its network.
        multiple: of rows, over which products go.
    """

    def __init__(self, backbone: Backbone, multiple: int) -> None:
        program = "from benchmarks.batch_sizes import as_process; as_process()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, backbone, str(multiple)],
            cwd=Path(__file__).parent.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def step(self) -> float:
        """CPU seconds of the next step.

        Raises:
            RuntimeError: the process ended.
        """
        return float(self._ask("step"))

    def end(self) -> int:
        """The most bytes that the process held; it ends.

        Raises:
            RuntimeError: the process ended before.
        """
        peak = int(self._ask("end"))
        self._process.wait()
        return peak

    def _ask(self, question: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(question, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"training in a process of its own: ended with exit status {self._process.wait()}")
        return str(json.loads(answer))


def main() -> None:
    """Measure, print and write the part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few steps; writes nothing")
    quick: bool = parser.parse_args().quick
    start_as_a_worker("benchmarks.batch_sizes")
    console = Console()
    costs = []
    for backbone in BACKBONES:
        with console.status(f"training {backbone}"):
            costs.append(measure(backbone, QUICK_STEPS if quick else STEPS))
    page = table(costs)
    console.print(page.for_terminal())
    if not quick:
        write_part("batch_sizes", "Batches of different sizes", (on_one_thread("batch_sizes"),), [page])


def measure(backbone: Backbone, steps: int) -> Cost:
    """Train two networks of ``backbone`` on the same batches, in turns."""
    from bimp.kernels.room import MULTIPLE

    few, any_size = Trainee(backbone, MULTIPLE), Trainee(backbone, 1)
    for _ in range(STEPS_BEFORE):
        few.step(), any_size.step()
    spent = [(few.step(), any_size.step()) for _ in range(steps)]
    return Cost(
        backbone=backbone,
        few=tuple(of_few for of_few, _ in spent),
        any=tuple(of_any for _, of_any in spent),
        few_bytes=few.end(),
        any_bytes=any_size.end(),
    )


def table(costs: list[Cost]) -> Table:
    """What each backbone costs."""
    return Table(
        title="Products of few sizes",
        note=f"Training steps with boosting, {LAYERS} layers, on batches of 128 drawn ZINC-like graphs, each another "
        f"one: {STEPS} steps after {STEPS_BEFORE}, as many as three epochs of ZINC. oneDNN, which takes the products "
        "of AMD cores, writes code for each size and keeps the last thousand. `Any size`: products over as many rows "
        "as a batch has. `Few sizes`: over whole multiples of 64 rows, as they are taken. Milliseconds of CPU time, "
        "medians; quotients step by step, with their quartiles; the most memory that a process held, libraries "
        "included.",
        columns=("Backbone", "Any size, ms", "Few sizes, ms", "Times faster", "Any size, MB", "Few sizes, MB"),
        rows=tuple(
            (
                cost.backbone,
                milliseconds(median(cost.any)),
                milliseconds(median(cost.few)),
                Ratio.between(cost.any, cost.few).describe(),
                f"{cost.any_bytes / 1e6:,.0f}",
                f"{cost.few_bytes / 1e6:,.0f}",
            )
            for cost in costs
        ),
        labels=1,
    )


def as_process() -> None:
    """Train a step for each line read; answer each with its CPU seconds, the last line with the peak of memory."""
    from bimp.kernels import room

    backbone = next(name for name in BACKBONES if name == sys.argv[1])
    room.MULTIPLE = int(sys.argv[2])
    step = _training(backbone)
    for line in sys.stdin:
        if line.strip() == "end":
            print(memory("VmHWM"), flush=True)
            return
        start = time.process_time()
        step()
        print(time.process_time() - start, flush=True)


def _training(backbone: Backbone) -> Callable[[], object]:
    from benchmarks.contenders import our_step, trial_config
    from benchmarks.graphs import workload

    torch.set_num_threads(1)
    drawn = workload(DATASET)
    random = torch.Generator().manual_seed(SEED)
    batches: list[GraphBatch] = []  # one, which each step replaces
    train = our_step(trial_config(drawn, backbone, LAYERS, gated=True), batches)

    def step() -> None:
        picks = torch.randint(len(drawn.graphs), (drawn.batch_size,), generator=random)
        batches[:] = [drawn.graphs.gather(picks)]
        train(0)

    return step


if __name__ == "__main__":
    main()
