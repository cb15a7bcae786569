"""A cluster of a virtual clock: the real searcher, scheduler and coordinator, over trials that train nothing.

Slots take what the searcher suggests, trials report epochs of made-up length and value to the scheduler, and what is
written is what a study writes: journal, live and sealed records. Ray is left out.
"""

from __future__ import annotations

import heapq
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from ray.tune.schedulers import TrialScheduler
from ray.tune.search import Searcher

from bimp.config import Phase
from study.assignment import TrialAssignment
from study.cell_run import PlannedTrial
from study.cluster import Slots
from study.coordinator import StudyCoordinator
from study.dispatch import Dispatch
from study.growing_record import initial_record
from study.plan import Cell, StudyPlan
from study.records import EpochRecord, TrialRecord, write_record
from study.results import ResultsFolder
from study.spec import StudySpec
from study.tune_bridge import CoordinatedScheduler, CoordinatedSearcher


@dataclass(frozen=True, kw_only=True)
class FakeTraining:
    """What trials would do; functions of the assignment alone, so that a trial is the same whenever it runs.

    Attributes:
        seconds: of each epoch of a trial.
        val_metric: of a trial after an epoch, counted from 1.
        last_epoch: the epoch after which a trial ends by itself, at most its ``max_epochs``.
    """

    seconds: Callable[[TrialAssignment], float]
    val_metric: Callable[[TrialAssignment, int], float]
    last_epoch: Callable[[TrialAssignment], int]


@dataclass(frozen=True, kw_only=True)
class Report:
    """An epoch of a search trial as the scheduler heard of it, and what it said."""

    cell: str
    key: str
    epoch: int
    val_metric: float
    ended: bool
    stopped: bool


@dataclass(frozen=True, kw_only=True)
class Stay:
    """A trial in a slot, from ``began`` to ``ended`` by the virtual clock; ``place`` counts starts from 0."""

    key: str
    cell: str
    phase: Phase
    place: int
    began: float
    ended: float


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """All that happened.

    Attributes:
        slots: of the cluster.
        stays: every trial, by its start.
        reports: of search trials, in the order in which they came.
        search_ends: by cell, how many trials of the study had started when its last search trial had ended.
    """

    slots: int
    stays: tuple[Stay, ...]
    reports: tuple[Report, ...]
    search_ends: dict[str, int]

    @property
    def tail_begins(self) -> float:
        """When fewer trials than slots were left, those under way and those nobody could start yet included."""
        ends = sorted(stay.ended for stay in self.stays)
        return ends[-self.slots] if len(ends) >= self.slots else 0.0

    @property
    def busy(self) -> float:
        """The part of all slots' time before the tail in which they had a trial."""
        until = self.tail_begins
        used = sum(min(stay.ended, until) - min(stay.began, until) for stay in self.stays)
        return used / (self.slots * until)

    def of(self, cell: str, phase: Phase) -> tuple[Stay, ...]:
        """The trials of one cell and phase."""
        return tuple(stay for stay in self.stays if (stay.cell, stay.phase) == (cell, phase))


@dataclass
class Cost:
    """How often something was done, and the seconds that it took: of CPU time, and by the clock."""

    times: int = 0
    cpu: float = 0.0
    wall: float = 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count what happens within."""
        cpu, wall = time.process_time(), time.perf_counter()
        yield
        self.times += 1
        self.cpu += time.process_time() - cpu
        self.wall += time.perf_counter() - wall


@dataclass
class _LiveTrial:
    """A trial in its slot; to the scheduler it looks like Tune's."""

    trial_id: str
    config: dict[str, Any]
    assignment: TrialAssignment
    record: TrialRecord
    last_epoch: int
    place: int
    began: float
    epochs: list[EpochRecord] = field(default_factory=list)


class SimulatedPool:
    """Runs a coordinator's study to its end in no time.

    Args:
        coordinator: of a results folder that can be written.
        folder: that folder.
        slots: how many trials fit side by side.
        training: how trials behave.

    ``costs`` are those of the searcher's and the scheduler's answers: ``suggest``, ``report`` and ``end``.
    """

    def __init__(
        self, coordinator: StudyCoordinator, folder: ResultsFolder, slots: int, training: FakeTraining
    ) -> None:
        dispatch = Dispatch(coordinator, Slots(total=slots))
        self._errors = dispatch.errors
        self._searcher = CoordinatedSearcher(dispatch)
        self._scheduler = CoordinatedScheduler(dispatch)
        self.costs: defaultdict[str, Cost] = defaultdict(Cost)
        self._folder = folder
        self._slots = slots
        self._training = training
        self._now = 0.0
        self._asked = 0
        self._events: list[tuple[float, int, _LiveTrial]] = []
        self._live: dict[str, _LiveTrial] = {}
        self._stays: list[Stay] = []
        self._reports: list[Report] = []
        self._search_ends: dict[str, int] = {}
        self._coordinator = coordinator

    def run(self) -> Timeline:
        """From the first suggestion to the word that there is nothing left.

        Raises:
            RuntimeError: the searcher gives nothing though no trial is under way, or gives more than there are slots.
        """
        finished = self._fill()
        while self._events:
            self._now, _, live = heapq.heappop(self._events)
            if self._epoch(live):
                self._schedule(live)
            else:
                self._end(live)
                finished = self._fill()
        if not finished:
            raise RuntimeError("nothing is under way, and the searcher neither gives a trial nor ends the study")
        return Timeline(
            slots=self._slots,
            stays=tuple(sorted(self._stays, key=lambda stay: stay.place)),
            reports=tuple(self._reports),
            search_ends=self._search_ends,
        )

    def _fill(self) -> bool:
        """Ask for trials until there is none for now; True when there never will be."""
        while True:
            started = len(self._stays) + len(self._live)
            self._asked += 1
            trial_id = f"trial_{self._asked}"
            with self.costs["suggest"].timed():
                suggested = self._searcher.suggest(trial_id)
            if self._errors:
                raise self._errors[0]
            if not isinstance(suggested, dict):
                return suggested == Searcher.FINISHED
            if len(self._live) == self._slots:
                raise RuntimeError(f"{trial_id}: one trial more than the {self._slots} slots take")
            self._begin(trial_id, suggested)
            # A known configuration may have been a cell's last: its search ended before the trial that came instead.
            self._note_search_ends(started)

    def _note_search_ends(self, started: int) -> None:
        searching = {live.assignment.cell for live in self._live.values() if live.assignment.phase == "search"}
        for name, run in self._coordinator.cells.items():
            if name not in self._search_ends and name not in searching and run.asked == run.cell.trials:
                self._search_ends[name] = started

    def _begin(self, trial_id: str, config: dict[str, Any]) -> None:
        assignment = TrialAssignment.from_dict(config)
        # Nobody asks how many parameters a network has that is never built.
        record = initial_record(assignment, "none", params=1)
        live = _LiveTrial(
            trial_id=trial_id,
            config=config,
            assignment=assignment,
            record=replace(record, started_at=self._now),
            last_epoch=self._training.last_epoch(assignment),
            place=len(self._stays) + len(self._live),
            began=self._now,
        )
        self._live[trial_id] = live
        self._schedule(live)

    def _schedule(self, live: _LiveTrial) -> None:
        heapq.heappush(self._events, (self._now + self._training.seconds(live.assignment), live.place, live))

    def _epoch(self, live: _LiveTrial) -> bool:
        """One epoch; False if the trial ends with it."""
        assignment, epoch = live.assignment, len(live.epochs) + 1
        value = self._training.val_metric(assignment, epoch)
        live.epochs.append(_epoch_record(epoch, value, self._training.seconds(assignment), self._now))
        ended = epoch == live.last_epoch
        result = {"epoch": epoch, "val_metric": value, "ended": ended}
        # Of Tune's controller the scheduler looks at nothing, of its trial at id and configuration.
        trial: Any = SimpleNamespace(trial_id=live.trial_id, config=live.config)
        with self.costs["report"].timed():
            stopped = self._scheduler.on_trial_result(None, trial, result) == TrialScheduler.STOP
        if assignment.phase == "search":
            self._reports.append(
                Report(
                    cell=assignment.cell,
                    key=assignment.key,
                    epoch=epoch,
                    val_metric=value,
                    ended=ended,
                    stopped=stopped,
                )
            )
        return not (ended or stopped)

    def _end(self, live: _LiveTrial) -> None:
        """The worker's last word, then Tune's."""
        assignment, last = live.assignment, live.epochs[-1]
        record = replace(
            live.record,
            epochs=tuple(live.epochs),
            seconds=self._now - live.began,
            val_metric=last.val_metric,
            val_loss=last.val_loss,
        )
        if last.epoch == live.last_epoch:
            record = record.sealed("finished", "its schedule", self._now)
            if assignment.phase == "confirm":
                record = replace(record, train_metric=last.val_metric, test_metric=last.val_metric)
        write_record(record, self._folder.live_record(assignment.key, assignment.attempt))
        del self._live[live.trial_id]
        with self.costs["end"].timed():
            self._searcher.on_trial_complete(trial_id=live.trial_id, result=None, error=False)
        if self._errors:
            raise self._errors[0]
        self._stays.append(
            Stay(
                key=assignment.key,
                cell=assignment.cell,
                phase=assignment.phase,
                place=live.place,
                began=live.began,
                ended=self._now,
            )
        )
        self._note_search_ends(len(self._stays) + len(self._live))


def simulated_coordinator(
    spec: StudySpec, plan: StudyPlan, folder: ResultsFolder, trials: Sequence[int] | None = None
) -> StudyCoordinator:
    """The coordinator of ``spec`` on data that do not exist.

    ``trials``, if given, are those of the cells that search, in the plan's order, in the place of the plan's.
    """
    folder.create()
    if trials is not None:
        plan = replace(plan, cells=tuple(_with_trials(plan, trials)))
    fingerprints = {cell.dataset: f"no {cell.dataset}" for cell in plan.cells}

    def assignment(trial: PlannedTrial) -> TrialAssignment:
        return TrialAssignment(
            key=trial.key,
            study=spec.name,
            cell=trial.cell,
            phase=trial.phase,
            number=trial.number,
            chosen_from=trial.chosen_from,
            budget=trial.budget,
            config=trial.config,
            data_fingerprint=fingerprints[trial.config.dataset],
            data_root="nowhere",
            results=str(folder.root),
            threads=1,
            use_gpu=False,
            git_commit=None,
            git_dirty=None,
        )

    return StudyCoordinator(spec, plan, folder, fingerprints, assignment)


def _with_trials(plan: StudyPlan, trials: Sequence[int]) -> Iterator[Cell]:
    given = iter(trials)
    return (replace(cell, trials=next(given)) if cell.trials else cell for cell in plan.cells)


def _epoch_record(epoch: int, value: float, seconds: float, now: float) -> EpochRecord:
    return EpochRecord(
        epoch=epoch,
        learning_rate=1e-3,
        train_loss=1.0,
        train_unsupervised_loss=None,
        train_metric=value,
        val_loss=1.0,
        val_unsupervised_loss=None,
        val_metric=value,
        gate_min=None,
        gate_max=None,
        gate_std=None,
        seconds=seconds,
        ended_at=now,
    )
