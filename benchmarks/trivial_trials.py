"""What a trial costs beyond its training: a study of trials that train for milliseconds, from command to tables.

``python -m benchmarks.trivial_trials [--trials N]`` runs it on two slots and prints its table. Linux only.
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
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console

from benchmarks.page import Table
from study.records import read_columns
from study.results import ResultsFolder

ROOT = Path(__file__).parent.parent
TRIALS, SLOTS, CELLS = 1_000, 2, 4
GRAPHS = 10
LOOK_EVERY_S = 0.1
TARGETS = {"clock": 180.0, "overhead": 0.4, "peak": 600.0}
"""Seconds of all, seconds a trial, MiB of the driver."""

STUDY = """
name: trivial_trials
seed: 1
arms: {{dataset: cluster, backbone: [gcn, graphsage, gat, gated_gcn], placement: none, hidden_dim: 4, layers: 1}}
space: {{learning_rate: {{log_uniform: [1.0e-3, 1.0e-2]}}}}
fixed: {{max_epochs: {epochs}, batch_size: {graphs}}}
search: {{sampler: tpe, trials: {trials}, asha: {{grace_epochs: 1, reduction_factor: 2}}}}
confirm: {{seeds: [41]}}
resources: {{max_concurrent: {slots}}}
"""


@dataclass(frozen=True)
class Stay:
    """A trial: when its worker began it and when it ended, in Unix seconds, and the seconds in which it trained."""

    began: float
    ended: float
    trained: float


@dataclass(frozen=True, kw_only=True)
class StudyCost:
    """Of a whole run.

    Attributes:
        trials: that ended. clock: seconds from command to prompt.
        cpu: seconds of CPU time of the driver. peak_mib: of its memory.
        overhead: seconds of a slot for a trial, beyond those in which it trained, once workers were warm.
        trained: seconds in which a trial trained.
    """

    trials: int
    clock: float
    cpu: float
    peak_mib: float
    overhead: float
    trained: float


def overhead(stays: Sequence[Stay], slots: int) -> float:
    """Seconds that a slot spent on a trial beyond its training, from the first ``2 * slots`` ends to the last end.

    By then each slot's worker has run a trial, and what workers load once is loaded.
    """
    ordered = sorted(stays, key=lambda stay: stay.ended)
    warm = ordered[2 * slots :]
    seconds = slots * (ordered[-1].ended - ordered[2 * slots - 1].ended)
    return (seconds - sum(stay.trained for stay in warm)) / len(warm)


def run(
    root: Path, trials: int, *, epochs: int = 2, options: Sequence[str] = (), program: str = "run_study.py"
) -> StudyCost:
    """Run the study in ``root``, with data prepared before; ``program``: a file, or a module of ``benchmarks``."""
    data, file, results = root / "data", root / "trivial.yaml", root / "results"
    size = ["--size", str(GRAPHS), "--seed", "0"]
    _started("run_study.py", "prepare", "cluster", *size, "--data", str(data)).wait()
    searched = (trials - CELLS) // CELLS
    file.write_text(STUDY.format(epochs=epochs, graphs=GRAPHS, trials=searched, slots=SLOTS))
    began = time.perf_counter()
    process = _started(program, "run", str(file), "--results", str(results), "--data", str(data), *options)
    cpu, peak = _watched(process)
    clock = time.perf_counter() - began
    if process.returncode != 0:
        raise SystemExit(f"the study ended with exit status {process.returncode}")
    stays = _stays(ResultsFolder(results))
    trained = sum(stay.trained for stay in stays) / len(stays)
    return StudyCost(
        trials=len(stays), clock=clock, cpu=cpu, peak_mib=peak, overhead=overhead(stays, SLOTS), trained=trained
    )


def table(cost: StudyCost) -> Table:
    """The numbers beside what is to be reached."""
    return Table(
        title=f"{cost.trials:,} trivial trials",
        note=f"Trials of {1000 * cost.trained:.0f} ms of training on {SLOTS} slots, with records and MLflow, from the "
        "command to the tables; TPE and halving in each of "
        f"{CELLS} cells. A trial's overhead is the time of its slot beyond its training, once workers are warm.",
        columns=("What", "Measured", "To be reached"),
        rows=(
            ("The whole study, s", f"{cost.clock:.0f}", f"under {TARGETS['clock']:.0f} for 1,000"),
            ("Overhead of a trial, s", f"{cost.overhead:.3f}", f"under {TARGETS['overhead']}"),
            ("CPU time of the driver, s", f"{cost.cpu:.0f}", ""),
            ("Peak memory of the driver, MiB", f"{cost.peak_mib:.0f}", f"under {TARGETS['peak']:.0f}"),
        ),
        labels=1,
    )


def _started(program: str, *arguments: str) -> subprocess.Popen[bytes]:
    named = ["-m", program] if program.startswith("benchmarks.") else [program]
    where = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, *named, *arguments], cwd=ROOT, env=where, stdout=subprocess.DEVNULL)


def _watched(process: subprocess.Popen[bytes]) -> tuple[float, float]:
    """CPU seconds and peak memory in MiB of the process alone, without those that it starts; it has ended then."""
    watched = psutil.Process(process.pid)
    cpu, peak = 0.0, 0.0
    while process.poll() is None:
        try:
            times = watched.cpu_times()
            cpu = times.user + times.system
            peak = max(peak, _peak_kib(process.pid) / 1024)
        except (psutil.NoSuchProcess, OSError, StopIteration):  # it has ended since
            break
        time.sleep(LOOK_EVERY_S)
    process.wait()
    return cpu, peak


def _peak_kib(number: int) -> float:
    lines = Path(f"/proc/{number}/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith("VmHWM:")).split()[1])


def _stays(folder: ResultsFolder) -> list[Stay]:
    rows = read_columns(folder.records, ("started_at", "ended_at", "seconds")).to_pylist()
    return [Stay(row["started_at"], row["ended_at"], row["seconds"]) for row in rows]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS, help="search and confirm trials together")
    parser.add_argument("--epochs", type=int, default=2, help="of a trial that is not pruned")
    parser.add_argument("--mlflow", help="tracking URI, where it is not to be a database in the results")
    parser.add_argument("--json", action="store_true", help="print the numbers alone")
    given = parser.parse_args()
    options = ["--mlflow", given.mlflow] if given.mlflow else []
    with tempfile.TemporaryDirectory() as scratch:
        cost = run(Path(scratch), given.trials, epochs=given.epochs, options=options)
    if given.json:
        sys.stdout.write(json.dumps(vars(cost)) + "\n")
    else:
        Console().print(table(cost).for_terminal())


if __name__ == "__main__":
    main()
