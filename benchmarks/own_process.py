"""One contender in a process of its own: peak memory, threads, and the allocator settings that the C library reads.

Linux only. ``python -m benchmarks.own_process WAY DATASET BACKBONE LAYERS THREADS`` is one such process.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Literal, get_args

PREFIX = "MALLOC_"
STEPS, WARM_UP = 8, 5
"""Training steps of a process, and how many first ones are not counted: it goes on taking memory for a few."""

Way = Literal["vanilla", "boosting", "usual"]


@dataclass(frozen=True)
class ProcessCost:
    """Of one process: CPU and clock seconds of a step, how many of the former in the kernel, and memory.

    ``peak_bytes`` is the most that the process held; ``base_bytes`` what it held before the first step.
    """

    cpu: float
    wall: float
    system: float
    peak_bytes: int
    base_bytes: int

    @property
    def step_bytes(self) -> int:
        """What the training steps added to the process."""
        return self.peak_bytes - self.base_bytes


def cost_of(
    way: Way, dataset: str, backbone: str, layers: int, *, threads: int = 1, settings: bool = True
) -> ProcessCost:
    """Start a process for it; with ``settings`` under the allocator settings of this one, else under none.

    Raises:
        RuntimeError: the process failed; holds the end of what it said.
    """
    kept = {name: value for name, value in os.environ.items() if settings or not name.startswith(PREFIX)}
    environment = {**kept, "OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, "-m", "benchmarks.own_process", way, dataset, backbone, str(layers), str(threads)]
    folder = Path(__file__).parent.parent
    answer = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise RuntimeError(f"{' '.join(command[1:])}: exit status {answer.returncode}: {answer.stderr[-500:]}")
    return ProcessCost(**json.loads(answer.stdout.splitlines()[-1]))


def main(way: Way, dataset: str, backbone: str, layers: int, threads: int) -> ProcessCost:
    """The cost of a training step in this process."""
    import torch
    from torch_geometric.data import Batch

    from benchmarks.contenders import our_step, trial_config, usual_step
    from benchmarks.graphs import workload
    from benchmarks.usual_way import separate_graphs
    from bimp.config import BACKBONES

    torch.set_num_threads(threads)
    drawn = workload(dataset)
    pick = drawn.picks()[0]
    config = trial_config(drawn, next(name for name in BACKBONES if name == backbone), layers, gated=way == "boosting")
    if way == "usual":
        step = usual_step(config, [Batch.from_data_list(separate_graphs(drawn.graphs, pick))])
    else:
        step = our_step(config, [drawn.graphs.gather(pick)])
    base = memory("VmRSS")
    cpu, wall, system = [], [], []
    for turn in range(STEPS):
        before = resource.getrusage(resource.RUSAGE_SELF)
        cpu_start, wall_start = time.process_time(), time.perf_counter()
        step(turn)
        cpu.append(time.process_time() - cpu_start)
        wall.append(time.perf_counter() - wall_start)
        system.append(resource.getrusage(resource.RUSAGE_SELF).ru_stime - before.ru_stime)
    return ProcessCost(median(cpu[WARM_UP:]), median(wall[WARM_UP:]), median(system[WARM_UP:]), memory("VmHWM"), base)


def memory(field: str) -> int:
    """Bytes that the kernel tells of this process: ``VmRSS`` that it holds, ``VmHWM`` the most that it held."""
    # Not ru_maxrss: a new process inherits it from the one that started it.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{field}:"))


if __name__ == "__main__":
    given = next(way for way in get_args(Way) if way == sys.argv[1])
    print(json.dumps(asdict(main(given, sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])))))
