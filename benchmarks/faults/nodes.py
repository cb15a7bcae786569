"""A cluster of several nodes on this machine's loopback, one of which can be made to vanish."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from study.cluster import prepare_environment


@contextmanager
def cluster(folder: Path, cpus: tuple[int, ...]) -> Iterator[tuple[str, list[Any]]]:
    """Nodes of so many CPUs each, beside a head of none: the address, and what :func:`vanish` takes."""
    prepare_environment()
    os.environ["RAY_TMPDIR"] = str(folder)
    from ray.cluster_utils import Cluster  # after prepare_environment

    together = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        yield together.address, [(together, together.add_node(num_cpus=count)) for count in cpus]
    finally:
        together.shutdown()


def vanish(node: Any) -> None:
    """Kill all processes of a node."""
    together, own = node
    together.remove_node(own, allow_graceful=False)
