"""Whether the Ray that a study runs on is still there, looked at while trials run.

Ray's own driver waits for ever where the raylet of its machine is gone, and ends the process, a minute after the head
is gone, with a line of its own. Here both are found out sooner, and the study decides.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Protocol

from study.exit_codes import CLUSTER_LOST
from study.faults import goes_on_in
from study.interruption import Interruption
from study.ray_session import RaySession
from study.signals import end_here

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 0.2
"""Often, since a call that begins before the loss is seen never comes back, and costs the run its own way out."""

ASK_EVERY_S = 2.0

ANSWERS_WITHIN_S = 30.0
"""How long the head of a cluster may be silent: one that keeps its state elsewhere may come back meanwhile."""

LEAVES_WITHIN_S = 15.0
"""How long the program may take to let go of a Ray that is gone, since a call to a head that is gone never comes back.
Together with the time above it is less than the minute after which Ray ends the process."""

_LOG_WRITTEN_WITHIN_S = 1.0


class ClusterLostError(RuntimeError):
    """The Ray that the study ran on is gone; what had ended is on record, the rest goes on with another one."""


class Watched(Protocol):
    """A Ray that is looked at.

    ``nodes``: the newest list of its nodes, another one each time they were asked for; None while it is not known.
    """

    @property
    def nodes(self) -> list[dict[str, Any]] | None: ...

    def start(self) -> None:
        """Called before it is looked at."""
        ...

    def gone(self) -> str | None:
        """Why no trial can run on it any more, whatever joins or comes back; None: it is there."""
        ...

    def stop(self) -> None:
        """Called when nobody looks any more."""
        ...


class LocalRay:
    """The Ray that this program started: there for as long as its processes are."""

    nodes = None
    """It has the one node, which lives and dies with it."""

    def __init__(self, session: RaySession) -> None:
        self._session = session

    def start(self) -> None:
        """Nothing is to be done."""

    def stop(self) -> None:
        """Nor here."""

    def gone(self) -> str | None:
        """Which process of it has ended."""
        missing = self._session.missing
        return None if missing is None else f"the local Ray is gone (its {missing} has ended)"


class JoinedCluster:
    """A cluster that this program joined; asks it for its nodes, from a thread of its own.

    Args:
        address: of the cluster, for messages.
        ask: gives the nodes, as ``ray.nodes()`` lists them; may never come back.
        own_node: id of the node through which this program reaches the cluster.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        address: str,
        ask: Callable[[], list[dict[str, Any]]],
        own_node: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.nodes: list[dict[str, Any]] | None = None
        self._address = address
        self._ask = ask
        self._own_node = own_node
        self._clock = clock
        self._answered = clock()
        # Not joined at the end, since a call to a head that is gone does not come back.
        self._thread = threading.Thread(target=self._ask_on, name="nodes", daemon=True)
        self._ended = threading.Event()

    def start(self) -> None:
        """Begin to ask."""
        self._answered = self._clock()
        self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._ended.set()

    def ask(self) -> None:
        """Ask once; an answer that is no list of nodes counts as silence."""
        try:
            self.nodes = self._ask()
        except Exception as error:  # noqa: BLE001 - whatever Ray says where its head is gone
            logger.info("the cluster's nodes could not be listed (%s)", error, extra={"event": "nodes_unknown"})
        else:
            self._answered = self._clock()

    def gone(self) -> str | None:
        """Whether the head is silent, or the node is lost that connects this program with it."""
        silent = self._clock() - self._answered
        if silent > ANSWERS_WITHIN_S:
            return f"the Ray cluster at {self._address} is gone (its head has not answered for {silent:.0f} s)"
        own = [node for node in self.nodes or () if node["NodeID"] == self._own_node]
        if own and not own[0]["Alive"]:
            return f"the Ray cluster at {self._address} has lost the node of this program ({self._own_node[:8]})"
        return None

    def _ask_on(self) -> None:
        while not self._ended.wait(ASK_EVERY_S):
            self.ask()


def watched_cluster(address: str | None, session: RaySession) -> LocalRay | JoinedCluster:
    """What there is to look at of the Ray that this program has started in ``session``, or joined at ``address``."""
    if address is None:
        return LocalRay(session)
    import ray  # after prepare_environment

    return JoinedCluster(address, ray.nodes, ray.get_runtime_context().get_node_id())


class ClusterWatch:
    """Looks at a Ray again and again while its block runs.

    Args:
        watched: the Ray.
        leave: called, from a thread of the watch's own, with why the Ray is gone, where the block does not end within
            ``patience_s`` after that: it hangs in a call to it.
        patience_s: see there.
    """

    def __init__(self, watched: Watched, leave: Callable[[str], object], patience_s: float = LEAVES_WITHIN_S) -> None:
        self.lost: str | None = None
        self._watched = watched
        self._leave = leave
        self._patience_s = patience_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cluster watch", daemon=True)

    @property
    def nodes(self) -> list[dict[str, Any]] | None:
        """See :class:`Watched`."""
        return self._watched.nodes

    def __enter__(self) -> ClusterWatch:
        self._watched.start()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._watched.stop()

    def _run(self) -> None:
        while self.lost is None:
            if self._ended.wait(LOOK_EVERY_S):
                return
            self.lost = self._watched.gone()
        if not self._ended.wait(self._patience_s):
            self._leave(self.lost)


def leave_at_once(root: Path, interruption: Interruption, why: str) -> NoReturn:
    """End this program, which hangs in a Ray that is gone, with a last line and what else is done at an end.

    Args:
        root: of the results.
        interruption: knows the last acts.
        why: Ray is gone.
    """
    logger.error("%s; %s", why, goes_on_in(root), extra={"event": "run_broke"})
    time.sleep(_LOG_WRITTEN_WITHIN_S)  # by a thread of its own
    end_here(interruption.last_acts, CLUSTER_LOST)
