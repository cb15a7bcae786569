"""What the allocator settings of workers are worth: the same GatedGCN steps in processes with and without them.

Linux only. The C library reads them when a process starts, hence processes of their own:
``python -m benchmarks.allocation DATASET FOLDER`` is one of them.
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

PREFIX = "MALLOC_"
STEPS = {"digits": 8, "cluster": 4}
"""Steps of a process, by dataset; those of CLUSTER are ten times as long."""
CLUSTER_BATCH = 32
"""Graphs of a CLUSTER-like batch; the benchmark's 64 take twice the memory."""


@dataclass(frozen=True)
class ProcessCost:
    """Of one process: CPU seconds of a step, those of them spent in the kernel, page faults a step, peak memory."""

    cpu: float
    system: float
    page_faults: int
    peak_bytes: int


def compare(dataset: str, root: Path, pairs: int) -> tuple[list[ProcessCost], list[ProcessCost]]:
    """Processes without the settings, and with them, in turns; this process has them set.

    Raises:
        RuntimeError: a process failed; holds the end of what it said.
    """
    with_settings = dict(os.environ)
    without_settings = {name: value for name, value in with_settings.items() if not name.startswith(PREFIX)}
    off, on = [], []
    for _ in range(pairs):
        off.append(_run(dataset, root, without_settings))
        on.append(_run(dataset, root, with_settings))
    return off, on


def _run(dataset: str, root: Path, environment: dict[str, str]) -> ProcessCost:
    command = [sys.executable, "-m", "benchmarks.allocation", dataset, str(root)]
    folder = Path(__file__).parent.parent
    answer = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise RuntimeError(f"{' '.join(command[1:])}: exit status {answer.returncode}: {answer.stderr[-500:]}")
    return ProcessCost(**json.loads(answer.stdout.splitlines()[-1]))


def main(dataset: str, root: Path) -> ProcessCost:
    """The cost of a bi-GatedGCN training step in this process; the first step is not counted."""
    import torch

    from benchmarks.contenders import build_network, our_loss, training_step, trial_config
    from bimp.data import open_prepared
    from bimp.tasks import task_of

    torch.set_num_threads(1)
    batch_size = CLUSTER_BATCH if dataset == "cluster" else task_of(dataset).protocol.batch_size
    prepared = open_prepared(dataset, root)
    batch = prepared.graphs.gather(prepared.split("train").indices[:batch_size])
    network = build_network(trial_config(task_of(dataset), "gated_gcn", gated=True))
    optimizer = torch.optim.Adam(network.parameters())
    cpu, system, page_faults = [], [], []
    for _ in range(STEPS[dataset]):
        before, start = resource.getrusage(resource.RUSAGE_SELF), time.process_time()
        training_step(our_loss(network, batch), optimizer)
        cpu.append(time.process_time() - start)
        after = resource.getrusage(resource.RUSAGE_SELF)
        system.append(after.ru_stime - before.ru_stime)
        page_faults.append(after.ru_minflt - before.ru_minflt)
    return ProcessCost(median(cpu[1:]), median(system[1:]), int(median(page_faults[1:])), _peak_bytes())


def _peak_bytes() -> int:
    # Not ru_maxrss: a new process inherits it from the one that started it.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


if __name__ == "__main__":
    print(json.dumps(asdict(main(sys.argv[1], Path(sys.argv[2])))))
