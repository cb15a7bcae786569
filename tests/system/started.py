"""Programs as a user starts them: in a process of their own, watched with deadlines, and gone at the end."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

from benchmarks.faults.scene import let_signals_through

ROOT = Path(__file__).parents[2]
DEADLINE_S = 120.0
"""How long anything may take on a busy machine; a quiet one needs a tenth of it."""

_LOOK_EVERY_S = 0.02
_PR_SET_CHILD_SUBREAPER = 36
Found = TypeVar("Found")


@dataclass(frozen=True)
class Ended:
    """A program that ended: how, what it wrote, how long it ran."""

    code: int
    out: str
    err: str
    seconds: float


class Started:
    """A program under way."""

    def __init__(self, arguments: list[str], environment: Mapping[str, str]) -> None:
        self._began = time.monotonic()
        let_signals_through()
        self.process = subprocess.Popen(
            arguments,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A group of its own, so that Ctrl-C can reach all of it as from a terminal, and nothing else.
            start_new_session=True,
        )

    def until(self, look: Callable[[], Found], what: str) -> Found:
        """What ``look`` finds, as soon as it is true; fails if the program ends before, or at the deadline."""
        while time.monotonic() - self._began < DEADLINE_S:
            if found := look():
                return found
            if self.process.poll() is not None:
                raise AssertionError(f"the program ended before {what}: {self.end()}")
            time.sleep(_LOOK_EVERY_S)
        raise AssertionError(f"{DEADLINE_S:.0f} s went by without {what}")

    def until_ended(self, look: Callable[[], object]) -> None:
        """Look again and again until the program ends."""
        while self.process.poll() is None:
            assert time.monotonic() - self._began < DEADLINE_S, f"it still ran after {DEADLINE_S:.0f} s"
            look()
            time.sleep(_LOOK_EVERY_S)

    def end(self) -> Ended:
        """Wait for the end."""
        try:
            out, err = self.process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"{error.cmd} still ran after {DEADLINE_S:.0f} s") from error
        return Ended(self.process.returncode, out, err, time.monotonic() - self._began)

    def ctrl_c(self) -> None:
        """What a terminal does: SIGINT to the program and to every process of its group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def descendants(self) -> list[psutil.Process]:
        """All processes that it started, and those that these started."""
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def names_of_descendants(self) -> set[str]:
        """What their programs are called."""
        names = set()
        for process in self.descendants():
            with suppress(psutil.NoSuchProcess):
                names.add(process.name())
        return names

    def kill_with_descendants(self) -> None:
        """SIGKILL to the program, then to whatever it leaves behind."""
        left = self.descendants()
        self.process.kill()
        kill(left)
        self.process.communicate()


def environment(**changes: str) -> dict[str, str]:
    """This process's environment without what would send a study elsewhere, and with ``changes``."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "MLFLOW_", "BIMP_"))}
    return {**ours, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "COLUMNS": "120", **changes}


def run_study(*arguments: str | Path, environment: Mapping[str, str]) -> Started:
    """Start ``python run_study.py ARGUMENTS``."""
    return Started([sys.executable, "run_study.py", *map(str, arguments)], environment)


def adopt_orphans() -> None:
    """Make processes whose parent died children of this one, so that none of ours is ever lost from sight."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_descendants_of_this_process(except_for: set[int]) -> None:
    """End whatever a test left running; ``except_for``: process numbers from before it."""
    kill([process for process in psutil.Process().children(recursive=True) if process.pid not in except_for])


def kill(processes: list[psutil.Process]) -> None:
    """SIGKILL to each, and wait until they are gone."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=30)
