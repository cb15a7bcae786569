"""How ``cluster/slurm.sh`` ends, whenever it is told to: Slurm, Ray's nodes and the driver are stood in for."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from started import ROOT, Ended, Started, environment

pytestmark = pytest.mark.system

JOB = "4343"
COMMANDS = {
    "srun": """
while [[ $1 == --* ]]; do shift; done
if [[ $1 == hostname ]]; then
    touch "$SEEN/hostname"
    while [[ -e $SEEN/hostname-waits ]]; do sleep 0.05; done
    echo 127.0.0.1
else
    echo "$*" >>"$SEEN/steps"
    exec sleep 600
fi
""",
    "scontrol": """
case "$1 $2" in
    "show hostnames") printf 'node1\\nnode2\\n' ;;
    "show job") cat "$SEEN/job" ;;
    requeue*) echo "$2" >>"$SEEN/requeued" ;;
esac
""",
    # The driver, and who waits for nodes; all else is what it says.
    "python": """
case "$*" in
    "run_study.py run "*) exec bash "$SEEN/driver" ;;
    "-m study.joined_nodes "*)
        touch "$SEEN/joining"
        if [[ ! -e $SEEN/nodes-join ]]; then exec {python} "$@"; fi ;;
    *) exec {python} "$@" ;;
esac
""",
}
NEVER_ENDS = 'touch "$SEEN/driver-runs"\nexec sleep 600\n'
ENDS_IN_GOOD_ORDER = """
trap 'exit 130' TERM
touch "$SEEN/driver-runs"
while true; do sleep 0.05; done
"""


@dataclass
class Job:
    """A job of which Slurm says this state; ``seen`` is where its commands leave word."""

    seen: Path
    environment: dict[str, str]

    def start(self, *, driver: str = NEVER_ENDS, nodes_join: bool = True, state: str = "RUNNING") -> Started:
        (self.seen / "driver").write_text(driver)
        (self.seen / "job").write_text(f"JobId={JOB} JobName=bimp-study\n   JobState={state} Reason=None\n")
        if nodes_join:
            (self.seen / "nodes-join").touch()
        return Started(["bash", "cluster/slurm.sh"], self.environment)

    def told_at(self, started: Started, word: str) -> None:
        started.until(lambda: (self.seen / word).exists(), word)
        started.process.send_signal(signal.SIGTERM)

    @property
    def requeued(self) -> bool:
        return (self.seen / "requeued").exists()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    commands, seen, venv = tmp_path / "commands", tmp_path / "seen", tmp_path / "venv"
    for folder in (commands, seen, venv / "bin"):
        folder.mkdir(parents=True)
    for name, text in COMMANDS.items():
        (commands / name).write_text("#!/bin/bash\n" + text.replace("{python}", sys.executable))
        (commands / name).chmod(0o755)
    (venv / "bin" / "activate").write_text("")
    where = environment(
        PATH=f"{commands}{os.pathsep}{os.environ['PATH']}",
        USER="ann",
        STUDY="study.yaml",
        SEEN=str(seen),
        VENV=str(venv),
        SLURM_JOB_ID=JOB,
        SLURM_JOB_NODELIST="node[1-2]",
    )
    return Job(seen, where)


def assert_left_nothing(ended: Ended) -> None:
    assert not (ROOT / f".ray-token-{JOB}").exists(), ended


def test_a_port_for_rays_client_is_named_where_there_is_one(job: Job) -> None:
    """Ray refuses to start by that option where its client is not installed, as it is not by this project."""
    steps = job.seen / "steps"

    def head() -> str:
        lines = steps.read_text().splitlines() if steps.exists() else []
        return next((line for line in lines if "--head" in line), "")

    started = job.start()
    begun = started.until(head, "a head")
    job.told_at(started, "driver-runs")
    started.end()
    port = 20_000 + int(JOB) * 2
    assert f"ray start --head --node-ip-address=127.0.0.1 --port={port} " in begun
    assert (f"--ray-client-server-port={port + 1}" in begun) == (find_spec("grpc") is not None)


def test_told_before_a_node_has_begun(job: Job) -> None:
    (job.seen / "hostname-waits").touch()
    started = job.start()
    job.told_at(started, "hostname")
    (job.seen / "hostname-waits").unlink()
    ended = started.end()
    assert (ended.code, job.requeued) == (130, True), ended
    assert not (job.seen / "joining").exists()
    assert_left_nothing(ended)


def test_told_while_it_waits_for_nodes(job: Job) -> None:
    started = job.start(nodes_join=False)
    job.told_at(started, "joining")
    ended = started.end()
    assert (ended.code, job.requeued) == (130, True), ended
    assert not (job.seen / "driver-runs").exists()
    assert_left_nothing(ended)


@pytest.mark.parametrize("driver", [ENDS_IN_GOOD_ORDER, NEVER_ENDS], ids=["which hears it", "which cannot hear it yet"])
def test_told_while_the_driver_runs(job: Job, driver: str) -> None:
    started = job.start(driver=driver)
    job.told_at(started, "driver-runs")
    ended = started.end()
    assert (ended.code, job.requeued) == (130, True), ended
    assert_left_nothing(ended)


def test_what_slurm_ends_by_itself_is_left_to_it_in_words(job: Job) -> None:
    started = job.start(driver=ENDS_IN_GOOD_ORDER, state="COMPLETING")
    job.told_at(started, "driver-runs")
    ended = started.end()
    assert (ended.code, job.requeued) == (130, False), ended
    assert ended.err.endswith(
        f"not requeued by this script: Slurm ends job {JOB} itself (COMPLETING); it requeues what it pre-empts\n"
    )


@pytest.mark.parametrize(("code", "again"), [(0, False), (1, False), (2, False), (75, True), (130, False)])
def test_a_driver_that_ends_by_itself_is_started_again_only_where_ray_was_lost(
    job: Job, code: int, again: bool
) -> None:
    ended = job.start(driver=f"exit {code}").end()
    assert (ended.code, job.requeued) == (code, again), ended
    assert_left_nothing(ended)
