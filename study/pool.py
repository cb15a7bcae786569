"""The slots of a cluster whose nodes come and go while a study runs."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from study.cluster import Slots
from study.node_check import name_of
from study.spec import ResourcesSpec

logger = logging.getLogger(__name__)

NO_NODE = "no node is left on which trials fit"


class Pool:
    """How many trials fit at this moment; says once which nodes were lost, and which have joined.

    Args:
        slots: of the nodes that are there at first.
        resources: what a trial asks for.
    """

    def __init__(self, slots: Slots, resources: ResourcesSpec) -> None:
        self.slots = slots
        self._resources = resources

    @property
    def waits(self) -> str | None:
        """Why no trial can begin until a node joins; None where one can."""
        return NO_NODE if self.slots.total < 1 else None

    def hear(self, nodes: Sequence[dict[str, Any]], avoided: Collection[str] = ()) -> None:
        """Take up the nodes that there are now, as ``ray.nodes()`` lists them.

        Args:
            nodes: dead ones among them.
            avoided: ids of nodes that are not fit: nothing is said of them.
        """
        before, now = self.slots, Slots.of([n for n in nodes if n["NodeID"] not in avoided], self._resources)
        # What a trial asks for that is to be alone is not known without a node: it stays as it was.
        self.slots = now if now.total else replace(before, total=0, nodes=frozenset(), sizes=frozenset())
        names = {node["NodeID"]: name_of(node) for node in nodes}
        lost = [names.get(each, each[:8]) for each in sorted(before.nodes - self.slots.nodes - set(avoided))]
        joined = [names[each] for each in sorted(self.slots.nodes - before.nodes)]
        if lost:
            self._say("node_lost", f"{_nodes(lost)} lost: {_slots(self.slots)} left")
        if joined:
            self._say("node_joined", f"{_nodes(joined)} here now: {_slots(self.slots)}")
        if before.total and not self.slots.total:
            self._say("waits", f"{NO_NODE}: the study waits for one to join, and goes on then; Ctrl-C ends it")

    def _say(self, event: str, line: str) -> None:
        logger.warning("%s", line, extra={"event": event})


def _nodes(names: Sequence[str]) -> str:
    return f"node {names[0]} is" if len(names) == 1 else f"{len(names)} nodes ({', '.join(names)}) are"


def _slots(slots: Slots) -> str:
    return f"{slots.total} {'slot' if slots.total == 1 else 'slots'}"
