"""Faults of Ray itself: its processes on this machine, and the head of a cluster."""

from __future__ import annotations

import time

import psutil

from benchmarks.faults.nodes import cluster
from benchmarks.faults.scene import Running, Stage, in_words, live_record, records, same_numbers, study_text
from benchmarks.faults.seen import Seen, same_in_words, told, undisturbed, yes

RAY_ENDS_IT_S = 60.0
"""Ray's own limit for a head that is silent."""


def lost_raylet(stage: Stage) -> Seen:
    """SIGKILL to the raylet of a local run."""
    return _lost_process(stage, "raylet")


def lost_local_head(stage: Stage) -> Seen:
    """SIGKILL to the global control store of a local run."""
    return _lost_process(stage, "gcs_server")


def lost_head(stage: Stage) -> Seen:
    """SIGKILL to the global control store of a cluster that the run has joined; then the same command on another."""
    results = stage.folder / "lost_head"
    with cluster(stage.folder / "ray") as nodes:
        nodes.join(cpus=1)
        running = stage.run(study_text(), results, "--address", nodes.address)
        before = running.until(lambda: live_record(results), "an epoch")
        nodes.lose_head()
        began = time.monotonic()
        code = running.end()
        seconds = time.monotonic() - began
    with cluster(stage.folder / "ray") as nodes:
        nodes.join(cpus=1)
        again = stage.run(study_text(), results, "--address", nodes.address).end()
    after = next(record for record in records(results) if record.key == before.key)
    kept = after.epochs[: before.num_epochs] == before.epochs
    same = same_numbers(results, undisturbed(stage))
    line = running.err[-1]
    return Seen(
        "SIGKILL to the gcs_server of a cluster in mid-trial; then the same command with the address of another one",
        (
            *told(running),
            f"exit code {code} after {seconds:.0f} s; then {again}; {in_words(results)}; epochs kept: {yes(kept)}; "
            f"{same_in_words(same)}",
        ),
        (code, again) == (75, 0) and kept and same and "its head has not answered" in line and seconds < RAY_ENDS_IT_S,
    )


def _lost_process(stage: Stage, name: str) -> Seen:
    results = stage.folder / f"lost_{name}"
    running = stage.run(study_text(), results)
    before = running.until(lambda: live_record(results, epochs=2), "two epochs")
    earlier = running.processes()[1:]
    _named(running, name).kill()
    line = running.until_told("the local Ray is gone")
    code = running.end()
    after = next(record for record in records(results) if record.key == before.key)
    kept = after.epochs[: before.num_epochs] == before.epochs
    same = same_numbers(results, undisturbed(stage))
    left = [process for process in earlier if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
    return Seen(
        f"SIGKILL to the {name} that the run started, after epoch {before.num_epochs} of a trial",
        (
            *told(running),
            f"exit code {code}; {in_words(results)}; epochs kept: {yes(kept)}; {same_in_words(same)}; "
            f"{len(left)} processes of the lost Ray left",
        ),
        code == 0 and kept and same and not left and len(running.err) == 1 and name in line,
    )


def _named(running: Running, name: str) -> psutil.Process:
    return running.until(
        lambda: next((each for each in running.processes() if each.name() == name), None), f"a process {name}"
    )


RAY_SCENARIOS = (lost_raylet, lost_local_head, lost_head)
