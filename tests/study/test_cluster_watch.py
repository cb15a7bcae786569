"""A Ray that is gone is found out, and a program that hangs in it ends all the same."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import psutil

from study.cluster_watch import ANSWERS_WITHIN_S, LEAVES_WITHIN_S, ClusterWatch, JoinedCluster

ROOT = Path(__file__).parents[2]
RAY_ENDS_IT_AFTER_S = 60.0
"""Ray's own limit, after which its driver ends without a word of ours (``gcs_rpc_server_reconnect_timeout_s``)."""


class Head:
    """A cluster's head, its clock, and what it answers."""

    def __init__(self, own_alive: bool = True) -> None:
        self.now = 100.0
        self.answers = True
        self.own_alive = own_alive
        self.joined = JoinedCluster("head:6379", self.nodes, "a1b2c3d4e5f6", lambda: self.now)

    def nodes(self) -> list[dict[str, Any]]:
        if not self.answers:
            raise RuntimeError("Timed out while waiting for GCS to become available.")
        return [{"NodeID": "a1b2c3d4e5f6", "Alive": self.own_alive}, {"NodeID": "other", "Alive": False}]

    def gone_at(self, seconds: float) -> str | None:
        self.now = 100.0 + seconds
        self.joined.ask()
        return self.joined.gone()


def test_a_head_that_answers_is_there_however_long_it_was_asked_before() -> None:
    head = Head()
    assert head.gone_at(0.0) is None
    assert head.gone_at(10_000.0) is None


def test_a_head_that_is_silent_is_gone_once_its_time_is_over() -> None:
    head = Head()
    assert head.gone_at(5.0) is None
    head.answers = False
    assert head.gone_at(5.0 + ANSWERS_WITHIN_S) is None
    gone = head.gone_at(6.0 + ANSWERS_WITHIN_S)
    assert gone == "the Ray cluster at head:6379 is gone (its head has not answered for 31 s)"


def test_a_head_that_comes_back_in_time_is_there() -> None:
    head = Head()
    head.answers = False
    assert head.gone_at(ANSWERS_WITHIN_S - 1) is None
    head.answers = True
    assert head.gone_at(ANSWERS_WITHIN_S + 1) is None


def test_without_the_node_of_the_driver_no_trial_can_be_started() -> None:
    gone = Head(own_alive=False).gone_at(1.0)
    assert gone == "the Ray cluster at head:6379 has lost the node of this program (a1b2c3d4)"


def test_a_silent_head_is_left_before_ray_ends_the_process() -> None:
    assert ANSWERS_WITHIN_S + LEAVES_WITHIN_S < RAY_ENDS_IT_AFTER_S - 10


class Processes:
    """A Ray that is gone as soon as that is said."""

    def __init__(self) -> None:
        self.why: str | None = None
        self.looked = threading.Event()
        self.stopped = False

    def start(self) -> None:
        pass

    def gone(self) -> str | None:
        self.looked.set()
        return self.why

    def stop(self) -> None:
        self.stopped = True


def test_who_leaves_in_time_is_not_ended() -> None:
    processes, left = Processes(), list[str]()
    with ClusterWatch(processes, left.append, patience_s=60.0) as watch:
        assert processes.looked.wait(10.0)
        assert watch.lost is None
        processes.why = "gone"
        while watch.lost is None:
            processes.looked.clear()
            assert processes.looked.wait(10.0) or watch.lost
    assert watch.lost == "gone"
    assert left == []
    assert processes.stopped


def test_who_hangs_is_ended_with_the_cause() -> None:
    processes, ended = Processes(), threading.Event()
    told: list[str] = []

    def leave(why: str) -> None:
        told.append(why)
        ended.set()

    processes.why = "gone"
    with ClusterWatch(processes, leave, patience_s=0.0):
        assert ended.wait(10.0)
    assert told == ["gone"]


def test_a_program_that_hangs_says_why_and_does_what_is_done_at_an_end(tmp_path: Path) -> None:
    program = f"""
        import subprocess, threading, time
        from pathlib import Path
        from study.cluster_watch import leave_at_once
        from study.interruption import Interruption
        child = subprocess.Popen(["sleep", "600"])
        print(child.pid, flush=True)
        root = Path({str(tmp_path)!r})
        interruption = Interruption()
        interruption.last_acts.append((root / "given back").touch)
        threading.Thread(target=leave_at_once, args=(root, interruption, "Ray is gone")).start()
        child.wait()
        time.sleep(600)
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 75
    assert ended.stderr == f"Ray is gone; nothing that ended is lost; the same command goes on in {tmp_path}\n"
    assert not psutil.pid_exists(int(ended.stdout))
    assert (tmp_path / "given back").exists()
