"""What a dataset costs a node that runs many trials of it: ``python -m benchmarks.node_data``.

CLUSTER is drawn at its published size and digits are made, both into a folder that is removed afterwards. Then several
processes open them as trials do, go through all training graphs, and stay while their memory is read. Writes a part of
docs/performance.md; ``--quick`` takes a tenth of CLUSTER and writes nothing. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import IO, Any

import torch
from rich.console import Console

from benchmarks.measure import milliseconds
from benchmarks.page import Table, processor, versions_of, write_part
from bimp.data import PreparedDataset, open_prepared, prepare
from bimp.tasks import task_of

PROCESSES = 4
OPENINGS = 5
"""Times that a process opens a dataset; the first is the first trial's of a worker."""
SETTLED_AFTER_S = 2.5
"""A node remembers that files are right once they are older than two seconds, as those of a study are."""
QUICK_SIZE = 1_000
READY_S = 0.05
BATCH_SIZES = {"cluster": 64, "digits": 128}


@dataclass(frozen=True)
class Ready:
    """Seconds of CPU time, and by the clock, to open a dataset and gather the first training batch."""

    cpu: float
    wall: float

    def describe(self) -> str:
        """In milliseconds, ``CPU (by the clock)``."""
        return f"{milliseconds(self.cpu)} ({milliseconds(self.wall)})"


@dataclass(frozen=True)
class Mapped:
    """Of a dataset's files in one process: bytes in memory, its share of them, and bytes that are its own alone."""

    resident: int
    share: int
    own: int


@dataclass(frozen=True)
class NodeCost:
    """What one dataset costs a node.

    Attributes:
        name: of the dataset.
        file_bytes: of its files.
        hashing: the first opening on the node, which hashes all files.
        first: of each later process, its first opening.
        later: of each process, the median of its later ones.
        mapped: of each process, while all had gone through the training graphs.
    """

    name: str
    file_bytes: int
    hashing: Ready
    first: tuple[Ready, ...]
    later: tuple[Ready, ...]
    mapped: tuple[Mapped, ...]


def main() -> None:
    """Measure, print and write the part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of CLUSTER; writes nothing")
    quick: bool = parser.parse_args().quick
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        costs = []
        for name in BATCH_SIZES:
            with console.status(f"preparing {name}"):
                prepare(name, root, size=QUICK_SIZE if quick and name == "cluster" else None)
                time.sleep(SETTLED_AFTER_S)
            with console.status(f"opening {name}"):
                costs.append(measure(name, root))
    page = [_ready_table(costs), _memory_table(costs)]
    for table in page:
        console.print(table.for_terminal())
    if not quick:
        machine = f"Measured on {processor()} with {versions_of('torch')}, on one thread."
        write_part("node_data", "A dataset on a node", (machine,), page)


def measure(name: str, root: Path) -> NodeCost:
    """Open ``root/name`` in processes of their own, one after the other, and read the memory of all together.

    Raises:
        RuntimeError: a process ended early.
    """
    command = [sys.executable, "-c", "from benchmarks.node_data import as_process; as_process()", name, str(root)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    processes, openings = [], []
    try:
        for _ in range(PROCESSES):
            process = subprocess.Popen(
                command,
                cwd=Path(__file__).parent.parent,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            processes.append(process)
            openings.append([Ready(**ready) for ready in _answer(process.stdout)])
        mapped = []
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
            mapped.append(Mapped(**_answer(process.stdout)))
    finally:
        for process in processes:
            process.communicate()  # its input ends, and so does it
    return NodeCost(
        name=name,
        file_bytes=sum(path.stat().st_size for path in (root / name).glob("*.bin")),
        hashing=openings[0][0],
        first=tuple(ready[0] for ready in openings[1:]),
        later=tuple(_median(ready[1:]) for ready in openings),
        mapped=tuple(mapped),
    )


def as_process() -> None:
    """One of the processes: opens the dataset named on the command line, then answers a line with its memory."""
    name, root = sys.argv[1], Path(sys.argv[2])
    torch.set_num_threads(1)
    dataset, openings = _open(name, root)
    for batch in dataset.split("train").batches(BATCH_SIZES[name]):
        assert batch.num_nodes > 0
    print(json.dumps([asdict(ready) for ready in openings]), flush=True)
    sys.stdin.readline()
    print(json.dumps(asdict(_mapped(root / name))), flush=True)
    sys.stdin.readline()  # the others' memory is read while this one is there


def _open(name: str, root: Path) -> tuple[PreparedDataset, list[Ready]]:
    openings = []
    for opening in range(OPENINGS):
        cpu, wall = time.process_time(), time.perf_counter()
        dataset = open_prepared(name, root)
        train = dataset.split("train")
        order = torch.randperm(len(train), generator=torch.Generator().manual_seed(opening))
        next(train.batches(BATCH_SIZES[name], order=order))
        openings.append(Ready(time.process_time() - cpu, time.perf_counter() - wall))
    return dataset, openings


def _mapped(folder: Path) -> Mapped:
    """Of the mappings of the folder's files in this process."""
    kilobytes = {"Rss": 0, "Pss": 0, "Private_Dirty": 0}
    is_ours = False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        field, _, value = line.partition(":")
        if field in kilobytes:
            kilobytes[field] += int(value.split()[0]) if is_ours else 0
        elif "-" in field.split(" ")[0]:
            is_ours = str(folder) in line
    return Mapped(1024 * kilobytes["Rss"], 1024 * kilobytes["Pss"], 1024 * kilobytes["Private_Dirty"])


def _answer(stream: IO[str] | None) -> Any:
    assert stream is not None
    line = stream.readline()
    if not line:
        raise RuntimeError("benchmarks.node_data: found a process that ended early, expected its measurements")
    return json.loads(line)


def _median(openings: Sequence[Ready]) -> Ready:
    return Ready(median(ready.cpu for ready in openings), median(ready.wall for ready in openings))


def _ready_table(costs: list[NodeCost]) -> Table:
    return Table(
        title="Until the data of a trial is ready",
        note="Opening a prepared dataset and gathering the first batch of an epoch, as a trial does: the first of a "
        f"node, which hashes all files; medians over {PROCESSES - 1} processes after it, the first time in one whose "
        "libraries are loaded, as in a new worker, and afterwards, as for the next trial of a worker. Milliseconds of "
        f"CPU time (by the clock). Aimed at is less than {1000 * READY_S:.0f} of CPU time for the second trial of a "
        "node, in a worker of either kind.",
        columns=("Dataset", "Batch", "First of a node", "New worker", "Next trial", "Aim met"),
        rows=tuple(
            (
                task_of(cost.name).title,
                str(BATCH_SIZES[cost.name]),
                cost.hashing.describe(),
                _median(cost.first).describe(),
                _median(cost.later).describe(),
                "yes" if max(_median(cost.first).cpu, _median(cost.later).cpu) < READY_S else "no",
            )
            for cost in costs
        ),
        labels=1,
    )


def _memory_table(costs: list[NodeCost]) -> Table:
    return Table(
        title="One copy for all trials",
        note=f"Memory of the mapped files of a dataset while {PROCESSES} processes that went through its training "
        "graphs were there, MB: in each (mean), the shares of all together, each page counted once, and pages that "
        "are one process's own.",
        columns=("Dataset", "Files", "Mapped in each", "Together", "Own"),
        rows=tuple(
            (
                task_of(cost.name).title,
                _megabytes(cost.file_bytes),
                _megabytes(sum(mapped.resident for mapped in cost.mapped) / PROCESSES),
                _megabytes(sum(mapped.share for mapped in cost.mapped)),
                _megabytes(sum(mapped.own for mapped in cost.mapped)),
            )
            for cost in costs
        ),
        labels=1,
    )


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.1f}"


if __name__ == "__main__":
    main()
