"""What becomes of trials whose workers vanish, whose memory runs out, or whose study is to end; no Ray, no training."""

from __future__ import annotations

import errno
import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from made_trials import epoch

from study.assignment import TrialAssignment
from study.attempts import newest_record
from study.cell_run import PlannedTrial
from study.cluster import Slots
from study.coordinator import StudyCoordinator
from study.dispatch import Dispatch
from study.growing_record import initial_record
from study.handed_out import HELD_BACK_S
from study.interruption import Interruption
from study.journal import Journal
from study.lease import LeaseLostError
from study.plan import plan
from study.pool import Pool
from study.records import TrialRecord, read_records, write_record
from study.results import ResultsFolder
from study.spec import ResourcesSpec, read_study
from study.store import PatientStore, StoreNews
from study.tune_bridge import CoordinatedScheduler, FollowsCluster
from study.whole_files import remove_folder

STUDY = """
name: fake
arms: {dataset: digits, backbone: gcn, hidden_dim: 6, layers: 2}
space: {learning_rate: {log_uniform: [1.0e-4, 1.0e-2]}}
fixed: {max_epochs: 4, batch_size: 32}
search: {sampler: random, trials: 6}
confirm: {seeds: [41, 95]}
"""
LAST = 4


@dataclass
class Cluster:
    """Stands for Ray, Tune and workers: begins what it is given, and tells what a test lets happen."""

    folder: ResultsFolder
    slots: Slots = field(default_factory=lambda: Slots(total=4, on_a_node=2, on_a_gpu=1))
    now: float = 0.0
    told: list[str] = field(default_factory=list)
    interruption: Interruption = field(default_factory=Interruption)
    study: str = STUDY

    def __post_init__(self) -> None:
        self.folder.create()
        spec = read_study(self.study)
        self.coordinator = StudyCoordinator(spec, plan(spec), self.folder, {"digits": "f"}, self._assignment)
        self.dispatch = Dispatch(
            self.coordinator, self.slots, StoreNews(self.folder, self.told.append), self.interruption, lambda: self.now
        )

    def _assignment(self, trial: PlannedTrial) -> TrialAssignment:
        given = {name: getattr(trial, name) for name in PlannedTrial.__dataclass_fields__}
        return TrialAssignment(
            **given,
            study="fake",
            data_fingerprint="f",
            data_root="nowhere",
            results=str(self.folder.root),
            threads=1,
            use_gpu=False,
            git_commit=None,
            git_dirty=None,
        )

    def begin(self) -> TrialAssignment | None:
        assignment = self.dispatch.next_trial()
        if assignment is not None:
            self.dispatch.started(assignment.key)
        return assignment

    def begin_all(self) -> list[TrialAssignment]:
        return list(iter(self.begin, None))

    def epoch(self, assignment: TrialAssignment) -> bool:
        """One epoch on disk and reported; whether the worker goes on."""
        path = self.folder.live_record(assignment.key, assignment.attempt)
        record = newest_record(self.folder, assignment.key) or initial_record(assignment, "none", params=1)
        number = record.num_epochs + 1
        record = replace(record, epochs=(*record.epochs, epoch(number)), val_metric=0.5)
        write_record(record, path)
        return self.dispatch.reported(assignment.key, {"epoch": number, "val_metric": 0.5, "ended": number == LAST})

    def finish(self, assignment: TrialAssignment) -> None:
        """All epochs that are left, the worker's last word, and its end."""
        while self.epochs(assignment) < LAST:
            assert self.epoch(assignment)
        path = self.folder.live_record(assignment.key, assignment.attempt)
        record = newest_record(self.folder, assignment.key)
        assert record is not None
        sealed = record.sealed("finished", "max_epochs", 0.0)
        write_record(replace(sealed, test_metric=0.5 if assignment.phase == "confirm" else None), path)
        self.dispatch.ended(assignment.key)

    def epochs(self, assignment: TrialAssignment) -> int:
        record = newest_record(self.folder, assignment.key)
        return 0 if record is None else record.num_epochs

    def run_out(self, assignment: TrialAssignment, place: str = "host") -> None:
        """Its worker says that memory ran out, and ends."""
        assert not self.dispatch.reported(assignment.key, {"out_of_memory": place, "cause": "MemoryError"})
        self.dispatch.ended(assignment.key)

    def records(self) -> dict[str, TrialRecord]:
        return {record.key: record for record in read_records(self.folder.records)}

    def finish_all_but(self, waiting: TrialAssignment) -> None:
        """All that can end while ``waiting`` has no worker."""
        while begun := self.begin_all():
            for assignment in begun:
                assert assignment.key != waiting.key
                self.finish(assignment)

    def finish_all(self) -> None:
        while not self.dispatch.finished:
            begun = self.begin_all()
            assert begun, "nothing is under way, and nothing comes"
            for assignment in begun:
                self.finish(assignment)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(ResultsFolder(tmp_path))


def begun(cluster: Cluster) -> TrialAssignment:
    assignment = cluster.begin()
    assert assignment is not None
    return assignment


def test_every_slot_is_filled_and_the_study_ends(cluster: Cluster) -> None:
    assert len(cluster.begin_all()) == 4
    for key in list(cluster.coordinator.live):
        cluster.finish(cluster.coordinator.live[key])
    cluster.finish_all()
    assert [record.status for record in cluster.records().values()] == ["finished"] * 8


def test_the_log_tells_how_each_trial_ended_and_what_its_worker_said(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="study")
    trial = begun(cluster)
    line = {"level": logging.WARNING, "time": 12.5, "node": "node-3", "message": "it is hot here"}
    epoch = {"epoch": 1, "val_metric": 0.5, "ended": False}
    assert cluster.epoch(trial)
    assert cluster.dispatch.reported(trial.key, {**epoch, "log": [line]})
    cluster.finish(trial)
    *_, said, ended = (record.__dict__ for record in caplog.records)
    assert (said["name"], said["message"], said["node"]) == ("study.worker", "it is hot here", "node-3")
    assert said["trial"] == ended["trial"] == trial.key
    assert ended["event"] == "finished"
    assert ended["message"].endswith(f"search): finished (max_epochs) after {LAST} epochs and 0.0 s of training")


@pytest.mark.parametrize(("place", "slots_taken"), [("host", 2), ("gpu", 1)])
def test_a_trial_that_ran_out_of_memory_comes_again_alone_from_where_it_was(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, place: str, slots_taken: int
) -> None:
    first, *others = cluster.begin_all()
    assert cluster.epoch(first)
    cluster.run_out(first, place)
    (line,) = caplog.messages
    assert line.startswith(f"trial {first.key} ({first.cell}, search): out of {'GPU' if place == 'gpu' else place}")
    assert "it goes on from its last checkpoint" in line

    again = cluster.dispatch.next_trial()
    assert again == replace(first, alone=place, attempt="000001-002")
    # Until a worker has it, nothing else begins: it would take a part of what the trial waits for.
    cluster.finish(others[0])
    cluster.finish(others[1])
    assert cluster.begin() is None
    cluster.dispatch.started(first.key)
    assert len(cluster.begin_all()) == 4 - 1 - slots_taken
    assert cluster.epoch(again)
    assert cluster.epochs(again) == 2
    for key in list(cluster.coordinator.live):
        cluster.finish(cluster.coordinator.live[key])
    cluster.finish_all()
    assert [record.status for record in cluster.records().values()] == ["finished"] * 8


def test_a_trial_that_waits_for_a_node_of_its_own_holds_the_others_back_for_ten_minutes(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, *_ = cluster.begin_all()
    cluster.run_out(first)
    assert cluster.dispatch.next_trial() is not None
    cluster.finish(second)
    cluster.now = HELD_BACK_S
    assert cluster.begin() is None
    cluster.now += 1
    cluster.finish(cluster.coordinator.live[next(key for key in cluster.coordinator.live if key != first.key)])
    assert cluster.begin() is not None
    assert caplog.messages[-1].endswith("still waits for a node to itself; the others wait for it no longer")


@pytest.mark.parametrize(
    ("places", "tries"),
    [(("host", "host"), 2), (("gpu", "gpu"), 2), (("host", "gpu"), 2), (("gpu", "host", "host"), 3)],
)
def test_memory_that_runs_out_under_a_trial_alone_fails_it(
    cluster: Cluster, places: tuple[str, ...], tries: int
) -> None:
    """Who had a node to itself had its GPUs too; who had a GPU alone may still get the node."""
    assert tries == len(places)
    first = begun(cluster)
    for place in places:
        assert first.key not in cluster.records()
        if place == "host":
            cluster.dispatch.lost_to_memory(first.key, "OutOfMemoryError: 1 worker was killed")
            cluster.dispatch.ended(first.key, lost=True)
        else:
            cluster.run_out(first, place)
        if first.key in cluster.coordinator.live:
            pytest.fail("its worker is gone")
        if first.key not in cluster.records():
            assert begun(cluster).key == first.key
    record = cluster.records()[first.key]
    assert record.status == "failed"
    assert record.reason is not None
    assert "what would help: a smaller batch_size (here 32)" in record.reason
    cluster.finish_all()
    assert len(cluster.records()) == 8


def test_a_lost_worker_is_replaced_twice_the_second_time_alone(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    first = begun(cluster)
    for alone, attempt in ((None, "000001-002"), ("host", "000001-003")):
        cluster.dispatch.ended(first.key, lost=True)
        assert begun(cluster) == replace(first, alone=alone, attempt=attempt)
    cluster.dispatch.ended(first.key, lost=True)
    record = cluster.records()[first.key]
    assert record.status == "failed"
    assert record.reason is not None
    assert record.reason.startswith("its worker was lost 3 times, the last time with a node to itself")
    assert [line.rpartition("checkpoint")[2] for line in caplog.messages] == [
        " (try 2 of 3)",
        ", with a node to itself (try 3 of 3)",
    ]


def test_a_failure_that_no_disk_took_is_sealed_with_its_cause(cluster: Cluster) -> None:
    first = begun(cluster)
    assert not cluster.dispatch.reported(first.key, {"failed": "OSError: [Errno 28] No space left on device"})
    cluster.dispatch.ended(first.key)
    record = cluster.records()[first.key]
    assert (record.status, record.reason) == ("failed", "OSError: [Errno 28] No space left on device")


def test_a_store_that_refuses_while_what_an_ended_trial_left_is_removed_keeps_its_record(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sealed a second time, without its live record, it would have failed: an object store answers late, or not."""
    refusals = [OSError(errno.EIO, "Input/output error")]

    def removed_without_an_answer(path: Path) -> None:
        remove_folder(path)
        while refusals:
            raise refusals.pop()

    monkeypatch.setattr("study.sealing.remove_folder", removed_without_an_answer)
    cluster.coordinator.write_through(
        PatientStore(cluster.folder, StoreNews(cluster.folder, cluster.told.append), lambda _: None)
    )
    first = begun(cluster)
    cluster.finish(first)
    assert len(cluster.told) == 2
    assert cluster.records()[first.key].status == "finished"


def test_a_store_that_refuses_is_told_once_whoever_meets_it(cluster: Cluster) -> None:
    first, second, *_ = cluster.begin_all()
    for assignment in (first, second, first):
        assert cluster.dispatch.reported(assignment.key, {"store_trouble": "full"})
    assert len(cluster.told) == 1
    assert cluster.epoch(first)
    assert cluster.epoch(second)
    assert cluster.told[1:] == [f"{cluster.folder.root} can be written again; the study goes on"]


def test_a_trial_that_is_gone_is_not_waited_for_when_the_store_is_there_again(cluster: Cluster) -> None:
    first, second, *_ = cluster.begin_all()
    for assignment in (first, second):
        assert cluster.dispatch.reported(assignment.key, {"store_trouble": "full"})
    cluster.dispatch.ended(first.key)
    assert cluster.epoch(second)
    assert cluster.told[1:] == [f"{cluster.folder.root} can be written again; the study goes on"]


def test_asked_to_end_each_trial_keeps_its_epoch_and_stays_live(cluster: Cluster) -> None:
    first, second, third, fourth = cluster.begin_all()
    cluster.finish(first)
    for _ in range(LAST - 1):
        assert cluster.epoch(second)
    cluster.interruption.request()
    assert cluster.begin() is None
    assert cluster.dispatch.finished
    assert not cluster.dispatch.stops_at_once
    assert cluster.epoch(second), "at its last epoch: it ends by itself"
    cluster.finish(second)
    assert not cluster.epoch(third)
    cluster.dispatch.ended(third.key)
    assert not cluster.dispatch.stops_at_once
    assert not cluster.dispatch.reported(fourth.key, {"store_trouble": "full"})
    cluster.dispatch.ended(fourth.key)
    assert cluster.dispatch.stops_at_once
    assert not cluster.coordinator.done
    assert cluster.records().keys() == {first.key, second.key}
    assert cluster.epochs(third) == 1

    again = Cluster(cluster.folder)
    again.finish_all()
    assert [record.status for record in again.records().values()] == ["finished"] * 8
    assert len(list(Journal(again.folder.journal).entries())) == 6


def test_a_worker_that_is_lost_while_the_study_ends_is_left_for_the_next_start(cluster: Cluster) -> None:
    first, second, *_ = cluster.begin_all()
    cluster.interruption.request()
    cluster.dispatch.ended(first.key, lost=True)
    cluster.run_out(second)
    assert cluster.records() == {}
    assert {first.key, second.key} <= cluster.coordinator.live.keys()


def test_errors_of_the_study_end_it_at_once(cluster: Cluster) -> None:
    cluster.begin_all()
    cluster.dispatch.errors.append(ValueError("a record that cannot be read"))
    assert cluster.dispatch.stops_at_once


NODES = [
    {"NodeID": "large", "Alive": True, "Resources": {"CPU": 8.0, "GPU": 2.0, "memory": 1e9}},
    {"NodeID": "small", "Alive": True, "Resources": {"CPU": 4.0}},
    {"NodeID": "gone", "Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0}},
]


@pytest.mark.parametrize(
    ("resources", "total", "node", "gpu"),
    [
        # CPUs alone: 8 and 4 trials of one core.
        ({}, 12, (8, {"CPU": 8, "GPU": 2}), (1, {"CPU": 1, "GPU": 1})),
        ({"cpus_per_trial": 3}, 3, (2, {"CPU": 8, "GPU": 2}), (1, {"CPU": 3, "GPU": 1})),
        # Two GPUs with four quarters each; the other node has none.
        ({"gpus_per_trial": 0.25}, 8, (8, {"CPU": 8, "GPU": 2}), (4, {"CPU": 1, "GPU": 1})),
        # Two on each GPU, and a fifth has no place on the fifths that are left of both.
        ({"gpus_per_trial": 0.4}, 4, (4, {"CPU": 8, "GPU": 2}), (2, {"CPU": 1, "GPU": 1})),
        ({"gpus_per_trial": 1.0}, 2, (2, {"CPU": 8, "GPU": 2}), (1, {"CPU": 1, "GPU": 1})),
        ({"max_concurrent": 5}, 5, (8, {"CPU": 8, "GPU": 2}), (1, {"CPU": 1, "GPU": 1})),
        ({"cpus_per_trial": 99}, 0, (0, {"CPU": 8, "GPU": 2}), (1, {"CPU": 99, "GPU": 1})),
    ],
)
def test_the_slots_of_a_cluster(
    resources: dict[str, float], total: int, node: tuple[int, dict[str, float]], gpu: tuple[int, dict[str, float]]
) -> None:
    slots = Slots.of(NODES, ResourcesSpec(**resources))
    assert slots.total == total
    assert (slots.taken_by("host"), slots.asked_by("host")) == node
    assert (slots.taken_by("gpu"), slots.asked_by("gpu")) == gpu
    assert slots.taken_by(None) == 1
    cpus, gpus = resources.get("cpus_per_trial", 1), resources.get("gpus_per_trial", 0)
    assert slots.asked_by(None) == {"CPU": cpus, **({"GPU": gpus} if gpus else {})}


@pytest.fixture(autouse=True)
def _warnings(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="study")


class TestUnfitNodes:
    """A node that joined later and has other libraries, as the worker tells."""

    def test_the_trial_goes_elsewhere_and_so_do_all_that_follow(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        study = Cluster(ResultsFolder(tmp_path), slots=Slots(total=2, nodes=frozenset({"old", "older"})))
        first, second = study.begin_all()
        assert not study.dispatch.reported(first.key, {"unfit_node": "new", "cause": "torch 2.12.0"})
        study.dispatch.ended(first.key)
        again = study.begin()
        assert again is not None
        assert (again.key, again.avoided, again.alone) == (first.key, ("new",), None)
        # Another that was on its way there says nothing new.
        assert not study.dispatch.reported(second.key, {"unfit_node": "new", "cause": "torch 2.12.0"})
        study.dispatch.ended(second.key)
        assert [record.message for record in caplog.records] == ["node new gets no trials: torch 2.12.0"]
        assert not study.dispatch.errors
        follows = study.begin()
        assert follows is not None
        assert (follows.key, follows.avoided) == (second.key, ("new",))

    def test_where_no_node_is_left_the_study_ends_with_the_cause(self, tmp_path: Path) -> None:
        study = Cluster(ResultsFolder(tmp_path), slots=Slots(total=2, nodes=frozenset({"only"})))
        first, _ = study.begin_all()
        study.dispatch.reported(first.key, {"unfit_node": "only", "cause": "its torch finds no GPU"})
        study.dispatch.ended(first.key)
        (error,) = study.dispatch.errors
        assert str(error) == "node only, the last on which trials fit: its torch finds no GPU"
        assert study.dispatch.stops_at_once
        assert not study.records()


TOGETHER = """
name: fake
arms: {dataset: digits, backbone: [gcn, gat], hidden_dim: 6, layers: 2}
fixed: {max_epochs: 4, batch_size: 32}
confirm: {seeds: [41, 95, 12]}
resources: {seeds_together: true}
"""


@pytest.fixture
def sharing(tmp_path: Path) -> Cluster:
    return Cluster(ResultsFolder(tmp_path), study=TOGETHER)


def epoch_of_all(cluster: Cluster, trial: TrialAssignment, done: tuple[str, ...] = ()) -> bool:
    """One more epoch of each member that is under way, on disk and reported; ``done`` have their last word there."""
    epochs = {}
    for member in trial.members:
        if member.key in done or member.key not in cluster.coordinator.live:
            continue
        path = cluster.folder.live_record(member.key, member.attempt)
        record = newest_record(cluster.folder, member.key) or initial_record(member, "none", params=1)
        number = record.num_epochs + 1
        write_record(replace(record, epochs=(*record.epochs, epoch(number)), val_metric=0.5), path)
        epochs[member.key] = {"epoch": number, "val_metric": 0.5, "ended": number == LAST}
    for key in done:
        (member,) = (member for member in trial.members if member.key == key)
        record = newest_record(cluster.folder, key)
        assert record is not None
        path = cluster.folder.live_record(key, member.attempt)
        write_record(replace(record.sealed("finished", "min_lr", 0.0), test_metric=0.5), path)
    return cluster.dispatch.reported(trial.key, {"epochs": epochs, "on_record": list(done)})


def test_the_seeds_of_a_cell_take_one_slot_and_each_is_sealed_when_it_is_done(sharing: Cluster) -> None:
    first, second = sharing.begin_all()
    assert [[member.config.seed for member in trial.members] for trial in (first, second)] == [[41, 95, 12]] * 2
    assert {member.cell for member in first.members} == {first.cell}
    assert len(sharing.coordinator.live) == 6
    assert [line.goal.together for line in sharing.coordinator.view(4).cells] == [10, 10], "for the time left"
    assert {member.attempt for member in first.members} == {"000001-001"}
    for _ in range(2):
        assert epoch_of_all(sharing, first)
        assert sharing.coordinator.view(4).running == 6
    keys = tuple(member.key for member in first.members)
    assert epoch_of_all(sharing, first, done=keys[:1])
    assert [record.key for record in sharing.records().values()] == [keys[0]]
    assert set(sharing.coordinator.live) == {*keys[1:], *(member.key for member in second.members)}
    assert epoch_of_all(sharing, first, done=keys[1:])
    sharing.dispatch.ended(first.key)
    assert {key: record.status for key, record in sharing.records().items()} == dict.fromkeys(keys, "finished")
    assert sharing.dispatch.next_trial() is None
    assert not sharing.dispatch.finished


@pytest.mark.parametrize("cause", ["fault", "memory", "lost", "lost to memory", "unfit"])
def test_what_cannot_be_trained_together_is_tried_one_by_one(
    sharing: Cluster, caplog: pytest.LogCaptureFixture, cause: str
) -> None:
    first, _ = sharing.begin_all()
    assert epoch_of_all(sharing, first)
    keys = [member.key for member in first.members]
    assert epoch_of_all(sharing, first, done=(keys[1],))
    if cause == "fault":
        assert not sharing.dispatch.reported(first.key, {"came_apart": "ValueError: no"})
    elif cause == "memory":
        assert not sharing.dispatch.reported(first.key, {"came_apart": "MemoryError"})
    elif cause == "lost to memory":
        sharing.dispatch.lost_to_memory(first.key, "its worker was killed")
    elif cause == "unfit":
        assert not sharing.dispatch.reported(first.key, {"unfit_node": "abc", "cause": "no CUDA"})
    sharing.dispatch.ended(first.key, lost=cause.startswith("lost"))
    begun = sharing.begin_all()
    assert [(trial.key, trial.companions, trial.alone) for trial in begun] == [
        (keys[0], (), None),
        (keys[2], (), None),
    ]
    assert [trial.avoided for trial in begun] == [("abc",) if cause == "unfit" else ()] * 2
    assert sum("it goes on by itself" in line for line in caplog.messages) == 2
    for trial in begun:
        assert sharing.epochs(trial) == 2
        sharing.finish(trial)
    assert {key: record.status for key, record in sharing.records().items()} == dict.fromkeys(keys, "finished")


def test_at_an_end_that_is_asked_for_all_seeds_are_left_with_their_epoch(sharing: Cluster) -> None:
    first, second = sharing.begin_all()
    assert epoch_of_all(sharing, first)
    sharing.interruption.request()
    assert not epoch_of_all(sharing, first)
    sharing.dispatch.ended(first.key)
    assert not sharing.records()
    assert [sharing.epochs(member) for member in first.members] == [2, 2, 2]
    again = Cluster(sharing.folder, study=TOGETHER)
    assert [len(trial.members) for trial in again.begin_all()] == [3, 3]
    assert second.key in again.coordinator.live


def test_seeds_together_tell_of_a_store_as_one(sharing: Cluster) -> None:
    first, _ = sharing.begin_all()
    assert sharing.dispatch.reported(first.key, {"store_trouble": "full"})
    assert epoch_of_all(sharing, first)
    assert sharing.told[1:] == [f"{sharing.folder.root} can be written again; the study goes on"]


@pytest.mark.parametrize(("ended", "goes_on"), [(1, False), (2, False), (3, True)])
def test_at_an_end_that_is_asked_for_seeds_are_let_test_once_all_are_trained(
    sharing: Cluster, ended: int, goes_on: bool
) -> None:
    first, _ = sharing.begin_all()
    sharing.interruption.request()
    epochs = {
        member.key: {"epoch": 1, "val_metric": 0.5, "ended": place < ended}
        for place, member in enumerate(first.members)
    }
    assert sharing.dispatch.reported(first.key, {"epochs": epochs, "on_record": []}) is goes_on


def test_a_worker_that_ends_without_a_word_fails_all_that_were_not_done(sharing: Cluster) -> None:
    first, _ = sharing.begin_all()
    assert epoch_of_all(sharing, first)
    sharing.dispatch.ended(first.key)
    found = sharing.records()
    assert {found[member.key].status for member in first.members} == {"failed"}


def test_what_ends_the_study_while_seeds_are_sealed_is_raised_as_it_is(sharing: Cluster) -> None:
    """Tune would end with an error of its own that holds the traceback."""
    first, _ = sharing.begin_all()
    lost = LeaseLostError("another run took this folder")

    def refuse(act: object) -> None:
        raise lost

    sharing.coordinator.write_through(refuse)
    trial: Any = SimpleNamespace(config={"key": first.key})
    report = {"epochs": {}, "on_record": [first.key]}
    decision = CoordinatedScheduler(sharing.dispatch).on_trial_result(None, trial, report)
    assert (decision, sharing.dispatch.errors) == ("CONTINUE", [lost])
    assert sharing.dispatch.stops_at_once


def test_where_nodes_come_and_go_as_many_begin_as_fit_then(tmp_path: Path) -> None:
    study = Cluster(ResultsFolder(tmp_path), slots=Slots(total=2))
    first, second = study.begin_all()
    study.dispatch.resize(Slots(total=1))
    study.dispatch.ended(second.key, lost=True)
    assert study.begin() is None, "the node that is left is taken"
    study.dispatch.resize(Slots(total=3))
    begun = study.begin_all()
    assert begun[0].key == second.key
    assert len(begun) == 2
    for trial in (first, *begun):
        study.finish(trial)
    study.finish_all()
    assert study.dispatch.finished


def test_a_worker_that_was_to_start_on_a_node_that_is_lost_counts_as_no_try(tmp_path: Path) -> None:
    slots = Slots(total=2, nodes=frozenset({"a", "b"}))
    study = Cluster(ResultsFolder(tmp_path), slots=slots)
    running, waiting = study.begin(), study.dispatch.next_trial()
    assert running is not None
    for _ in range(5):
        assert waiting is not None
        study.dispatch.resize(Slots(total=1, nodes=frozenset({"a"})))
        study.dispatch.ended(waiting.key, lost=True)
        study.dispatch.resize(slots)
        waiting = study.dispatch.next_trial()
    assert waiting is not None
    assert waiting.alone is None, "a node to itself is for the last of three tries"
    study.dispatch.started(waiting.key)
    study.dispatch.resize(Slots(total=1, nodes=frozenset({"a"})))
    study.dispatch.ended(waiting.key, lost=True)  # it ran there
    assert study.records() == {}
    study.finish(running)
    again = study.begin()
    assert again is not None
    study.dispatch.ended(again.key, lost=True)
    last = study.begin()
    assert last is not None
    assert (last.key, last.alone) == (waiting.key, "host")


def test_without_a_node_one_trial_waits_for_it_so_that_tune_has_one(tmp_path: Path) -> None:
    study = Cluster(ResultsFolder(tmp_path), slots=Slots(total=2))
    lost = study.begin_all()
    study.dispatch.resize(Slots(total=0))
    for trial in lost:
        study.dispatch.ended(trial.key, lost=True)
    waiting = study.dispatch.next_trial()
    assert waiting is not None
    assert study.dispatch.next_trial() is None
    view = study.coordinator.view(0)
    assert (view.running, view.waiting) == (0, 1)


def test_a_trial_that_no_worker_has_counts_as_waiting_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "study")
    study = Cluster(ResultsFolder(tmp_path), slots=Slots(total=2))
    running, waiting = study.begin(), study.dispatch.next_trial()
    assert running is not None
    assert waiting is not None
    view = study.coordinator.view(2)
    assert (view.running, view.waiting) == (1, 1)
    for study.now in (59.0, 61.0, 200.0):
        study.dispatch.note_waiting()
    (line,) = [record for record in caplog.records if record.event == "waits"]
    assert line.trial == waiting.key
    assert line.getMessage().endswith("has waited for a worker for more than 60 s")
    study.dispatch.started(waiting.key)
    assert (study.coordinator.view(2).running, study.coordinator.view(2).waiting) == (2, 0)


LARGE_AND_SMALL = [
    {"NodeID": "large", "Alive": True, "NodeManagerAddress": "l", "Resources": {"CPU": 4.0, "GPU": 1.0}},
    {"NodeID": "small", "Alive": True, "NodeManagerAddress": "s", "Resources": {"CPU": 2.0}},
]
ONE_CPU = ResourcesSpec()


def without(*lost: str) -> list[dict[str, object]]:
    return [{**node, "Alive": node["NodeID"] not in lost} for node in LARGE_AND_SMALL]


class TestANodeOfItsOwnThatIsLost:
    """A trial waits for the largest node to itself, and that node leaves before a worker has the trial."""

    @pytest.fixture
    def study(self, tmp_path: Path) -> Cluster:
        more = STUDY.replace("trials: 6", "trials: 12")
        return Cluster(ResultsFolder(tmp_path), slots=Slots.of(LARGE_AND_SMALL, ONE_CPU), study=more)

    def waiting_for_the_large_one(self, study: Cluster) -> TrialAssignment:
        first, *_ = study.begin_all()
        study.run_out(first)
        waiting = study.dispatch.next_trial()
        assert waiting is not None
        assert (waiting.key, waiting.alone) == (first.key, "host")
        return waiting

    def test_it_is_told_of_once_and_the_others_go_on_at_once(
        self, study: Cluster, caplog: pytest.LogCaptureFixture
    ) -> None:
        waiting = self.waiting_for_the_large_one(study)
        others = [key for key in study.coordinator.live if key != waiting.key]
        assert len(others) == 5
        for key in others[:4]:
            study.dispatch.ended(key, lost=True)
        caplog.clear()
        assert study.dispatch.waits is None
        for study.now in (2.0, 4.0, 6.0, 100.0):
            study.dispatch.resize(Slots.of(without("large"), ONE_CPU))
            study.dispatch.note_waiting()
        asked = f"trial {waiting.key} ({waiting.cell}, search)"
        assert [record.getMessage() for record in caplog.records] == [
            f"{asked}: waits for a node of 4 CPUs and 1 GPU, and none here has as much; other trials go on, and so "
            "does this one once such a node joins; a new start (Ctrl-C, then the same command) does with the nodes "
            "that are there"
        ]
        assert caplog.records[0].__dict__["event"] == "waits"
        assert study.dispatch.waits == f"{asked} asks for a node of 4 CPUs and 1 GPU, and none here has as much"
        # The small node has two slots, one of them taken.
        assert len(study.begin_all()) == 1

    def test_it_goes_on_when_such_a_node_returns_and_has_it_to_itself(self, study: Cluster) -> None:
        waiting = self.waiting_for_the_large_one(study)
        running = [study.coordinator.live[key] for key in study.coordinator.live if key != waiting.key]
        study.dispatch.resize(Slots.of(without("large"), ONE_CPU))
        for trial in running:
            study.finish(trial)
        study.finish_all_but(waiting)
        assert not study.dispatch.finished
        assert study.dispatch.next_trial() is None
        study.now = 5000.0
        study.dispatch.resize(Slots.of(LARGE_AND_SMALL, ONE_CPU))
        assert study.dispatch.waits is None
        study.dispatch.started(waiting.key)
        study.finish(waiting)
        study.finish_all()
        assert [record.status for record in study.records().values()] == ["finished"] * 14

    def test_until_a_worker_has_it_on_the_node_that_returned_nothing_else_begins(self, study: Cluster) -> None:
        waiting = self.waiting_for_the_large_one(study)
        study.dispatch.resize(Slots.of(without("large"), ONE_CPU))
        for trial in [study.coordinator.live[key] for key in study.coordinator.live if key != waiting.key]:
            study.finish(trial)
        assert study.begin() is not None
        study.now = 5000.0
        study.dispatch.resize(Slots.of(LARGE_AND_SMALL, ONE_CPU))
        assert study.begin() is None
        study.dispatch.started(waiting.key)
        assert study.begin() is not None

    def test_where_no_node_at_all_is_left_the_pool_says_so_and_this_line_comes_with_the_next_small_one(
        self, study: Cluster
    ) -> None:
        waiting = self.waiting_for_the_large_one(study)
        pool = Pool(Slots.of(LARGE_AND_SMALL, ONE_CPU), ONE_CPU)
        pool.hear(without("large", "small"))
        study.dispatch.resize(pool.slots)
        assert (pool.waits is None, study.dispatch.waits) == (False, None)
        pool.hear(without("large"))
        study.dispatch.resize(pool.slots)
        assert pool.waits is None
        assert study.dispatch.waits is not None
        assert waiting.key in study.dispatch.waits

    def test_status_is_told_by_the_lease(self, study: Cluster) -> None:
        waiting = self.waiting_for_the_large_one(study)
        watch = SimpleNamespace(lost=None, nodes=without("large"))
        lease = SimpleNamespace(waits=None)
        pool = Pool(Slots.of(LARGE_AND_SMALL, ONE_CPU), ONE_CPU)
        follow = FollowsCluster(watch, pool, study.dispatch, lease)
        follow.on_step_end(1, [])
        assert f"trial {waiting.key} " in lease.waits
        watch.nodes = without()
        follow.on_step_end(2, [])
        assert lease.waits is None
