"""Trials that were handed out to the cluster: the slots that they take, what they wait for, and who waits for them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from study.assignment import TrialAssignment
from study.cluster import Slots
from study.log import log_trial
from study.out_of_memory import ALONE

logger = logging.getLogger(__name__)

WAITS_S = 60.0
"""After so long without a worker the log says that a trial waits: they start in seconds where there is room."""

HELD_BACK_S = 600.0
"""How long other trials wait for one that is to have a GPU or a node to itself: on a cluster that others use too it
might never get it."""


@dataclass
class _HandedOut:
    """A trial that no worker has given back.

    Attributes:
        takes: slots. asks: the resources that Ray is asked for.
        waits_since: when it was handed out, or a node joined that has what it asks for; None once a worker has it, or
            the log says that it waits.
        held_back_since: since when others wait for it; None: they do not.
        runs: whether a worker has it.
        excused: whether it may not be its fault if it is lost.
        out_of_reach: whether no node is there that has what it asks for.
    """

    assignment: TrialAssignment
    takes: int
    asks: Mapping[str, float]
    waits_since: float | None
    held_back_since: float | None
    runs: bool = False
    excused: bool = False
    out_of_reach: bool = False

    @property
    def node(self) -> str:
        """The node that it asks for, in words."""
        amounts = (f"{amount:g} {name}{'' if amount == 1 else 's'}" for name, amount in self.asks.items())
        return f"a node of {' and '.join(amounts)}"


class HandedOut:
    """The trials that the cluster has.

    Args:
        slots: how much fits on it.
        clock: seconds that only grow.
    """

    def __init__(self, slots: Slots, clock: Callable[[], float]) -> None:
        self._slots = slots
        self._clock = clock
        self._trials: dict[str, _HandedOut] = {}

    def __getitem__(self, key: str) -> TrialAssignment:
        return self._trials[key].assignment

    @property
    def any_runs(self) -> bool:
        """Whether a worker has one."""
        return any(trial.runs for trial in self._trials.values())

    @property
    def waits(self) -> str | None:
        """Which trials wait for what no node here can give; None: none does."""
        lines = [
            f"trial {trial.assignment.key} ({trial.assignment.cell}, {trial.assignment.phase}) asks for {trial.node}, "
            "and none here has as much"
            for trial in self._trials.values()
            if trial.out_of_reach
        ]
        return "; ".join(lines) or None

    def has_room(self) -> bool:
        """Whether one more may be handed out: there is a slot, and no trial waits for a GPU or node of its own.

        Whatever else began would take a part of what that one waits for.
        """
        # Where no node is left one trial waits for it with Tune, which does nothing else while it has none.
        taken = sum(trial.takes for trial in self._trials.values() if not trial.out_of_reach)
        full = taken >= max(1, self._slots.total)
        return not full and not self._holds_back()

    def _holds_back(self) -> bool:
        now = self._clock()
        for trial in self._trials.values():
            if trial.held_back_since is not None and now - trial.held_back_since > HELD_BACK_S:
                trial.held_back_since = None
                said = f"still waits for {ALONE[trial.assignment.alone or 'host']}; the others wait for it no longer"
                log_trial(logger, "waits", trial.assignment, said, logging.WARNING)
        return any(trial.held_back_since is not None for trial in self._trials.values())

    def add(self, assignment: TrialAssignment) -> None:
        """It is handed out now."""
        now = self._clock()
        self._trials[assignment.key] = _HandedOut(
            assignment,
            takes=self._slots.taken_by(assignment.alone),
            asks=self._slots.asked_by(assignment.alone),
            waits_since=now,
            held_back_since=None if assignment.alone is None else now,
        )
        for member in assignment.members:
            log_trial(logger, "handed_out", member, "handed out")

    def start(self, key: str) -> TrialAssignment:
        """A worker has it; gives what it was told."""
        trial = self._trials[key]
        trial.runs, trial.excused = True, False
        trial.waits_since = trial.held_back_since = None
        for member in trial.assignment.members:
            log_trial(logger, "started", member, "a worker has it")
        return trial.assignment

    def end(self, key: str) -> tuple[TrialAssignment, bool]:
        """No worker has it any more; gives what it was told, and whether its loss would be excused.

        It is where a node was lost before a worker had it: its worker was to start there.
        """
        trial = self._trials.pop(key)
        return trial.assignment, trial.excused

    def resize(self, slots: Slots) -> None:
        """Nodes were lost, or have joined: so much fits now, beside what runs."""
        if self._slots.nodes - slots.nodes:
            # Ray may have begun to start their workers there, and tells of that only when another node has joined.
            for trial in self._trials.values():
                trial.excused = trial.excused or not trial.runs
        self._slots = slots
        if not slots.total:
            return  # all trials wait then, whatever they ask for
        for trial in self._trials.values():
            if not trial.runs and trial.out_of_reach == slots.can_give(trial.asks):
                self._now_in_reach(trial) if trial.out_of_reach else self._now_out_of_reach(trial)

    def _now_in_reach(self, trial: _HandedOut) -> None:
        trial.out_of_reach = False
        trial.waits_since = self._clock()
        trial.held_back_since = None if trial.assignment.alone is None else self._clock()

    def _now_out_of_reach(self, trial: _HandedOut) -> None:
        trial.out_of_reach = True
        trial.waits_since = trial.held_back_since = None
        said = (
            f"waits for {trial.node}, and none here has as much; other trials go on, and so does this one once such a "
            "node joins; a new start (Ctrl-C, then the same command) does with the nodes that are there"
        )
        log_trial(logger, "waits", trial.assignment, said, logging.WARNING)

    def note_waiting(self) -> None:
        """Log, once, each trial that has waited long for a worker."""
        for trial in self._trials.values():
            if trial.waits_since is not None and self._clock() - trial.waits_since > WAITS_S:
                trial.waits_since = None
                said = f"has waited for a worker for more than {WAITS_S:g} s"
                log_trial(logger, "waits", trial.assignment, said)
