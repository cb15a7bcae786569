"""One cell on its way: its search, the choice, and its confirm trials."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bimp.config import Phase, TrialConfig, trial_key
from study.choice import Outcome, best_outcome
from study.ended_trials import EndedTrial
from study.journal import JournalEntry, JournalError, WrittenEntry
from study.plan import Cell, resolve
from study.plan.cells import most_in_a_slot
from study.plan.effort import trained_trials
from study.records import TrialRecord
from study.search import CellRungs, CellSampler, Proposal
from study.space import wrong_sample
from study.spec import StudySpec
from study.tally import CellGoal, CellTally


@dataclass(frozen=True, kw_only=True)
class PlannedTrial:
    """A trial that a cell wants to run; fields as in :class:`study.records.TrialRecord`."""

    key: str
    cell: str
    phase: Phase
    config: TrialConfig
    budget: int | None
    number: int | None = None
    chosen_from: str | None = None


class CellRun:
    """What one cell has asked for, what came back, and what it wants next.

    Args:
        cell: the cell, from the plan.
        spec: the study that it belongs to.
        fingerprint: of the cell's prepared dataset; part of every key.
    """

    def __init__(self, cell: Cell, spec: StudySpec, fingerprint: str) -> None:
        self.cell = cell
        self.direction = cell.direction
        self.goal = CellGoal(
            cell=cell.id,
            metric=cell.task.metric,
            direction=self.direction,
            trials=cell.trials,
            confirm_trials=len(cell.confirm_runs),
            max_epochs=cell.max_epochs,
            last_rung=max(cell.rungs, default=None),
            together=most_in_a_slot(cell, spec),
            trained=trained_trials(cell),
        )
        self.tally = CellTally()
        self.asked = 0
        self.outcomes: dict[str, Outcome] = {}
        self.confirmed: dict[str, EndedTrial] = {}
        self.confirm_keys: tuple[str, ...] = ()
        self.search_ended = False
        self._superseded: set[str] = set()
        self._unfinished_confirm: set[str] = set()
        self._spec = spec
        self._fingerprint = fingerprint
        self._searched: dict[str, PlannedTrial] = {}
        self._numbers: dict[str, list[int]] = {}
        self._resumable: deque[PlannedTrial] = deque()
        self._confirm: deque[PlannedTrial] = deque()
        self._sampler = (
            CellSampler(cell.id, cell.space, spec.search, spec.seed, self.direction)
            if spec.search is not None and cell.trials
            else None
        )
        self._rungs = CellRungs(spec.search.asha if spec.search else None, cell.max_epochs, self.direction)

    # ---- what it wants

    @property
    def has_search_left(self) -> bool:
        """Whether its sampler still has a trial to ask for."""
        return self._sampler is not None and self.asked < self.cell.trials

    @property
    def repeated(self) -> int:
        """How many search trials sampled a configuration that was known already."""
        return self.asked - len(self._numbers)

    @property
    def ended(self) -> bool:
        """Whether it has handed out all it ever will."""
        return self.search_ended and not self._confirm and not self._resumable

    def next_begun(self) -> PlannedTrial | None:
        """A search trial that an earlier start had begun, if one is left."""
        return self._resumable.popleft() if self._resumable else None

    def next_confirm(self) -> PlannedTrial | None:
        """A confirm trial, if one is ready."""
        return self._confirm.popleft() if self._confirm else None

    def next_search(self) -> tuple[JournalEntry, PlannedTrial | None]:
        """Ask the sampler: the journal's entry, and the trial unless its configuration is known already.

        A configuration sampled a second time counts and is told its value, but is not trained again.
        """
        sampler = self._require_sampler()
        proposal = sampler.ask()
        trial, is_new = self._register(proposal)
        entry = JournalEntry(cell=self.cell.id, number=proposal.number, key=trial.key, values=proposal.sampled)
        if trial.key in self.outcomes:
            sampler.tell(proposal.number, self.outcomes[trial.key])
        self._choose_when_complete()
        return entry, trial if is_new else None

    def take_superseded(self) -> set[str]:
        """Keys of confirm trials of a configuration that is no longer the chosen one; each is given once."""
        superseded, self._superseded = self._superseded, set()
        return superseded

    # ---- what it hears

    def keeps(self, key: str, epoch: int, val_metric: float) -> bool:
        """Whether a search trial goes on after ``epoch``; compared with this cell's trials only."""
        return self._rungs.keeps(key, epoch, val_metric)

    def take(self, ended: EndedTrial) -> None:
        """Hear how a trial of this cell ended."""
        self.tally.add(ended, self.goal)
        if ended.phase == "confirm":
            self.confirmed[ended.key] = ended
            return
        outcome = Outcome.of(ended)
        self.outcomes[ended.key] = outcome
        for number in self._numbers[ended.key]:
            self._require_sampler().tell(number, outcome)
        self._choose_when_complete()

    def begin(
        self,
        entries: list[WrittenEntry],
        sealed: dict[str, EndedTrial],
        live: dict[str, TrialRecord],
        failed: dict[str, EndedTrial],
    ) -> None:
        """Take up what earlier starts left: the cell's journal, its trials that ended, are unfinished or failed.

        Raises:
            JournalError: an entry holds another trial than this study has now.
        """
        self.confirmed = {key: ended for key, ended in sealed.items() if self._confirms(ended)}
        self._unfinished_confirm = {key for key, trial in live.items() if self._confirms(trial)}
        self._unfinished_confirm |= {key for key, trial in failed.items() if self._confirms(trial)}
        for written in entries:
            self._replay(written, sealed, live)
        self._choose_when_complete()

    def _confirms(self, trial: EndedTrial | TrialRecord) -> bool:
        return trial.phase == "confirm" and trial.cell == self.cell.id

    def _replay(self, written: WrittenEntry, sealed: dict[str, EndedTrial], live: dict[str, TrialRecord]) -> None:
        trial, is_new = self._ask_again(written)
        ended = sealed.get(trial.key)
        for epoch, val_metric in enumerate(_judged(ended, live.get(trial.key)), start=1):
            self.keeps(trial.key, epoch, val_metric)
        if ended is not None:
            if is_new:
                self.tally.add(ended, self.goal)
            self.outcomes[trial.key] = Outcome.of(ended)
            self._require_sampler().tell(written.entry.number, self.outcomes[trial.key])
        elif is_new:
            self._resumable.append(trial)

    # ---- how it works

    def _ask_again(self, written: WrittenEntry) -> tuple[PlannedTrial, bool]:
        """The trial of an entry, asked for as the earlier start did, and whether it is the first of its key.

        Raises:
            JournalError: no search of this cell can have given the entry.
        """
        entry = written.entry
        if self._sampler is None:
            trouble = f"cell: found {entry.cell}, which searches nothing now"
            raise JournalError(written.place, trouble, "give the study its search back")
        wrong = wrong_sample(self.cell.space, entry.values)
        if wrong is not None:
            raise JournalError(written.place, f"values.{wrong}")
        trial, is_new = self._register(self._sampler.replay(entry.values))
        if trial.key != entry.key:
            raise JournalError(
                written.place,
                f"key: found {entry.key}, expected {trial.key}, as its values give in this study with its data: the "
                "folder belongs to another study or to other data, or the line was altered",
            )
        return trial, is_new

    def _register(self, proposal: Proposal) -> tuple[PlannedTrial, bool]:
        config, budget = self._resolve(proposal.values, self.cell.search_seed, self.cell.search_fold)
        key = self._key(config, "search")
        is_new = key not in self._numbers
        self._numbers.setdefault(key, []).append(proposal.number)
        self.asked += 1
        if is_new:
            self._searched[key] = PlannedTrial(
                key=key, cell=self.cell.id, phase="search", config=config, budget=budget, number=proposal.number
            )
        return self._searched[key], is_new

    def _choose_when_complete(self) -> None:
        """Once every search trial has ended, choose the best configuration and queue its confirm trials."""
        if self.search_ended or self.has_search_left or len(self.outcomes) < len(self._numbers):
            return
        self.search_ended = True
        planned = self._confirm_trials()
        self.confirm_keys = tuple(trial.key for trial in planned)
        self._confirm.extend(trial for trial in planned if trial.key not in self.confirmed)
        for key, ended in self.confirmed.items():
            if key in self.confirm_keys:
                self.tally.add(ended, self.goal)
            else:
                self._superseded.add(key)
        # Nobody will end them; on record they would be missing for ever.
        self._superseded |= self._unfinished_confirm - set(self.confirm_keys)

    def _confirm_trials(self) -> list[PlannedTrial]:
        if self._sampler is None:
            seed, fold = self.cell.confirm_runs[0]
            config, budget = self._resolve({}, seed, fold)
            chosen_from = None
        else:
            last_rung = self.cell.rungs[-1] if self.cell.rungs else None
            best = best_outcome(self.outcomes.values(), self.direction, last_rung)
            if best is None:
                return []
            config, budget, chosen_from = self._searched[best.key].config, self._searched[best.key].budget, best.key
        trials = []
        for seed, fold in self.cell.confirm_runs:
            seeded = replace(config, seed=seed, fold=fold)
            trials.append(
                PlannedTrial(
                    key=self._key(seeded, "confirm"),
                    cell=self.cell.id,
                    phase="confirm",
                    config=seeded,
                    budget=budget,
                    chosen_from=chosen_from,
                )
            )
        return trials

    def _resolve(self, values: dict[str, Any], seed: int, fold: int | None) -> tuple[TrialConfig, int | None]:
        config = resolve(self.cell, values, self._spec, seed=seed, fold=fold)
        return config, values.get("budget", self.cell.setting("budget"))

    def _key(self, config: TrialConfig, phase: Phase) -> str:
        """The trial's identity. Two cells may choose the same configuration: each has a trial of its own."""
        whole = f"{self.cell.id}/{trial_key(config, phase, self._fingerprint)}"
        return hashlib.sha256(whole.encode()).hexdigest()[:20]

    def _require_sampler(self) -> CellSampler:
        if self._sampler is None:
            raise RuntimeError(f"cell {self.cell.id}: asked for a search trial, but nothing is searched")
        return self._sampler


def _judged(ended: EndedTrial | None, live: TrialRecord | None) -> Sequence[float]:
    """The validation metrics, epoch by epoch, of which the rungs heard for a trial, as far as is known.

    Of an unfinished trial nobody knows whether they heard of its last one: its worker reports that epoch again, and
    is judged then.
    """
    if ended is not None:
        return ended.val_metrics
    return [epoch.val_metric for epoch in live.epochs[:-1]] if live is not None else ()
