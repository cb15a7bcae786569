"""A cluster of several nodes on this machine's loopback, one of which can be made to vanish."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from study.cluster import prepare_environment

JOINS_WITHIN_S = 120.0

JOIN = """
import signal, sys
from ray._private.node import Node
from ray._private.parameter import RayParams
Node(
    RayParams(
        gcs_address=sys.argv[1], num_cpus=1, num_gpus=0, object_store_memory=150 * 2**20, include_log_monitor=False,
        node_manager_port=0, min_worker_port=0, max_worker_port=0, dashboard_agent_listen_port=None,
    ),
    head=False,
)
signal.pause()
"""
"""What ``ray start --address`` does, which refuses to join a cluster on loopback; as Ray's own test clusters do it."""


@dataclass(frozen=True)
class LoopbackNode:
    """One node of a :class:`LoopbackCluster`."""

    together: Any
    own: Any

    @property
    def id(self) -> str:
        """As Ray names it."""
        return str(self.own.node_id)

    def vanish(self) -> None:
        """SIGKILL to all processes of the node and their children, as when its power is cut."""
        pids = [started.process.pid for group in self.own.all_processes.values() for started in group]
        processes = [
            each for pid in pids for each in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True))
        ]
        for each in processes:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        self.together.remove_node(self.own, allow_graceful=False)

    def trains_since(self) -> float:
        """When its first process that trains began, in Unix seconds; infinity where there is none."""
        began = float("inf")
        for each in self._processes():
            with suppress(psutil.NoSuchProcess):
                if "ImplicitFunc" in " ".join(each.cmdline()):
                    began = min(began, each.create_time())
        return began

    def _processes(self) -> list[psutil.Process]:
        started = [psutil.Process(own.process.pid) for group in self.own.all_processes.values() for own in group]
        return [process for own in started for process in (own, *own.children(recursive=True))]


@dataclass(frozen=True)
class LoopbackCluster:
    """Nodes beside a head that trains nothing; :func:`cluster` makes one."""

    together: Any

    @property
    def address(self) -> str:
        """What ``--address`` takes."""
        return str(self.together.address)

    def join(self, cpus: int, gpus: int = 0, environment: Mapping[str, str] | None = None) -> LoopbackNode:
        """One more node.

        Args:
            cpus: how many it has.
            gpus: how many it says that it has.
            environment: of its processes, beside this one's.
        """
        with _environment(environment or {}):
            return LoopbackNode(self.together, self.together.add_node(num_cpus=cpus, num_gpus=gpus))

    def lose_head(self) -> None:
        """SIGKILL to the head's global control store."""
        self.together.head_node.kill_gcs_server(check_alive=False)

    @contextmanager
    def blind_node(self, hidden: Sequence[Path], environment: Mapping[str, str], log: Path) -> Iterator[None]:
        """A node of one CPU that does not see the folders ``hidden``, as a machine of its own would not.

        Args:
            hidden: folders that are empty to all processes of the node.
            environment: of its processes, beside this one's.
            log: a file for what it writes.

        Raises:
            PermissionError: this user may not hide a folder.
        """
        # A name space of mounts for each process tree is how containers hide folders.
        mounts = [f"mount -t tmpfs none {shlex.quote(str(folder))}" for folder in hidden]
        start = f"exec {shlex.quote(sys.executable)} -c {shlex.quote(JOIN)} {self.address}"
        before = self._alive()
        with log.open("w") as file:
            process = subprocess.Popen(
                ["unshare", "--mount", "sh", "-ec", "\n".join([*mounts, start])],
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._wait_for_another(before, process, log)
            yield
        finally:
            _kill(process)

    def _alive(self) -> set[str]:
        return set(self.together.global_state._live_node_ids())

    def _wait_for_another(self, before: set[str], process: subprocess.Popen[bytes], log: Path) -> None:
        began = time.monotonic()
        while not self._alive() - before:
            if process.poll() is not None:
                raise PermissionError(f"a node that sees less: {log.read_text().strip()}")
            if time.monotonic() - began > JOINS_WITHIN_S:
                raise SystemExit(f"no node joined within {JOINS_WITHIN_S:g} s: {log.read_text().strip()}")
            time.sleep(0.1)


@contextmanager
def cluster(folder: Path) -> Iterator[LoopbackCluster]:
    """A head on loopback, whose files and sockets lie in ``folder``: its path must be short."""
    with _environment({"RAY_TMPDIR": str(folder)}):
        prepare_environment()
        from ray.cluster_utils import Cluster  # after prepare_environment

        together = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        try:
            yield LoopbackCluster(together)
        finally:
            together.shutdown()


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Environment variables within the block; what was there before stands again behind it."""
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(psutil.NoSuchProcess):
        for each in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                each.kill()
    process.kill()
    process.wait()
