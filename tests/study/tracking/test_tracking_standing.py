"""How the study stands in MLflow: running, finished or killed, as a whole and cell by cell."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest
from made_mirrors import TRIAL, VANILLA, a_busy_folder, mirror_of, planned_cell, record, running, seal, write_plan
from read_mirrors import dump, state_of

from study.lease import Lease
from study.records import TrialRecord, write_record
from study.results import FIRST_ATTEMPT, ResultsFolder
from study.tracking.loop import MirrorThread


def marks(folder: ResultsFolder) -> dict[str, str]:
    mirror = mirror_of(folder)
    mirror.sync_folder()
    mirror.mark_as_it_stands()
    return {run: state_of(folder, run)[0] for run in ("study quickstart", "bi-GCN Digits 100k", "GCN Digits 100k")}


def searched(key: str, cell: str, **changes: Any) -> TrialRecord:
    vanilla = {**VANILLA, "gated_layers": ()} if cell == "gcn_none" else {}
    searching: dict[str, Any] = {"phase": "search", "number": 0, "chosen_from": None, "test_metric": None}
    return record(key, cell=cell, **{**vanilla, **searching, **changes})


def confirmed(key: str, cell: str, **changes: Any) -> TrialRecord:
    vanilla = {**VANILLA, "gated_layers": ()} if cell == "gcn_none" else {}
    return record(key, cell=cell, **{**vanilla, **changes})


def test_a_study_is_finished_in_mlflow_only_once_nothing_is_left(planned: ResultsFolder) -> None:
    study, gated, vanilla = "study quickstart", "bi-GCN Digits 100k", "GCN Digits 100k"
    assert set(marks(planned).values()) == {"KILLED"}
    seal(planned, searched("s0", "gcn_boosting"), confirmed("c0", "gcn_boosting"), searched("s1", "gcn_none"))
    assert marks(planned) == {study: "KILLED", gated: "FINISHED", vanilla: "KILLED"}
    seal(planned, confirmed("c1", "gcn_none"))
    assert set(marks(planned).values()) == {"FINISHED"}
    # A live record beside a sealed one of its trial is what a crash has left.
    write_record(replace(running("c1"), cell="gcn_none", **VANILLA), planned.live_record("c1", FIRST_ATTEMPT))
    assert set(marks(planned).values()) == {"FINISHED"}
    write_record(replace(running("c2"), cell="gcn_none", **VANILLA), planned.live_record("c2", FIRST_ATTEMPT))
    assert marks(planned) == {study: "KILLED", gated: "FINISHED", vanilla: "KILLED"}


def test_a_study_ends_with_its_last_trial_and_a_cell_with_its_own(planned: ResultsFolder) -> None:
    os.utime(planned.plan_file, (500.0, 500.0))
    seal(planned, searched("s0", "gcn_boosting", ended_at=1100.0), confirmed("c0", "gcn_boosting", ended_at=1200.0))
    seal(planned, searched("s1", "gcn_none", ended_at=1300.0), confirmed("c1", "gcn_none", ended_at=1250.0))
    assert set(marks(planned).values()) == {"FINISHED"}
    ends = [state_of(planned, run)[2] for run in ("study quickstart", "bi-GCN Digits 100k", "GCN Digits 100k")]
    assert ends == [1_300_000, 1_200_000, 1_300_000]


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"status": "diverged", "epochs": 1}, "FINISHED"),
        ({"status": "pruned", "epochs": 1}, "FINISHED"),
        ({"status": "pruned", "epochs": 3}, "KILLED"),
        ({"status": "finished", "epochs": 2}, "KILLED"),
    ],
    ids=["nothing to choose from", "none went all the way", "pruned at the last rung", "to be confirmed"],
)
def test_a_cell_whose_search_found_nothing_has_nothing_to_confirm(
    planned: ResultsFolder, changes: dict[str, Any], shown: str
) -> None:
    seal(planned, searched("s0", "gcn_boosting", **changes))
    assert marks(planned)["bi-GCN Digits 100k"] == shown


def test_a_record_that_cannot_be_read_leaves_the_study_unfinished(planned: ResultsFolder) -> None:
    for cell in ("gcn_boosting", "gcn_none"):
        seal(planned, searched(f"s{cell}", cell), confirmed(f"c{cell}", cell))
    planned.record("key0").write_bytes(b"PAR1 cut short")
    assert set(marks(planned).values()) == {"KILLED"}


def test_a_study_that_runs_is_marked_by_its_own_run_alone(planned: ResultsFolder) -> None:
    mirror_of(planned).begin()
    with Lease(planned):
        assert set(marks(planned).values()) == {"RUNNING"}
    assert set(marks(planned).values()) == {"KILLED"}


def test_cells_that_ended_are_finished_though_the_study_was_interrupted(folder: ResultsFolder) -> None:
    with MirrorThread(None, folder.root, done=lambda: False, ended_cells=lambda: ["gcn_none"], interval_s=3600):
        pass
    assert state_of(folder, "study quickstart")[0] == "KILLED"
    assert state_of(folder, "bi-GCN Digits 100k")[0] == "KILLED"
    assert state_of(folder, "GCN Digits 100k")[0] == "FINISHED"


def test_finishing_twice_changes_nothing(folder: ResultsFolder) -> None:
    a_busy_folder(folder)
    for _ in range(2):
        mirror = mirror_of(folder)
        mirror.sync_folder()
        mirror.finish()
        twice = dump(folder)
        assert state_of(folder, "study quickstart")[0] == "FINISHED"
        assert state_of(folder, "bi-GCN Digits 100k")[::2] == ("FINISHED", 1_800_000_301_000)
    mirror.finish()
    assert dump(folder) == twice


def test_a_study_taken_up_again_is_running(folder: ResultsFolder) -> None:
    mirror = mirror_of(folder)
    mirror.finish(complete=False)
    assert state_of(folder, "study quickstart")[0] == "KILLED"
    mirror_of(folder).begin()
    assert state_of(folder, "study quickstart")[0] == "RUNNING"
    assert state_of(folder, "GCN Digits 100k")[0] == "RUNNING"


def test_a_cell_that_an_edit_dropped_after_a_crash_does_not_run(folder: ResultsFolder) -> None:
    mirror_of(folder).begin()  # and then the driver is killed
    write_plan(folder, planned_cell("gcn_none", placement="none", gate=None, unsupervised_weight=None))
    mirror = mirror_of(folder)
    mirror.begin()
    assert state_of(folder, "bi-GCN Digits 100k")[0] == "KILLED"
    assert state_of(folder, "GCN Digits 100k")[0] == "RUNNING"
    mirror.finish()
    assert state_of(folder, "bi-GCN Digits 100k")[0] == "KILLED"
    assert state_of(folder, "GCN Digits 100k")[0] == "FINISHED"


def test_the_thread_makes_the_database_mirrors_and_finishes(folder: ResultsFolder) -> None:
    (folder.root / "mlflow.db").unlink()
    with MirrorThread(None, folder.root, interval_s=3600):
        assert (folder.root / "mlflow.db").exists()
        seal(folder, record())
    assert state_of(folder, TRIAL)[0] == "FINISHED"
    assert state_of(folder, "study quickstart")[0] == "FINISHED"


def test_a_study_that_was_left_early_is_shown_as_killed(folder: ResultsFolder) -> None:
    with MirrorThread(None, folder.root, done=lambda: False, interval_s=3600):
        pass
    assert state_of(folder, "study quickstart")[0] == "KILLED"
    with pytest.raises(KeyboardInterrupt), MirrorThread(None, folder.root, interval_s=3600):
        raise KeyboardInterrupt
    assert state_of(folder, "study quickstart")[0] == "KILLED"
