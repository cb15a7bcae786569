"""``ray job submit`` of a study to a cluster with Ray's dashboard, which ``pip install 'ray[default]'`` brings."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from conftest import TINY, Studies
from finished import mirrored_trials, records
from started import ROOT, Ended, Started, environment, kill

pytestmark = pytest.mark.system
pytest.importorskip("aiohttp_cors", reason="Ray's dashboard is not installed: pip install 'ray[default]'")

from ray.job_submission import JobSubmissionClient  # noqa: E402 - needs what was looked for

RAY = [sys.executable, "-m", "ray.scripts.scripts"]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


class Head:
    """``ray start --head --block`` on loopback, and ``ray job`` with its address."""

    def __init__(self, folder: Path) -> None:
        self.dashboard = f"http://127.0.0.1:{free_port()}"
        self.environment = environment(
            RAY_TMPDIR=str(folder),
            RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",  # on loopback alone
            RAY_AUTH_MODE="disabled",
            RAY_USAGE_STATS_ENABLED="0",
            RAY_JOB_STOP_WAIT_TIME_S="60",
            PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        )
        port = self.dashboard.rpartition(":")[2]
        ports = ["--port", str(free_port()), "--dashboard-host", "127.0.0.1", "--dashboard-port", port]
        self._started = Started(
            [*RAY, "start", "--head", "--block", "--num-cpus", "2", "--include-dashboard", "true", *ports],
            self.environment,
        )
        self._started.until(self._listens, "a dashboard")

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", int(self.dashboard.rpartition(":")[2]))):
            return True
        return False

    def job(self, *arguments: str) -> Started:
        return Started([*RAY, "job", arguments[0], "--address", self.dashboard, *arguments[1:]], self.environment)

    def stop(self) -> None:
        with suppress(psutil.NoSuchProcess):
            kill([*self._started.descendants(), psutil.Process(self._started.process.pid)])


@pytest.fixture
def head() -> Iterator[Head]:
    folder = Path(tempfile.mkdtemp(prefix="job-"))
    started = Head(folder)
    yield started
    started.stop()
    shutil.rmtree(folder, ignore_errors=True)


def test_a_submitted_study_ends_and_a_stopped_one_goes_on(head: Head, studies: Studies, tmp_path: Path) -> None:
    results = tmp_path / "results"
    command = f"{sys.executable} run_study.py run {TINY} --results {results} --data {studies.data} --address auto"
    submitted = ("submit", "--working-dir", str(ROOT), "--submission-id")

    def ended(name: str, *more: str) -> Ended:
        return head.job(*submitted, name, *more, "--", *command.split()).end()

    first = head.job(*submitted, "first", "--", *command.split())
    first.until(lambda: any((results / "live").glob("**/checkpoint.pt")), "a checkpoint")
    # As `ray job stop` does, which takes as long to load as this study to end.
    assert JobSubmissionClient(head.dashboard).stop_job("first")
    told = first.end()
    assert "stopped; nothing that ended is lost; the same command goes on" in told.out, told

    again = ended("again")
    assert again.code == 0, again
    assert "Job 'again' succeeded" in again.out + again.err
    found = records(results)
    assert len(found) == 10
    assert {record.status for record in found.values()} <= {"finished", "pruned"}
    assert mirrored_trials(results) == dict.fromkeys(found, 1), again.out
