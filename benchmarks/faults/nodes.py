"""A cluster of several nodes on this machine's loopback, one of which can be made to vanish."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from study.cluster import prepare_environment


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
        """Kill all processes of the node: SIGKILL, as when its power is cut."""
        self.together.remove_node(self.own, allow_graceful=False)


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
