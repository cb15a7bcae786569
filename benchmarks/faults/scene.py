"""A study in a process of its own, watched while something is done to it."""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

import psutil

from study.records import RecordError, TrialRecord, read_record, read_records
from study.results import ResultsFolder

ROOT = Path(__file__).parents[2]
DEADLINE_S = 400.0
LOOK_EVERY_S = 0.05

Found = TypeVar("Found")


SMALL = """
name: faults
seed: 1
arms: {{dataset: digits, backbone: {backbone}, {gated}, hidden_dim: 12, layers: 2}}
space: {{learning_rate: {{log_uniform: [1e-3, 1e-2]}}}}
fixed: {{max_epochs: {epochs}, batch_size: 256}}
search: {{sampler: random, trials: {trials}}}
confirm: {{seeds: [41]}}
resources: {{max_concurrent: {beside}}}
"""


def study_text(*, backbone: str = "gcn", epochs: int = 6, trials: int = 3, beside: int = 1, gated: bool = False) -> str:
    """A small study of one cell, without pruning, so that what it ends with follows from the text alone."""
    placement = "placement: boosting, num_clusters: 3, sigma_m: 1.0" if gated else "placement: none"
    return SMALL.format(backbone=backbone, gated=placement, epochs=epochs, trials=trials, beside=beside)


@dataclass
class Running:
    """A program under way, and the lines that it writes."""

    process: subprocess.Popen[str]
    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for stream, lines in ((self.process.stdout, self.out), (self.process.stderr, self.err)):
            threading.Thread(target=_collect, args=(stream, lines), daemon=True).start()

    def until(self, look: Callable[[], Found | None], what: str) -> Found:
        """What ``look`` finds, as soon as it is true."""
        began = time.monotonic()
        while time.monotonic() - began < DEADLINE_S:
            if found := look():
                return found
            if self.process.poll() is not None:
                raise SystemExit(f"the study ended before {what}:\n" + "".join(self.err))
            time.sleep(LOOK_EVERY_S)
        raise SystemExit(f"{DEADLINE_S:.0f} s went by without {what}")

    def until_told(self, words: str) -> str:
        """The line of its errors that holds ``words``."""
        return self.until(lambda: next((line.rstrip() for line in list(self.err) if words in line), ""), words)

    def end(self) -> int:
        """Its exit code, once it has one."""
        code = self.process.wait(timeout=DEADLINE_S)
        time.sleep(LOOK_EVERY_S)  # the last lines
        return code

    def press(self, number: signal.Signals = signal.SIGINT) -> None:
        """Ctrl-C, as a terminal sends it, or another signal: to the whole group of processes."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def processes(self) -> list[psutil.Process]:
        """The driver and all that it started."""
        driver = psutil.Process(self.process.pid)
        return [driver, *driver.children(recursive=True)]

    def worker(self) -> psutil.Process:
        """A process that trains."""
        return self.until(
            lambda: next((each for each in self.processes() if "ImplicitFunc" in " ".join(each.cmdline())), None),
            "a worker",
        )

    def kill(self) -> None:
        """End it and all that it started."""
        if self.process.poll() is None:
            for each in reversed(self.processes()):
                each.kill()


def let_signals_through() -> None:
    """Let what this process starts from now on hear the signals that it ignores itself."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # In the background of a shell, Ctrl-C is ignored, and by all that is started from there.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        # Under nohup likewise; this process goes on ignoring it, what it starts does not.
        signal.signal(signal.SIGHUP, lambda number, frame: None)


@dataclass
class Stage:
    """Where faults are caused: a folder for everything, short enough for Ray's sockets, and the prepared data."""

    folder: Path
    running: list[Running] = field(default_factory=list)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def run(
        self,
        text: str,
        results: Path,
        *options: str,
        environment: Mapping[str, str] | None = None,
        within: Sequence[str] = (),
        terminal: int | None = None,
    ) -> Running:
        """Start the study, or go on with it.

        ``within`` is the command that its own is given to, ``terminal`` what it has instead of pipes.
        """
        file = self.folder / f"{results.name}.yaml"
        file.write_text(text)
        ray = self.folder / "ray"
        ray.mkdir(exist_ok=True)
        where = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "MLFLOW_", "BIMP_"))},
            "OMP_NUM_THREADS": "1",
            "RAY_TMPDIR": str(ray),
            "PYTHONPATH": str(ROOT),
            **(environment or {}),
        }
        let_signals_through()
        arguments = ["run", str(file), "--results", str(results), "--data", str(self.data), *options]
        process = subprocess.Popen(
            [*within, sys.executable, str(ROOT / "run_study.py"), *arguments],
            cwd=self.folder,  # where the mirror of a study in an object store lies
            env=where,
            stdin=subprocess.DEVNULL if terminal is None else terminal,
            stdout=subprocess.PIPE if terminal is None else terminal,
            stderr=subprocess.PIPE if terminal is None else terminal,
            text=True,
            start_new_session=True,
            preexec_fn=None if terminal is None else partial(fcntl.ioctl, terminal, termios.TIOCSCTTY, 0),
        )
        self.running.append(Running(process))
        return self.running[-1]

    def status(self, results: Path) -> str:
        """What ``run_study.py status`` prints."""
        command = [sys.executable, "run_study.py", "status", str(results)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=DEADLINE_S).stdout


def live_record(results: Path, epochs: int = 1) -> TrialRecord | None:
    """The record of a trial under way that has a checkpoint and so many epochs."""
    for file in ResultsFolder(results).live_records().values():
        try:
            record = read_record(file.path)
        except RecordError:  # sealed since it was listed
            continue
        if file.path.with_name("checkpoint.pt").exists() and record.status == "running" and record.num_epochs >= epochs:
            return record
    return None


def records(results: Path) -> list[TrialRecord]:
    """The sealed records."""
    return list(read_records(results / "records"))


def in_words(results: Path) -> str:
    """How many trials ended how, and what the failed ones say."""
    counted: dict[str, int] = {}
    reasons = []
    for record in records(results):
        counted[record.status] = counted.get(record.status, 0) + 1
        if record.status == "failed":
            reasons.append(f"{record.reason}")
    told = ", ".join(f"{count} {status}" for status, count in sorted(counted.items())) or "no trial ended"
    return "; ".join([told, *sorted(set(reasons))])


def same_numbers(results: Path, undisturbed: Path) -> bool:
    """Whether both hold the same trials with the same losses, epoch by epoch, to the bit."""
    return _numbers(results) == _numbers(undisturbed)


def mirror_is_whole(results: Path) -> bool:
    """Whether MLflow's database is sound and has each sealed trial once, with every epoch's loss once."""
    with closing(sqlite3.connect(f"file:{results / 'mlflow.db'}?mode=ro", uri=True)) as database:
        sound = database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = database.execute(
            "SELECT tags.value, count(DISTINCT runs.run_uuid), count(metrics.step), count(DISTINCT metrics.step)"
            " FROM tags JOIN runs USING (run_uuid) JOIN metrics USING (run_uuid)"
            " WHERE tags.key = 'trial_key' AND metrics.key = 'val_loss' GROUP BY tags.value"
        ).fetchall()
    expected = {(record.key, 1, record.num_epochs, record.num_epochs) for record in records(results)}
    return sound and set(rows) == expected


def _numbers(results: Path) -> dict[str, tuple[object, ...]]:
    return {
        record.key: (
            record.status,
            record.test_metric,
            tuple((epoch.epoch, epoch.train_loss, epoch.val_loss) for epoch in record.epochs),
        )
        for record in records(results)
    }


def _collect(stream: IO[str] | None, lines: list[str]) -> None:
    if stream is not None:
        lines.extend(iter(stream.readline, ""))
