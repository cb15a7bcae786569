"""``cluster/slurm.sh`` with real Ray processes: two nodes in a network of their own, Slurm's commands stood in for.

``srun`` here runs its command on this machine, ``scontrol`` tells two names and writes down what is requeued.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import TINY, Studies
from finished import mirrored_trials, records
from started import ROOT, Started, environment

pytestmark = [pytest.mark.system, pytest.mark.slow]

JOB = "4242"
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
exec "$@"
"""
SCONTROL = """#!/bin/bash
case "$1 $2" in
    "show hostnames") printf 'node1\\nnode2\\n' ;;
    "show job") echo "   JobState=RUNNING Reason=None Dependency=(null)" ;;
    requeue*) echo "$2" >>"$REQUEUED" ;;
esac
"""
# Nothing but loopback, which also has this machine's own address: what Ray opens is seen by nobody.
ALONE = """
ip link set lo up
ip address add "$(hostname --ip-address | cut -d' ' -f1)/32" dev lo 2>/dev/null || true
exec bash cluster/slurm.sh
"""


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    folder = tmp_path / "commands"
    folder.mkdir()
    for name, text in {"srun": SRUN, "scontrol": SCONTROL}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def alone() -> list[str]:
    """A command that gives what follows a network of its own."""
    command = ["unshare", "--map-root-user", "--net"]
    try:
        tried = subprocess.run([*command, "ip", "link", "set", "lo", "up"], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    if tried.returncode:
        pytest.skip(f"no network of its own: {tried.stderr.strip()}")
    return command


@pytest.fixture
def submitted(tmp_path: Path) -> Iterator[Path]:
    """The folder in which ``sbatch`` was called: the project, and an environment with the libraries."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("bimp", "study", "reports", "cluster", "run_study.py"):
        (folder / name).symlink_to(ROOT / name)
    yield folder
    shutil.rmtree(f"/tmp/ray-{JOB}", ignore_errors=True)


def test_a_job_that_is_told_to_end_is_requeued_and_ends_the_study(
    alone: list[str], commands: Path, submitted: Path, studies: Studies, tmp_path: Path
) -> None:
    results, requeued = tmp_path / "results", tmp_path / "requeued"
    where = environment(
        PATH=f"{commands}{os.pathsep}{os.environ['PATH']}",
        USER="ann",
        STUDY=str(TINY),
        RESULTS=str(results),
        DATA=str(studies.data),
        SCRATCH=str(tmp_path / "scratch"),
        VENV=str(Path(sys.prefix)),
        REQUEUED=str(requeued),
        SLURM_JOB_ID=JOB,
        SLURM_JOB_NODELIST="node[1-2]",
        SLURM_CPUS_PER_TASK="1",
        SLURM_SUBMIT_DIR=str(submitted),
    )

    def start() -> Started:
        return Started([*alone, "bash", "-c", ALONE], where)

    first = start()
    first.until(lambda: any((results / "live").glob("**/checkpoint.pt")), "a checkpoint")
    token = submitted / f".ray-token-{JOB}"
    assert token.stat().st_mode & 0o777 == 0o600
    os.kill(first.process.pid, signal.SIGTERM)
    stopped = first.end()
    assert stopped.code == 130, stopped
    assert "stopped; nothing that ended is lost" in stopped.err
    assert requeued.read_text() == f"{JOB}\n"
    assert not token.exists()

    again = start().end()
    assert again.code == 0, again
    assert "2 side by side" in again.out, "both nodes joined"
    found = records(results)
    assert len(found) == 10
    assert {record.status for record in found.values()} <= {"finished", "pruned"}
    assert mirrored_trials(results) == dict.fromkeys(found, 1)
    assert requeued.read_text() == f"{JOB}\n", "a study that has ended is not requeued"
