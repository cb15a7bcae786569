"""What MLflow's mirror takes and costs: values a second, a report's cost, and trials beside servers in trouble.

``python -m benchmarks.mirror [PART ...]`` prints its tables; the parts are ``values``, ``report`` and ``trial``.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from rich.console import Console

from benchmarks.faults.scene import study_text
from benchmarks.faults.tracking_server import (
    TrackingServer,
    free_port,
    hanging_server,
    refusing_server,
    slow_server,
)
from benchmarks.made_study import make_study
from benchmarks.page import Table
from benchmarks.trivial_trials import ROOT, StudyCost, run
from study.records import TrialRecord, read_records
from study.tracking import MlflowMirror

MADE = {"long trials": (20, 100), "short trials": (200, 5)}
"""Trials and epochs of the studies that are mirrored afterwards."""

FEW_EPOCHS, MANY_EPOCHS, REPORTING_TRIALS = 5, 105, 20
SLOW_S = 1.0
TRIAL_EPOCHS = 100
NO_MIRROR = "no mirror"


def values(root: Path) -> Table:
    """How fast records get into a database and into a server."""
    rows = []
    with TrackingServer.running(root / "server") as server:
        for name, (trials, epochs) in MADE.items():
            results = make_study(root / name.replace(" ", "_"), trials, epochs).root
            places = {"SQLite": f"sqlite:///{results / 'mlflow.db'}", "MLflow's server over SQLite": server.address}
            for place, uri in places.items():
                mirror = MlflowMirror(uri, results)
                mirror.connect()
                cpu, clock = time.process_time(), time.perf_counter()
                mirror.sync_folder()
                cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
                count = _values_in(results / "mlflow.db")
                rows.append(
                    (
                        f"{trials} {name} of {epochs} epochs",
                        place,
                        f"{count:,}",
                        f"{count / clock:,.0f}",
                        f"{count / cpu:,.0f}",
                    )
                )
    return Table(
        title="Values into MLflow",
        note="Sealed records into an empty database by MLflow's ordinary client: runs, tags and parameters made, every "
        "value of every epoch sent, runs ended. The last column is of the mirror's own CPU time. To be reached: 1,000 "
        "a second into SQLite.",
        columns=("Records", "Into", "Values", "a second", "a second of CPU"),
        rows=tuple(rows),
        labels=2,
    )


def report(root: Path) -> Table:
    """CPU time of the driver for one epoch of a trial."""
    costs = {}
    for name, program in (("MLflow in SQLite", "run_study.py"), (NO_MIRROR, "benchmarks.without_mirror")):
        few, many = (
            _cost(root / f"{name}-{epochs}".replace(" ", "_"), epochs, program) for epochs in (FEW_EPOCHS, MANY_EPOCHS)
        )
        costs[name] = 1000 * (many[0].cpu - few[0].cpu) / (many[1] - few[1])
    on, off = costs["MLflow in SQLite"], costs[NO_MIRROR]
    return Table(
        title="What an epoch's report costs the driver",
        note="CPU time of all of the driver's threads for an epoch more of a trial: the difference between studies of "
        f"{REPORTING_TRIALS} trials with up to {FEW_EPOCHS} and up to {MANY_EPOCHS} epochs of milliseconds. The "
        "mirror's part is spent on its own thread, for which the study's loop does not wait. To be reached: under 5 ms "
        "in all.",
        columns=("What", "ms a report"),
        rows=(
            ("Ray Tune, scheduler, records and view", f"{off:.2f}"),
            ("... and MLflow's mirror into SQLite", f"{on:.2f}"),
            ("The mirror's part", f"{on - off:.2f}"),
        ),
        labels=1,
    )


@dataclass(frozen=True)
class Steps:
    """Of the epochs of a study's trials: seconds in which each trained, and seconds to the end of the next one."""

    trained: tuple[float, ...]
    between: tuple[float, ...]

    @property
    def beside(self) -> tuple[float, ...]:
        """Seconds of each epoch in which it did not train: its record, its checkpoint, its report."""
        return tuple(whole - trained for whole, trained in zip(self.between, self.trained, strict=True))


def trial(root: Path) -> Table:
    """How long a trial's epochs take beside a server that is well, slow, down, refuses or hangs."""
    _study("run_study.py", "prepare", "digits", "--data", str(root / "data"))
    found: dict[str, Steps] = {}
    with TrackingServer.running(root / "server") as server:
        for name, address in _situations(server):
            with address as uri:
                found[name] = _steps(root, root / f"s{len(found)}", uri, mirrored=name != NO_MIRROR)
    beside = {name: steps.beside for name, steps in found.items()}
    epoch = median(found[NO_MIRROR].between)
    without = median(beside[NO_MIRROR])
    return Table(
        title="Trials beside a server in trouble",
        note="Milliseconds between the ends of two epochs in which nothing was trained: record, checkpoint, report. "
        f"Medians and quartiles over three trials of {TRIAL_EPOCHS} epochs, one at a time; an epoch took "
        f"{1000 * epoch:.0f} ms (median), and the mirror looked every five seconds. The slow server takes {SLOW_S:g} s "
        "more for every request. The last column is the difference between medians as a part of an epoch of one "
        "second. To be reached: under 1%.",
        columns=("MLflow", "Median, ms", "Quartiles, ms", "Slower by"),
        rows=tuple(
            (
                name,
                f"{1000 * median(spread):.1f}",
                " to ".join(f"{1000 * value:.1f}" for value in (quantiles(spread)[0], quantiles(spread)[2])),
                "" if name == NO_MIRROR else f"{100 * (median(spread) - without):+.2f}%",
            )
            for name, spread in beside.items()
        ),
        labels=1,
    )


def _situations(server: TrackingServer) -> Iterator[tuple[str, AbstractContextManager[str | None]]]:
    yield NO_MIRROR, nullcontext(None)
    yield "SQLite in the results folder", nullcontext(None)
    yield "a server", nullcontext(server.address)
    yield "a slow server", slow_server(server, SLOW_S)
    yield "no server at the address", nullcontext(f"http://127.0.0.1:{free_port()}")
    yield "a server that answers 403", refusing_server()
    yield "a server that never answers", hanging_server()


def _steps(root: Path, results: Path, uri: str | None, *, mirrored: bool) -> Steps:
    file = root / f"{results.name}.yaml"
    text = study_text(trials=2, epochs=TRIAL_EPOCHS).replace("name: faults", f"name: {results.name}")
    file.write_text(text)
    program = "run_study.py" if mirrored else "benchmarks.without_mirror"
    options = ["--mlflow", uri] if uri else []
    _study(program, "run", str(file), "--results", str(results), "--data", str(root / "data"), *options)
    return _steps_of(list(read_records(results / "records")))


def _steps_of(records: list[TrialRecord]) -> Steps:
    pairs = [pair for record in records for pair in zip(record.epochs, record.epochs[1:], strict=False)]
    return Steps(
        trained=tuple(later.seconds for _, later in pairs),
        between=tuple(later.ended_at - earlier.ended_at for earlier, later in pairs),
    )


def _cost(root: Path, epochs: int, program: str) -> tuple[StudyCost, int]:
    """What the study cost, and how many epochs its trials had."""
    root.mkdir()
    cost = run(root, REPORTING_TRIALS, epochs=epochs, program=program)
    return cost, sum(record.num_epochs for record in read_records(root / "results" / "records"))


def _study(program: str, *arguments: str) -> None:
    command = [sys.executable, *(["-m", program] if program.startswith("benchmarks.") else [program]), *arguments]
    where = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, cwd=ROOT, env=where, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}: exit status {ended.returncode}: {ended.stderr[-500:]}")


def _values_in(database: Path) -> int:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return int(connection.execute("select count(*) from metrics").fetchone()[0])


PARTS = {"values": values, "report": report, "trial": trial}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)}; all where none is given")
    given = parser.parse_args()
    if unknown := [name for name in given.parts if name not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}")
    for name in given.parts or PARTS:
        with tempfile.TemporaryDirectory() as scratch:
            Console().print(PARTS[name](Path(scratch)).for_terminal())


if __name__ == "__main__":
    main()
