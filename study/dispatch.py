"""What becomes of a trial on the cluster: workers that vanish, memory that runs out, an end that is asked for.

Between the coordinator, which knows trials and no cluster, and ``study.tune_bridge``, which knows Tune and no reasons.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from study.assignment import TrialAssignment
from study.cluster import Slots
from study.coordinator import StudyCoordinator
from study.counted import counted
from study.handed_out import HandedOut
from study.interruption import Interruption
from study.log import log_trial, relay
from study.node_check import NodeError
from study.out_of_memory import OutOfMemory, failed_alone, said_beside_others
from study.store import StoreNews, StoreTrouble

logger = logging.getLogger(__name__)

LOST_WORKER_TRIES = 3
"""How often a trial is begun, from its checkpoint, whose worker or node vanishes; the last time it is alone on a node,
since the kernel takes workers, without a word, when memory runs out."""


class Dispatch:
    """Hands trials to the cluster and decides what follows when they end there, well or not.

    Args:
        coordinator: what runs next.
        slots: how much fits.
        news: hears of a store that refuses. None: nobody does.
        interruption: asks for the end.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        coordinator: StudyCoordinator,
        slots: Slots,
        news: StoreNews | None = None,
        interruption: Interruption | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.errors: list[Exception] = []
        self._coordinator = coordinator
        self._handed_out = HandedOut(slots, clock)
        self._news = news
        self._interruption = interruption or Interruption()
        self._nodes_at_first = slots.nodes
        self._left: set[str] = set()
        self._lost: Counter[str] = Counter()
        self._memory: dict[str, OutOfMemory] = {}
        self._failed: dict[str, str] = {}
        self._unfit: dict[str, tuple[str, str]] = {}
        self._came_apart: dict[str, str] = {}
        self._done: set[str] = set()
        self.avoided: tuple[str, ...] = ()

    def resize(self, slots: Slots) -> None:
        """Nodes were lost, or have joined: so much fits now, beside what runs."""
        self._handed_out.resize(slots)

    # ---- what it hands out

    @property
    def finished(self) -> bool:
        """Whether no trial will ever come again."""
        return self._interruption.requested or self._coordinator.done

    @property
    def stops_at_once(self) -> bool:
        """Whether to stop without waiting: after an error of the study's own, or once all have kept their epoch."""
        return bool(self.errors) or (self._interruption.requested and not self._handed_out.any_runs)

    @property
    def waits(self) -> str | None:
        """Which trials wait for what no node here can give; None: none does."""
        return self._handed_out.waits

    def next_trial(self) -> TrialAssignment | None:
        """The next trial to begin; None while all slots are taken, or all that is left must wait."""
        if self._interruption.requested or not self._handed_out.has_room():
            return None
        assignment = self._coordinator.next_trial()
        if assignment is not None:
            assignment = replace(assignment, avoided=self.avoided)
            self._handed_out.add(assignment)
        return assignment

    # ---- what it hears

    def started(self, key: str) -> None:
        """A worker has the trial."""
        for member in self._handed_out.start(key).members:
            self._coordinator.started(member.key)

    def note_waiting(self) -> None:
        """Log, once, each trial that has waited long for a worker."""
        self._handed_out.note_waiting()

    def reported(self, key: str, report: dict[str, Any]) -> bool:
        """Hear what a worker reports (:mod:`study.worker` lists the forms); False if it is to stop there."""
        told = self._handed_out[key]
        relay(report.get("log", ()), trial=key, cell=told.cell, phase=told.phase)
        if "store_trouble" in report:
            if self._news is not None:
                self._news.refused(key, StoreTrouble(report["store_trouble"]))
            return not self._leaves(key)
        if "out_of_memory" in report:
            self._memory[key] = OutOfMemory(report["out_of_memory"], report["cause"])
            return False
        if "unfit_node" in report:
            self._unfit[key] = (report["unfit_node"], report["cause"])
            return False
        if "failed" in report:
            self._failed[key] = report["failed"]
            return False
        if "came_apart" in report:
            self._came_apart[key] = report["came_apart"]
            return False
        if "epochs" in report:
            return self._reported_together(key, report)
        if "epoch" not in report:  # Tune's own, when a worker has ended
            return True
        if self._news is not None:
            self._news.written(key)
        keeps = self._coordinator.report(key, report["epoch"], report["val_metric"], ended=report["ended"])
        return keeps and (report["ended"] or not self._leaves(key))

    def _reported_together(self, key: str, report: dict[str, Any]) -> bool:
        """Hear of an epoch of trials that are trained together; who is done is sealed, while the others go on."""
        if self._news is not None:
            self._news.written(key)
        for member, told in report["epochs"].items():
            self._coordinator.report(member, told["epoch"], told["val_metric"], ended=told["ended"])
        for member in report["on_record"]:
            self._done.add(member)
            self._seal(member, None)
        all_ended = bool(report["epochs"]) and all(told["ended"] for told in report["epochs"].values())
        return all_ended or not self._leaves(key)

    def _leaves(self, key: str) -> bool:
        if self._interruption.requested:
            self._left.add(key)
        return key in self._left

    def lost_to_memory(self, key: str, cause: str) -> None:
        """The trial's worker was killed because its node ran out of memory; :meth:`ended` follows."""
        self._memory[key] = OutOfMemory("host", cause)

    def ended(self, key: str, *, lost: bool = False) -> None:
        """No worker runs the trial any more: seal it, or hand it out again.

        Args:
            key: of the trial.
            lost: its worker vanished; it was not the trial that ended.
        """
        assignment, excused = self._handed_out.end(key)
        if self._news is not None:
            self._news.gone(key)
        memory, failed, unfit = self._memory.pop(key, None), self._failed.pop(key, None), self._unfit.pop(key, None)
        if assignment.companions:
            causes = [self._came_apart.pop(key, None), memory.cause if memory else None, unfit[1] if unfit else None]
            lost_worker = "their worker was lost" if lost else None
            self._ended_together(assignment, next((cause for cause in causes if cause), lost_worker))
            if unfit is not None:
                self._avoid_node(*unfit)
            return
        if key in self._left or (self._interruption.requested and (memory or lost or unfit)):
            log_trial(logger, "left", assignment, "left for the next start")
            return  # it stays live: the next start goes on from its checkpoint
        if unfit is not None:
            self._avoid(assignment, *unfit)
        elif memory is not None:
            self._ran_out_of_memory(assignment, memory)
        elif lost and excused:
            self._coordinator.again(key, alone=assignment.alone)
            said = "its worker was to start on a node that is lost; it is handed out again"
            log_trial(logger, "worker_lost", assignment, said)
        elif lost:
            self._lost_worker(assignment)
        else:
            self._seal(key, failed)

    def _ended_together(self, assignment: TrialAssignment, came_apart: str | None) -> None:
        """Of trials that were trained together, those that are not done are tried one by one, or left."""
        for member in assignment.members:
            if member.key in self._done:
                self._done.remove(member.key)
            elif assignment.key in self._left or (self._interruption.requested and came_apart):
                log_trial(logger, "left", member, "left for the next start")
            elif came_apart:
                self._coordinator.again(member.key)
                said = f"cannot be trained with its other seeds ({came_apart}); it goes on by itself"
                log_trial(logger, "came_apart", member, said, logging.WARNING)
            else:
                self._seal(member.key, None)
        self._left.discard(assignment.key)

    def _avoid(self, assignment: TrialAssignment, node: str, cause: str) -> None:
        """Hand the trial out again, it and all that follow to other nodes."""
        self._coordinator.again(assignment.key, alone=assignment.alone)
        self._avoid_node(node, cause)

    def _avoid_node(self, node: str, cause: str) -> None:
        if node in self.avoided:
            return
        self.avoided = (*self.avoided, node)
        # Of those that have joined since, a fit one may come back.
        if self._nodes_at_first and self._nodes_at_first <= set(self.avoided):
            self.errors.append(NodeError(f"node {node[:8]}, the last on which trials fit: {cause}"))
        else:
            logger.warning("node %s gets no trials: %s", node[:8], cause)

    def _ran_out_of_memory(self, assignment: TrialAssignment, memory: OutOfMemory) -> None:
        if assignment.alone in (memory.place, "host"):  # who has a node to itself has its GPUs too
            self._seal(assignment.key, failed_alone(memory, assignment.config))
            return
        self._coordinator.again(assignment.key, alone=memory.place)
        log_trial(logger, "out_of_memory", assignment, said_beside_others(memory), logging.WARNING)

    def _lost_worker(self, assignment: TrialAssignment) -> None:
        self._lost[assignment.key] += 1
        times = self._lost[assignment.key]
        if times == LOST_WORKER_TRIES:
            self._seal(
                assignment.key,
                f"its worker was lost {times} times, the last time with a node to itself; the kernel's log tells of "
                "memory that ran out, Ray's of the rest",
            )
            return
        last = times + 1 == LOST_WORKER_TRIES
        self._coordinator.again(assignment.key, alone="host" if last else assignment.alone)
        where = ", with a node to itself" if last else ""
        again = f"it goes on from its last checkpoint{where} (try {times + 1} of {LOST_WORKER_TRIES})"
        log_trial(logger, "worker_lost", assignment, f"its worker was lost; {again}", logging.WARNING)

    def _seal(self, key: str, error: str | None) -> None:
        record = self._coordinator.end(key, error)
        epochs = counted(record.num_epochs, "epoch")
        said = f"{record.status} ({record.reason}) after {epochs} and {record.seconds:.1f} s of training"
        log_trial(logger, record.status, record, said)
