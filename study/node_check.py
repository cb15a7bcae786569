"""Whether a node of a cluster is fit for a study: libraries of the driver's versions, and a GPU that torch can use.

The driver asks every node before the first trial. A worker looks again before each of its trials, since a node may join
later, or lose its GPU.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from study.provenance import library_versions

CHECKED = ("python", "numpy", "torch", "torch-geometric", "ray", "pyarrow")
"""Whose versions must be the driver's, named as in :func:`study.provenance.library_versions`: they change numbers, or
what is sent between driver and workers. Of Python the minor version counts."""

ANSWER_WITHIN_S = 300.0
"""How long nodes may take to start a process that loads torch, and to say what they have."""

ASKED_AGAIN = 2
"""How often a node is asked once more whose process died before it answered."""

ALLOW_DIFFERENCES = "--allow-version-differences"


class NodeError(RuntimeError):
    """A node on which trials would not be what they are elsewhere; names it, what differs, and how to mend it."""


@dataclass(frozen=True, kw_only=True)
class NodeNeeds:
    """What a study needs of each node on which it trains.

    Attributes:
        versions: of the driver's libraries; empty: any will do.
        cuda: whether trials are to be trained on a GPU.
    """

    versions: Mapping[str, str]
    cuda: bool

    def unmet(self, found: NodeFound) -> str | None:
        """What a node lacks, and how to mend it; None where it is fit."""
        differing = differences(self.versions, found.versions)
        if differing:
            return f"{'; '.join(differing)}; install the driver's versions there, or go on with {ALLOW_DIFFERENCES}"
        if self.cuda and not found.cuda:
            return (
                "trials ask for a GPU, and its torch finds none; install its driver and a torch for CUDA, or train on "
                "CPUs with resources.gpus_per_trial: 0 or with --on-cpu"
            )
        return None


@dataclass(frozen=True, kw_only=True)
class NodeFound:
    """What a node has: versions by name, and whether its torch finds a GPU."""

    versions: Mapping[str, str]
    cuda: bool


def differences(driver: Mapping[str, str], node: Mapping[str, str]) -> list[str]:
    """Libraries of :data:`CHECKED` in which a node differs from the driver, each with both versions.

    What the driver has not is not compared.
    """
    return [
        f"{name} {node.get(name, 'missing')}, the driver has {driver[name]}"
        for name in CHECKED
        if name in driver and _counted(name, node.get(name, "")) != _counted(name, driver[name])
    ]


def look_here() -> NodeFound:
    """What this machine has, for this process."""
    return NodeFound(versions=library_versions(), cuda=torch.cuda.is_available())


def look_at_node() -> NodeFound:
    """What this machine has, asked by a task that was given no GPU."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":  # so Ray hides GPUs from such a task
        del os.environ["CUDA_VISIBLE_DEVICES"]
    return look_here()


def look_at_nodes(address: str | None, ids: frozenset[str]) -> dict[str, NodeFound]:
    """What the nodes of these ids have, by their names; of a local Ray, what this machine has.

    Raises:
        NodeError: a node cannot load the project or does not answer.
    """
    if address is None:
        return {"of this machine": look_here()}
    import ray  # after prepare_environment

    return ask_nodes([node for node in ray.nodes() if node["NodeID"] in ids])


def ask_nodes(nodes: Sequence[Mapping[str, Any]]) -> dict[str, NodeFound]:
    """What each of ``nodes`` (entries of ``ray.nodes()``) has, by its name; one that dies meanwhile is left out.

    Raises:
        NodeError: a node cannot load the project or does not answer.
    """
    import ray  # after prepare_environment
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    # A process of its own, which ends: no trial is to run in one that has looked at all GPUs. Where it dies before it
    # has answered, as on a machine whose memory is short for a moment, another is asked.
    ask = ray.remote(num_cpus=0, max_retries=ASKED_AGAIN, max_calls=1)(look_at_node)
    asked = {
        name_of(node): ask.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote()
        for node in nodes
    }
    ray.wait(list(asked.values()), num_returns=len(asked), timeout=ANSWER_WITHIN_S)
    found = {}
    for name, answer in asked.items():
        try:
            found[name] = ray.get(answer, timeout=0)
        except ray.exceptions.GetTimeoutError:
            raise NodeError(f"node {name}: no answer within {ANSWER_WITHIN_S:g} s; see Ray's logs there") from None
        except (ray.exceptions.NodeDiedError, ray.exceptions.TaskUnschedulableError):
            continue
        except ray.exceptions.RayError as error:
            cause = str(error).strip().splitlines()[-1]
            raise NodeError(f"node {name}: the project cannot be loaded there ({cause})") from error
    return found


def name_of(node: Mapping[str, Any]) -> str:
    """How messages call a node: its address, and the first digits of its id, since several may share the address."""
    return f"{node['NodeManagerAddress']} ({node['NodeID'][:8]})"


def require_fit(needs: NodeNeeds, found: Mapping[str, NodeFound]) -> None:
    """Check what the nodes have.

    Raises:
        NodeError: one is not fit; it names the first, and how many more there are.
    """
    unfit = {name: unmet for name, node in found.items() if (unmet := needs.unmet(node)) is not None}
    if unfit:
        name, unmet = next(iter(unfit.items()))
        others = len(unfit) - 1
        more = f" ({others} more {'node is' if others == 1 else 'nodes are'} unfit)" if others else ""
        raise NodeError(f"node {name}{more}: {unmet}")


def told_differences(versions: Mapping[str, str], found: Mapping[str, NodeFound]) -> list[str]:
    """A line for each difference that is allowed, with how many nodes have it."""
    lines: dict[str, int] = {}
    for node in found.values():
        for line in differences(versions, node.versions):
            lines[line] = lines.get(line, 0) + 1
    return [
        f"{count} {'node has' if count == 1 else 'nodes have'} {line}; allowed, and in the records"
        for line, count in lines.items()
    ]


def _counted(name: str, version: str) -> str:
    """The part of a version that must be equal."""
    if name == "python":
        return ".".join(version.split(".")[:2])
    return version.partition("+")[0]  # torch built for CPUs, or for another CUDA, is the same version
