"""What runs next, over all cells and both phases; knows nothing of Ray.

Each cell searches by itself, then confirms its best configuration with every seed. All cells share the slots:
whoever has work gets the next free one. State is rebuilt from records and journal at every start.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Container
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from bimp.stack.network import can_be_stacked
from study.assignment import TrialAssignment
from study.attempts import newest_record
from study.cell_run import CellRun, PlannedTrial
from study.ended_trials import EndedTrial, ended_trials
from study.journal import Journal, WrittenEntry
from study.out_of_memory import MemoryPlace
from study.plan import StudyPlan
from study.plan.cells import MOST_TOGETHER
from study.progress import StudyView, study_view
from study.records import BEGUN_AGAIN, TrialRecord, read_records, write_record
from study.results import ResultsFolder, attempt_name
from study.sealing import clear_away, seal
from study.spec import StudySpec
from study.stays import Stays
from study.whole_files import remove_folder

MakeAssignment = Callable[[PlannedTrial], TrialAssignment]
"""Completes a trial with what only the driver knows: folders, threads, the state of the code."""

Write = Callable[[Callable[[], Any]], Any]
"""Does what writes to the results folder, and gives what it gave; may wait for a folder that refuses."""


def at_once(act: Callable[[], Any]) -> Any:
    """Write without waiting: a refusal is raised."""
    return act()


class StudyCoordinator:
    """Hands out trials, hears of their epochs and ends, seals their records.

    Args:
        spec, plan: what was asked for.
        folder: the results folder; its records and journal are read here.
        fingerprints: of every dataset's prepared data.
        make_assignment: see :data:`MakeAssignment`.
        lease: number of the lease under which this run works in the folder.

    Attributes:
        cells: the study's, by their ids.
        live: trials that are under way, by their keys.
        retired: confirm trials that left the study, by the reason.

    Raises:
        JournalError: the journal cannot be read, or belongs to another study or to other data.
        RecordError: a record cannot be read.
    """

    def __init__(
        self,
        spec: StudySpec,
        plan: StudyPlan,
        folder: ResultsFolder,
        fingerprints: dict[str, str],
        make_assignment: MakeAssignment,
        lease: int = 1,
    ) -> None:
        self.cells = {cell.id: CellRun(cell, spec, fingerprints[cell.dataset]) for cell in plan.cells}
        self.live: dict[str, TrialAssignment] = {}
        self._study = spec.name
        self._seeds_together = spec.resources.seeds_together
        self._folder = folder
        self._journal = Journal(folder.journal, lease)
        self._lease = lease
        self._launches: Counter[str] = Counter()
        self._make_assignment = make_assignment
        self._pruned_at: dict[str, int] = {}
        self._again: deque[TrialAssignment] = deque()
        self._write: Write = at_once
        self._stays = Stays()
        self.retired: Counter[str] = Counter()
        self._take_up()

    def write_through(self, write: Write) -> None:
        """Write journal and records by way of ``write`` from now on."""
        self._write = write

    @property
    def done(self) -> bool:
        """Whether no trial is live and none is left to start."""
        return not self.live and not self._again and all(run.ended for run in self.cells.values())

    @property
    def ended_cells(self) -> tuple[str, ...]:
        """The cells of which no trial is live and none is left to start."""
        live = {assignment.cell for assignment in (*self.live.values(), *self._again)}
        return tuple(name for name, run in self.cells.items() if run.ended and name not in live)

    def next_trial(self) -> TrialAssignment | None:
        """The next trial to start; None if whatever is left waits for live ones.

        Trials that an earlier start had begun come first, then confirm trials, then a trial of the cell that has
        asked for the least part of its search. So cells of one study move along together, each sampler hears much
        before it asks again, and the last cell to end is not left alone with slots that wait for its last trials.
        """
        if self._again:
            return self._hand_out(self._again.popleft())
        trial = self._first(CellRun.next_begun) or self._first(CellRun.next_confirm) or self._next_search()
        if trial is None:
            return None
        return self._hand_out(self._with_companions(trial))

    def _with_companions(self, trial: PlannedTrial) -> TrialAssignment:
        """The trial, with the other confirm trials of its cell if they are to be trained together."""
        assignment = self._make_assignment(trial)
        if not (self._seeds_together and trial.phase == "confirm" and can_be_stacked(trial.config.model)):
            return assignment
        cell = self.cells[trial.cell]
        others = islice(iter(cell.next_confirm, None), MOST_TOGETHER - 1)
        return replace(assignment, companions=tuple(self._make_assignment(other) for other in others))

    def started(self, key: str) -> None:
        """Hear that a worker has a live trial."""
        self._stays.start(key)

    def report(self, key: str, epoch: int, val_metric: float, *, ended: bool) -> bool:
        """Hear of an epoch of a live trial; False if the trial is to be pruned here.

        ``ended``: the trial stops by itself after this epoch. Its value enters the rungs as any other, but pruning it
        would only hide why it ended.
        """
        assignment = self.live[key]
        self._stays.epochs[key] = epoch
        if assignment.phase == "confirm":
            return True
        if self.cells[assignment.cell].keeps(key, epoch, val_metric) or ended:
            return True
        self._pruned_at[key] = epoch
        return False

    def end(self, key: str, error: str | None = None) -> TrialRecord:
        """Seal a trial that no worker runs any more; ``error`` says why its worker was lost, if it was."""
        assignment, pruned_at = self.live[key], self._pruned_at.get(key)
        record: TrialRecord = self._write(partial(seal, assignment, self._folder, pruned_at=pruned_at, error=error))
        self._write(partial(clear_away, record, self._folder))
        del self.live[key]
        self._stays.end(key, record.seconds)
        self._pruned_at.pop(key, None)
        self.cells[assignment.cell].take(EndedTrial.of(record))
        self._retire(self.cells[assignment.cell])
        return record

    def again(self, key: str, *, alone: MemoryPlace | None = None) -> None:
        """Hand a live trial out once more, before all others and without companions.

        ``alone``: what it is to have to itself.
        """
        self._pruned_at.pop(key, None)
        self._stays.lose(key)
        self._again.append(replace(self.live.pop(key), alone=alone, companions=()))

    def take_back(self) -> None:
        """Hand all live trials out once more, before all others: nobody runs them any more."""
        for key, assignment in list(self.live.items()):
            self.again(key, alone=assignment.alone)

    def _hand_out(self, assignment: TrialAssignment) -> TrialAssignment:
        sharing = len(assignment.members)
        companions = tuple(self._begin(companion, sharing) for companion in assignment.companions)
        return self._begin(replace(assignment, companions=companions), sharing)

    def _begin(self, assignment: TrialAssignment, sharing: int) -> TrialAssignment:
        self._launches[assignment.key] += 1
        attempt = attempt_name(self._lease, self._launches[assignment.key])
        self._stays.begin(assignment.key, sharing)
        self.live[assignment.key] = replace(assignment, attempt=attempt)
        return self.live[assignment.key]

    def _first(self, wanted: Callable[[CellRun], PlannedTrial | None]) -> PlannedTrial | None:
        return next((trial for run in self.cells.values() if (trial := wanted(run)) is not None), None)

    def _next_search(self) -> PlannedTrial | None:
        """Ask the samplers until one gives a configuration that is not known yet.

        One that is known may have been the last that its cell waited for: then its confirm trials come next.
        """
        while waiting := [run for run in self.cells.values() if run.has_search_left]:
            entry, trial = min(waiting, key=lambda run: run.asked / run.cell.trials).next_search()
            self._write(partial(self._journal.append, entry))
            trial = trial or self._first(CellRun.next_confirm)
            if trial is not None:
                return trial
        return None

    def view(self, slots: int) -> StudyView:
        """How far the study is; safe to call from another thread."""
        return study_view(
            self._study,
            [run.goal for run in self.cells.values()],
            {name: run.tally for name, run in self.cells.items()},
            self._stays.under_way(list(self.live.values())),
            {name: run.repeated for name, run in self.cells.items()},
            slots,
            self._stays.overhead_s,
        )

    def _take_up(self) -> None:
        self._journal.begin()
        sealed: dict[str, EndedTrial] = {}
        failed: dict[str, EndedTrial] = {}
        for ended in ended_trials(self._folder.records):
            if ended.status not in BEGUN_AGAIN:
                sealed[ended.key] = ended
            elif ended.status == "failed":
                failed[ended.key] = ended
        live = self._unfinished(sealed)
        entries: dict[str, list[WrittenEntry]] = defaultdict(list)
        for written in self._journal.written_entries():
            entries[written.entry.cell].append(written)
        for cell_id, run in self.cells.items():
            run.begin(entries[cell_id], sealed, live, failed)
        for run in self.cells.values():  # once no journal was refused: what was confirmed is still the study's then
            self._retire(run)

    def _unfinished(self, sealed: Container[str]) -> dict[str, TrialRecord]:
        """Live records of trials that go on.

        The rest of what a crash left is removed: of trials that were just sealed, and records that it cut, whose
        trials begin again.
        """
        records = {}
        for key in self._folder.live_keys():
            record = None if key in sealed else newest_record(self._folder, key)
            if record is None:
                remove_folder(self._folder.live_folder(key))
            else:
                records[key] = record
        return records

    def _retire(self, run: CellRun) -> None:
        """Take confirm trials of a configuration that lost its place out of the study; they stay on record."""
        reason = (
            "its search, extended or with failed trials tried again, chose another configuration"
            if run.cell.trials
            else "the data of its cell, or the width that its budget gives, is another now"
        )
        if keys := run.take_superseded():
            self.retired[reason] += len(keys)
            self._write(partial(_supersede, self._folder, keys, reason))


def _supersede(folder: ResultsFolder, keys: set[str], reason: str) -> None:
    sealed = {record.key: record for record in read_records(folder.records, keys=keys)}
    for key in sorted(keys):
        # A failed trial that was under way again has both.
        record = newest_record(folder, key) or sealed.get(key)
        if record is not None:
            ended_at = time.time() if record.ended_at is None else record.ended_at
            superseded = record.sealed("superseded", reason, ended_at)
            write_record(superseded, folder.record(key))
            clear_away(superseded, folder)
