"""The coordinator over a whole study, with workers that write records but train nothing."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from ray.tune.schedulers import AsyncHyperBandScheduler, TrialScheduler

from study.assignment import TrialAssignment
from study.attempts import adopt_nameless_attempts, newest_record
from study.cell_run import PlannedTrial
from study.compaction import compact
from study.coordinator import StudyCoordinator
from study.growing_record import initial_record
from study.journal import Journal, JournalError
from study.live_view import plain_line
from study.plan import plan
from study.records import (
    COMPACTED_FILE,
    SCHEMA_VERSION,
    EpochRecord,
    RecordError,
    TrialRecord,
    read_records,
    write_record,
)
from study.results import ResultsFolder
from study.spec import StudySpec, read_study
from tests.crossing import crossed

STUDY = """
name: fake
seed: 3
arms: {dataset: digits, backbone: gcn, placement: [none, boosting], budget: 20000, layers: 2}
space:
  learning_rate: {log_uniform: [1.0e-4, 1.0e-2]}
  num_clusters: {int: [2, 12]}
  sigma_m: {log_uniform: [0.1, 10]}
fixed: {max_epochs: 9}
search: {sampler: SAMPLER, trials: 8, asha: {grace_epochs: 1, reduction_factor: 3}}
confirm: {seeds: [41, 95]}
"""


def accuracy(assignment: TrialAssignment, epoch: int) -> float:
    """A learning curve that follows from the configuration alone."""
    config = assignment.config
    digest = hashlib.sha256(repr((config.model, config.train, config.seed)).encode()).digest()
    return round(digest[0] / 256 * (1 - math.exp(-epoch / 3)), 6)


@dataclass
class Workers:
    """Trains nothing: writes the live record of each epoch as a worker would, and counts what it was asked."""

    coordinator: StudyCoordinator
    folder: ResultsFolder
    curve: Callable[[TrialAssignment, int], float] = accuracy
    trained: Counter[tuple[str, int]] = field(default_factory=Counter)

    def epoch(self, assignment: TrialAssignment, *, dies_before_report: bool = False) -> bool:
        """One epoch; False once the trial has ended."""
        path = self.folder.live_record(assignment.key, assignment.attempt)
        record = newest_record(self.folder, assignment.key) or initial_record(assignment, "none")
        epoch = record.num_epochs + 1
        value = self.curve(assignment, epoch)
        self.trained[assignment.key, epoch] += 1
        if math.isnan(value):
            write_record(record.sealed("diverged", f"epoch {epoch}: loss nan in training", 0.0), path)
            self.coordinator.end(assignment.key)
            return False
        record = replace(record, epochs=(*record.epochs, epoch_record(epoch, value)), val_metric=value, seconds=epoch)
        write_record(record, path)
        return dies_before_report or self.report(assignment, record)

    def report(self, assignment: TrialAssignment, record: TrialRecord) -> bool:
        """Report the last epoch of ``record``, which is on disk; False if the trial ends with it."""
        path = self.folder.live_record(assignment.key, assignment.attempt)
        epoch, value = record.num_epochs, record.epochs[-1].val_metric
        last = epoch == assignment.config.train.max_epochs
        if self.coordinator.report(assignment.key, epoch, value, ended=last) and not last:
            return True
        if last:
            test = value if assignment.phase == "confirm" else None
            write_record(replace(record.sealed("finished", "max_epochs", 0.0), test_metric=test), path)
        self.coordinator.end(assignment.key)
        return False

    def begin(self) -> TrialAssignment | None:
        """The next trial; one that goes on reports the last epoch of its earlier worker first."""
        while (assignment := self.coordinator.next_trial()) is not None:
            record = newest_record(self.folder, assignment.key)
            if record is None or self.report(assignment, record):
                return assignment
        return None

    def run(self, slots: int = 1, epochs: int | None = None, *, dies_before_report: bool = False) -> bool:
        """Run the study, or only so many epochs of it; True when it is done.

        ``dies_before_report``: of the last one the coordinator never hears, though it is on disk.
        """
        live = list(self.coordinator.live.values())
        while True:
            while len(live) < slots and (assignment := self.begin()) is not None:
                live.append(assignment)
            if not live:
                return self.coordinator.done
            for assignment in list(live):
                if epochs is not None and epochs <= 0:
                    return False
                epochs = None if epochs is None else epochs - 1
                if not self.epoch(assignment, dies_before_report=dies_before_report and epochs == 0):
                    live.remove(assignment)


def epoch_record(epoch: int, value: float) -> EpochRecord:
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
        seconds=1.0,
        ended_at=float(epoch),
    )


def start(
    folder: ResultsFolder, spec: StudySpec, fingerprint: str = "data", curve: Callable[..., float] = accuracy
) -> Workers:
    folder.create()

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
            data_fingerprint=fingerprint,
            data_root="nowhere",
            results=str(folder.root),
            threads=1,
            use_gpu=False,
            git_commit=None,
            git_dirty=None,
        )

    coordinator = StudyCoordinator(spec, plan(spec), folder, {"digits": fingerprint}, assignment)
    return Workers(coordinator, folder, curve)


def study(sampler: str = "tpe", **changes: str) -> StudySpec:
    text = STUDY.replace("SAMPLER", sampler)
    for old, new in changes.items():
        text = text.replace(old, new)
    return read_study(text)


def records(folder: ResultsFolder) -> dict[str, TrialRecord]:
    return {record.key: record for record in read_records(folder.records)}


def without_times(record: TrialRecord) -> TrialRecord:
    return replace(record, started_at=0.0)


@pytest.fixture
def folder(tmp_path: Path) -> ResultsFolder:
    return ResultsFolder(tmp_path / "results")


@pytest.mark.parametrize(("sampler", "slots"), crossed(["tpe", "random"], [1, 3]))
def test_each_cell_searches_then_confirms_its_best(folder: ResultsFolder, sampler: str, slots: int) -> None:
    workers = start(folder, study(sampler))
    assert workers.run(slots)
    found = records(folder)
    assert max(workers.trained.values()) == 1
    for cell in ("digits-gcn-none-L2-20k", "digits-gcn-boosting-L2-20k"):
        search = [record for record in found.values() if (record.cell, record.phase) == (cell, "search")]
        confirm = [record for record in found.values() if (record.cell, record.phase) == (cell, "confirm")]
        assert sorted(record.number for record in search) == list(range(8))
        complete = [record for record in search if record.status == "finished" or record.num_epochs >= 9]
        best = max(complete, key=lambda record: record.val_metric)
        assert {record.chosen_from for record in confirm} == {best.key}
        assert sorted(record.seed for record in confirm) == [41, 95]
        assert {record.learning_rate for record in confirm} == {best.learning_rate}
        assert all(record.test_metric is None for record in search)
        assert all(record.test_metric is not None for record in confirm)
    vanilla = [record for record in found.values() if record.placement == "none"]
    assert all(record.sigma_m is None and record.num_clusters is None for record in vanilla)
    assert not list(folder.live.iterdir())


def test_pruning_equals_a_lone_asha_of_each_cell(folder: ResultsFolder) -> None:
    """Interleaved with another cell's trials, a cell decides as Ray's ASHA does on its trials alone."""
    seen: list[tuple[str, str, int, float]] = []

    def watched(assignment: TrialAssignment, epoch: int) -> float:
        value = accuracy(assignment, epoch)
        if assignment.phase == "search":
            seen.append((assignment.cell, assignment.key, epoch, value))
        return value

    assert start(folder, study(), curve=watched).run(slots=3)
    ended = records(folder)
    for cell in {cell for cell, *_ in seen}:
        lone = AsyncHyperBandScheduler(
            time_attr="epoch", metric="m", mode="max", max_t=9, grace_period=1, reduction_factor=3
        )
        for _, key, epoch, value in (entry for entry in seen if entry[0] == cell):
            trial = type("Trial", (), {"trial_id": key})
            if epoch == 1:
                lone.on_trial_add(None, trial)
            decision = lone.on_trial_result(None, trial, {"epoch": epoch, "m": value})
            was_pruned = ended[key].status == "pruned" and ended[key].num_epochs == epoch
            assert was_pruned == (decision == TrialScheduler.STOP and epoch < 9)
    assert Counter(record.status for record in ended.values())["pruned"] > 0


@pytest.mark.parametrize(
    ("sampler", "killed_after", "dies_before_report"),
    [
        ("random", 7, False),
        ("tpe", 20, True),
        pytest.param("tpe", 2, True, marks=pytest.mark.slow),
        pytest.param("random", 33, True, marks=pytest.mark.slow),
        pytest.param("tpe", 60, False, marks=pytest.mark.slow),
    ],
)
def test_a_killed_study_ends_as_an_undisturbed_one(
    tmp_path: Path, sampler: str, killed_after: int, dies_before_report: bool
) -> None:
    undisturbed, disturbed = ResultsFolder(tmp_path / "a"), ResultsFolder(tmp_path / "b")
    assert start(undisturbed, study(sampler)).run()
    trained: Counter[tuple[str, int]] = Counter()
    workers = start(disturbed, study(sampler))
    while not workers.run(epochs=killed_after, dies_before_report=dies_before_report):
        trained.update(workers.trained)
        workers = start(disturbed, study(sampler))
    trained.update(workers.trained)
    assert max(trained.values()) == 1, "an epoch that was on disk was trained again"
    expected = {key: without_times(record) for key, record in records(undisturbed).items()}
    found = {key: without_times(record) for key, record in records(disturbed).items()}
    assert {key: (r.status, r.reason, r.epochs) for key, r in found.items()} == {
        key: (r.status, r.reason, r.epochs) for key, r in expected.items()
    }


def test_a_study_that_was_run_before_leases_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    """Its journal was ``journal.jsonl``, and a trial had one attempt, directly in ``live/KEY``."""
    undisturbed, disturbed = ResultsFolder(tmp_path / "a"), ResultsFolder(tmp_path / "b")
    assert start(undisturbed, study()).run()
    before = start(disturbed, study())
    assert not before.run(slots=2, epochs=20)
    unfinished = disturbed.live_keys()
    assert unfinished
    for file in list(disturbed.live.rglob("*.parquet")):
        file.rename(file.parent.parent / file.name)
        file.parent.rmdir()
    (disturbed.journal / "000001.jsonl").rename(disturbed.root / "journal.jsonl")
    disturbed.journal.rmdir()
    assert list(Journal(disturbed.journal).entries())  # as status and best read it
    adopt_nameless_attempts(disturbed)
    assert [disturbed.attempts(key) for key in unfinished] == [["000000-001"]] * len(unfinished)
    workers = start(disturbed, study())
    assert workers.run()
    assert max((before.trained + workers.trained).values()) == 1, "an epoch that was on disk was trained again"
    assert {key: (r.status, r.epochs) for key, r in records(disturbed).items()} == {
        key: (r.status, r.epochs) for key, r in records(undisturbed).items()
    }
    assert not (disturbed.root / "journal.jsonl").exists()  # taken over, as every earlier run's


@pytest.mark.parametrize(
    ("killed_after", "dies_before_report"), [(7, False), pytest.param(20, True, marks=pytest.mark.slow)]
)
def test_a_study_that_is_compacted_between_its_starts_ends_as_an_undisturbed_one(
    tmp_path: Path, killed_after: int, dies_before_report: bool
) -> None:
    undisturbed, disturbed = ResultsFolder(tmp_path / "a"), ResultsFolder(tmp_path / "b")
    assert start(undisturbed, study()).run()
    while not start(disturbed, study()).run(epochs=killed_after, dies_before_report=dies_before_report):
        compact(disturbed.root)
    compact(disturbed.root)
    assert [path.name for path in disturbed.records.iterdir()] == [COMPACTED_FILE]
    expected = {key: (r.status, r.reason, r.epochs) for key, r in records(undisturbed).items()}
    assert {key: (r.status, r.reason, r.epochs) for key, r in records(disturbed).items()} == expected
    assert start(disturbed, study()).coordinator.done


def test_starting_a_finished_study_again_runs_nothing(folder: ResultsFolder) -> None:
    assert start(folder, study()).run()
    before = {path: path.stat().st_mtime_ns for path in folder.records.iterdir()}
    again = start(folder, study())
    assert again.coordinator.done
    assert again.run()
    assert not again.trained
    assert before == {path: path.stat().st_mtime_ns for path in folder.records.iterdir()}


def test_a_configuration_sampled_again_counts_and_is_not_trained_again(folder: ResultsFolder) -> None:
    spec = read_study("""
name: repeated
arms: {dataset: digits, backbone: gcn, placement: boosting, budget: 20000, layers: 2}
space: {num_clusters: {choice: [2, 3]}}
fixed: {max_epochs: 2}
search: {sampler: random, trials: 9}
confirm: {seeds: [41]}
""")
    workers = start(folder, spec)
    assert workers.run(slots=2)
    (run,) = workers.coordinator.cells.values()
    assert run.asked == 9
    searched = [record for record in records(folder).values() if record.phase == "search"]
    assert sorted(record.num_clusters for record in searched) == [2, 3]
    assert run.repeated == 7
    assert len(list(Journal(folder.journal).entries())) == 9
    assert start(folder, spec).coordinator.done


def test_a_grid_trains_every_combination_once(folder: ResultsFolder) -> None:
    spec = read_study("""
name: grid
arms: {dataset: digits, backbone: gcn, placement: [none, boosting], budget: 20000, layers: 2}
space: {num_clusters: {choice: [2, 4]}, sigma_m: {choice: [0.5, 1.0, 2.0]}, batch_size: {choice: [32, 64]}}
fixed: {max_epochs: 1}
search: {sampler: grid}
confirm: {seeds: [41]}
""")
    assert start(folder, spec).run(slots=2)
    searched = [record for record in records(folder).values() if record.phase == "search"]
    combinations = Counter((r.placement, r.num_clusters, r.sigma_m, r.batch_size) for r in searched)
    assert set(combinations.values()) == {1}
    assert Counter(r.placement for r in searched) == {"none": 2, "boosting": 12}


def test_a_diverged_trial_is_on_record_and_never_chosen(folder: ResultsFolder) -> None:
    best_so_far: dict[str, float] = {}

    def half_diverge(assignment: TrialAssignment, epoch: int) -> float:
        value = accuracy(assignment, epoch)
        best_so_far[assignment.key] = value
        return float("nan") if assignment.phase == "search" and assignment.number in (0, 3) and epoch == 1 else value

    workers = start(folder, study(), curve=half_diverge)
    assert workers.run()
    found = records(folder)
    diverged = [record for record in found.values() if record.status == "diverged"]
    assert Counter(record.number for record in diverged) == {0: 2, 3: 2}
    assert {record.reason for record in diverged} == {"epoch 1: loss nan in training"}
    assert not {record.chosen_from for record in found.values()} & {record.key for record in diverged}
    assert start(folder, study()).coordinator.done, "a diverged trial is never tried again"


def test_a_cell_in_which_all_diverges_confirms_nothing(folder: ResultsFolder) -> None:
    workers = start(
        folder,
        study(),
        curve=lambda assignment, epoch: float("nan") if assignment.config.model.gate else accuracy(assignment, epoch),
    )
    assert workers.run()
    confirmed = {record.cell for record in records(folder).values() if record.phase == "confirm"}
    assert confirmed == {"digits-gcn-none-L2-20k"}


def test_a_failed_trial_is_tried_again_at_the_next_start_from_where_it_was(folder: ResultsFolder) -> None:
    workers = start(folder, study())
    first = workers.coordinator.next_trial()
    assert first is not None
    workers.epoch(first)
    record = workers.coordinator.end(first.key, error="its worker was lost 3 times")
    assert (record.status, record.reason, record.num_epochs) == ("failed", "its worker was lost 3 times", 1)
    again = start(folder, study())
    assert again.run()
    assert again.trained[first.key, 1] == 0
    assert records(folder)[first.key].status in ("finished", "pruned")


def test_an_unfinished_trial_of_a_newer_version_is_refused_and_kept(folder: ResultsFolder) -> None:
    workers = start(folder, study())
    assert not workers.run(epochs=1)
    (path,) = folder.live.rglob("record.parquet")
    newer = {"bimp_record_schema": str(SCHEMA_VERSION + 1)}
    pq.write_table(pq.read_table(path).replace_schema_metadata(newer), path)
    with pytest.raises(RecordError, match=rf"record\.parquet: found record schema {SCHEMA_VERSION + 1}, expected"):
        start(folder, study())
    assert path.exists()


def test_a_study_without_search_confirms_its_one_configuration(folder: ResultsFolder) -> None:
    spec = read_study("""
name: rows
arms: {dataset: digits, backbone: [gcn, graphsage], hidden_dim: 10, layers: 2}
fixed: {max_epochs: 2}
confirm: {seeds: [41, 95, 12]}
""")
    assert start(folder, spec).run(slots=2)
    found = records(folder).values()
    assert Counter((r.cell, r.phase) for r in found) == {
        ("digits-gcn-none-L2-h10", "confirm"): 3,
        ("digits-graphsage-none-L2-h10", "confirm"): 3,
    }
    assert {(r.chosen_from, r.budget, r.hidden_dim) for r in found} == {(None, None, 10)}


def test_other_data_under_an_old_journal_is_refused(folder: ResultsFolder) -> None:
    start(folder, study()).run(epochs=5)
    with pytest.raises(JournalError, match=r"jsonl:1: key: found \w+, expected \w+, .* another study or to other data"):
        start(folder, study(), fingerprint="other")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("learning_rate", "0.001", "a number from 0.0001 to 0.01"),
        ("learning_rate", True, "a number from 0.0001 to 0.01"),
        ("learning_rate", 0, "a number from 0.0001 to 0.01"),
        ("learning_rate", None, "a number from 0.0001 to 0.01"),
        ("num_clusters", 2.5, "a whole number from 2 to 12"),
        pytest.param("num_clusters", 10**400, "a whole number from 2 to 12", id="huge"),
        ("sigma_m", 10.5, "a number from 0.1 to 10.0"),
    ],
)
def test_a_value_in_the_journal_that_no_sampler_of_the_cell_gives_is_named(
    folder: ResultsFolder, key: str, value: object, expected: str
) -> None:
    start(folder, study()).run(epochs=20)
    (journal,) = folder.journal.iterdir()
    lines = journal.read_text().splitlines()
    number, line = next((number, line) for number, line in enumerate(lines, start=1) if key in line)
    entry = json.loads(line)
    entry["values"][key] = value
    lines[number - 1] = json.dumps(entry)
    journal.write_text("\n".join((*lines, "")))
    with pytest.raises(
        JournalError, match=rf"jsonl:{number}: values.{key}: found .*, expected {re.escape(expected)}; put"
    ):
        start(folder, study())


def test_a_cell_that_searches_nothing_now_names_the_line_of_its_search(folder: ResultsFolder) -> None:
    start(folder, study()).run(epochs=5)
    space, rest = STUDY[STUDY.index("space:") :].split("fixed:")
    search = next(line for line in rest.splitlines() if line.startswith("search:"))
    given = "max_epochs: 9, learning_rate: 0.001, num_clusters: 8, sigma_m: 1.0"
    without = STUDY.replace(space, "").replace(search, "").replace("max_epochs: 9", given)
    with pytest.raises(JournalError, match=r"jsonl:1: cell: found [\w-]+, which searches nothing now; give the study"):
        start(folder, read_study(without))


def test_a_cut_last_line_of_the_journal_is_a_trial_that_never_began(folder: ResultsFolder) -> None:
    start(folder, study()).run(epochs=5)
    (journal,) = folder.journal.iterdir()
    journal.write_bytes(journal.read_bytes()[:-9])
    workers = start(folder, study())
    assert workers.run()
    assert len(list(Journal(folder.journal).entries())) == 16


def test_an_extended_search_that_chooses_anew_retires_the_old_confirm_trials(folder: ResultsFolder) -> None:
    assert start(folder, study(**{"trials: 8": "trials: 4"})).run()
    before = {key: r for key, r in records(folder).items() if r.phase == "confirm"}
    workers = start(folder, study(**{"trials: 8": "trials: 30"}))
    assert workers.run(slots=2)
    after = {key: r for key, r in records(folder).items() if r.phase == "confirm"}
    assert before.keys() <= after.keys()
    for cell in {record.cell for record in after.values()}:
        in_table = [r for r in after.values() if r.cell == cell and r.status == "finished"]
        assert len({r.chosen_from for r in in_table}) == 1
        assert sorted(r.seed for r in in_table) == [41, 95]
    assert {r.status for r in after.values()} == {"finished", "superseded"}
    reasons = {r.reason for r in after.values() if r.status == "superseded"}
    assert reasons == {"its search, extended or with failed trials tried again, chose another configuration"}
    view = workers.coordinator.view(2)
    assert (view.ended, view.total) == (64, 64)


@pytest.mark.parametrize(
    "left",
    [*(pytest.param(each, marks=pytest.mark.slow) for each in ("failed", "under way")), "failed and under way again"],
)
def test_confirm_trials_that_had_not_ended_are_retired_too(folder: ResultsFolder, left: str) -> None:
    """One that failed, or was under way when the run was stopped, is neither missing nor to be gone on with."""
    workers = start(folder, study(**{"trials: 8": "trials: 4"}))
    unfinished = set()
    while (trial := workers.begin()) is not None:
        if trial.phase == "confirm" and trial.config.seed == 41:
            unfinished.add(trial.key)
            workers.epoch(trial)
            if left != "under way":
                workers.coordinator.end(trial.key, "its worker was lost")
        else:
            while workers.epoch(trial):
                pass
    if left == "failed and under way again":
        again = start(folder, study(**{"trials: 8": "trials: 4"}))
        for _ in unfinished:
            trial = again.begin()
            assert trial is not None
            assert trial.key in unfinished
            again.epoch(trial)
    assert set(folder.live_keys()) == unfinished
    workers = start(folder, study(**{"trials: 8": "trials: 30"}))
    assert workers.run(slots=2)
    after = records(folder)
    assert {after[key].status for key in unfinished} == {"superseded"}
    epochs = 2 if left == "failed and under way again" else 1
    assert {after[key].num_epochs for key in unfinished} == {epochs}
    assert folder.live_keys() == []
    confirmed = [r for r in after.values() if r.phase == "confirm" and r.status != "superseded"]
    assert sorted(r.seed for r in confirmed) == [41, 41, 95, 95]
    assert start(folder, study(**{"trials: 8": "trials: 30"})).coordinator.done


def test_other_data_retires_the_confirm_trials_of_a_cell_that_searches_nothing(folder: ResultsFolder) -> None:
    spec = read_study(
        "{name: one, arms: {dataset: digits, backbone: gcn, hidden_dim: 10, layers: 2}, fixed: {max_epochs: 1}}"
    )
    assert start(folder, spec).run()
    before = records(folder).keys()
    again = start(folder, spec, fingerprint="other")
    told = "the data of its cell, or the width that its budget gives, is another now"
    assert again.coordinator.retired == {told: len(before)}
    assert again.run()
    after = records(folder)
    assert {r.data_fingerprint for r in after.values() if r.status == "finished"} == {"other"}
    assert {(after[key].status, after[key].reason) for key in before} == {("superseded", told)}


def test_data_that_a_search_refuses_retires_nothing(folder: ResultsFolder) -> None:
    """Prepared again as it was, the study goes on: the vanilla cell, which searches nothing, comes first."""
    of_gate = study(**{"  learning_rate: {log_uniform: [1.0e-4, 1.0e-2]}\n": ""})
    assert start(folder, of_gate).run()
    before = records(folder)
    assert Counter(r.cell for r in before.values() if r.number is None)["digits-gcn-none-L2-20k"] == 2
    with pytest.raises(JournalError, match="to other data"):
        start(folder, of_gate, fingerprint="other")
    assert records(folder) == before
    assert start(folder, of_gate).coordinator.done


def test_trials_that_nobody_runs_any_more_come_again_first_and_in_their_order(folder: ResultsFolder) -> None:
    coordinator = start(folder, study()).coordinator
    begun = [coordinator.next_trial() for _ in range(3)]
    assert all(begun)
    coordinator.again(begun[1].key, alone="host")
    coordinator.next_trial()
    coordinator.take_back()
    assert not coordinator.live
    again = [coordinator.next_trial() for _ in range(4)]
    # The second had lost its place to the others: it was handed out last.
    assert [trial.key for trial in again[:3]] == [begun[0].key, begun[2].key, begun[1].key]
    assert [trial.alone for trial in again[:3]] == [None, None, "host"]
    assert {trial.attempt for trial in again[:3]}.isdisjoint(trial.attempt for trial in begun)
    assert again[3].key not in {trial.key for trial in begun}


def test_two_cells_that_choose_the_same_configuration_have_a_trial_each(folder: ResultsFolder) -> None:
    """Both cells may choose placement none, and [2] gates what boosting gates: no trial belongs to two rows."""
    spec = read_study("""
name: twins
arms: {dataset: digits, backbone: gcn, gate: [bilateral, uniform], num_clusters: 3, hidden_dim: 8, layers: 2}
space: {placement: {choice: [boosting, none]}}
fixed: {max_epochs: 2}
search: {sampler: grid}
confirm: {seeds: [1]}
""")
    workers = start(
        folder, spec, curve=lambda assignment, epoch: 0.5 if assignment.config.model.placement == "none" else 0.1
    )
    assert workers.run(slots=3)
    found = records(folder).values()
    assert Counter((r.cell, r.phase, r.placement) for r in found) == {
        (cell, phase, placement): 1
        for cell in ("digits-gcn-L2-h8-K3", "digits-gcn-L2-h8-uniform-K3")
        for phase, placement in (("search", "boosting"), ("search", "none"), ("confirm", "none"))
    }
    assert start(folder, spec).coordinator.done


def test_placements_of_two_names_that_gate_the_same_layers_run_side_by_side(folder: ResultsFolder) -> None:
    spec = read_study("""
name: names
arms: {dataset: digits, backbone: gcn, placement: [boosting, [2]], num_clusters: 3, budget: [2000, 2001], layers: 2}
fixed: {max_epochs: 1}
confirm: {seeds: [1]}
""")
    assert start(folder, spec).run(slots=4)
    assert len(records(folder)) == 4


def test_a_study_in_which_a_cell_finds_nothing_ends_with_all_its_trials(folder: ResultsFolder) -> None:
    """Of vanilla cells all 8 search trials diverge: 2 confirm trials never come, and nothing is left to wait for."""
    spec = study()
    workers = start(folder, spec, curve=lambda a, e: math.nan if a.config.model.placement == "none" else accuracy(a, e))
    assert workers.run(slots=2)
    seen = workers.coordinator.view(2)
    assert (seen.ended, seen.total) == (8 + 8 + 2, 18)
    assert "left" not in plain_line(seen)
