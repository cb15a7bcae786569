"""The mirror against a real MLflow database; nothing of MLflow is replaced."""

from __future__ import annotations

import json
import logging
import os
import shutil
import socket
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.faults.mirrored import Content, content
from study.compaction import compact
from study.found_study import NoStudyError
from study.lease import Lease
from study.records import EpochRecord, Status, TrialRecord, write_record
from study.results import FIRST_ATTEMPT, ResultsFolder
from study.tracking import (
    MirrorError,
    MlflowMirror,
    changes,
    default_tracking_uri,
    loop,
    masked,
    masked_text,
    ui_command,
    ui_page,
)
from study.tracking.address import CLIENT_SETTINGS, require_tracking_uri, set_client_settings
from study.tracking.content import RUN_STATUS, MetricRow, epoch_metrics, final_metrics, trial_parameters
from study.tracking.database import create_database
from study.tracking.loop import MirrorThread
from study.tracking.names import cell_names, read_plan, trial_name
from study.tracking.state import MirrorState

VANILLA: dict[str, Any] = {
    "placement": "none",
    "gate": None,
    "num_clusters": None,
    "sigma_m": None,
    "unsupervised_weight": None,
}
TABLES = ("experiments", "runs", "params", "tags", "metrics", "latest_metrics")


def planned_cell(name: str = "gcn_boosting", **changes: Any) -> dict[str, Any]:
    cell = {
        "id": name,
        "dataset": "digits",
        "dataset_title": "Digits",
        "metric": "accuracy",
        "direction": "max",
        "backbone": "gcn",
        "layers": 4,
        "budget": 100_000,
        "hidden_dim": None,
        "placement": "boosting",
        "gate": "bilateral",
        "num_clusters": None,
        "sigma_m": None,
        "unsupervised_weight": 1.0,
        "seeds": [41, 95, 12, 35],
        "folds": None,
    }
    return {**cell, **changes}


def epoch(number: int, **changes: Any) -> EpochRecord:
    values: dict[str, Any] = {
        "epoch": number,
        "learning_rate": 0.001,
        "train_loss": 2.0 / number,
        "train_unsupervised_loss": 0.5,
        "train_metric": 0.5 + number / 64,
        "val_loss": 3.0 / number,
        "val_unsupervised_loss": 0.625,
        "val_metric": 0.25 + number / 64,
        "gate_min": 0.9,
        "gate_max": 1.2,
        "gate_std": 0.05,
        "seconds": 1.5,
        "ended_at": 1_800_000_000.0 + 2 * number,
    }
    return EpochRecord(**{**values, **changes})


def record(key: str = "key0", epochs: int = 3, **changes: Any) -> TrialRecord:
    values: dict[str, Any] = {
        "key": key,
        "study": "quickstart",
        "cell": "gcn_boosting",
        "phase": "confirm",
        "status": "finished",
        "reason": "max_epochs",
        "number": None,
        "chosen_from": "key9",
        "dataset": "digits",
        "dataset_title": "Digits",
        "task": "graph_classification",
        "metric": "accuracy",
        "direction": "max",
        "backbone": "gcn",
        "layers": 4,
        "hidden_dim": 146,
        "heads": 1,
        "budget": 100_000,
        "params": 99_871,
        "placement": "boosting",
        "gated_layers": (2,),
        "gate": "bilateral",
        "num_clusters": 9,
        "sigma_m": 0.1,
        "unsupervised_weight": 1.0,
        "readout": "mean",
        "head": "mlp",
        "semantics": "paper",
        "batch_size": 128,
        "learning_rate": 0.001,
        "lr_factor": 0.5,
        "lr_patience": 10,
        "min_lr": 1e-5,
        "max_epochs": 30,
        "time_limit_s": None,
        "seed": 41,
        "fold": None,
        "train_metric": 0.75,
        "val_metric": 0.5,
        "test_metric": 0.625,
        "train_loss": 0.25,
        "val_loss": 0.375,
        "test_loss": 0.5,
        "seconds": 4.5,
        "started_at": 1_800_000_000.0,
        "ended_at": 1_800_000_000.0 + 2 * epochs + 1,
        "device": "Example Chip",
        "threads": 1,
        "git_commit": "0123abcd",
        "git_dirty": False,
        "data_fingerprint": "f00d",
        "config_json": "{}",
        "versions_json": "{}",
        "epochs": tuple(epoch(number) for number in range(1, epochs + 1)),
    }
    return TrialRecord(**{**values, **changes})


def running(key: str = "key0", epochs: int = 3) -> TrialRecord:
    unmeasured = dict.fromkeys(["train_metric", "val_metric", "test_metric", "train_loss", "val_loss", "test_loss"])
    return replace(record(key, epochs), status="running", reason=None, ended_at=None, **unmeasured)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mlflow") / "migrated.db"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CLIENT_SETTINGS.items():
            patch.setenv(name, value)
        create_database(f"sqlite:///{path}")
    return path


@pytest.fixture(autouse=True)
def settings_put_back() -> Iterator[None]:
    before = dict(os.environ)
    yield
    for name in CLIENT_SETTINGS:
        os.environ.pop(name, None)
        if name in before:
            os.environ[name] = before[name]


@pytest.fixture
def folder(tmp_path: Path, migrated: Path) -> ResultsFolder:
    results = ResultsFolder(tmp_path / "results")
    results.create()
    write_plan(results, planned_cell(), planned_cell("gcn_none", **VANILLA))
    shutil.copyfile(migrated, results.root / "mlflow.db")
    return results


def write_plan(folder: ResultsFolder, *cells: dict[str, Any], caption: str = "A demonstration") -> None:
    plan = {"format": 1, "study": "quickstart", "caption": caption, "cells": cells}
    folder.plan_file.write_text(json.dumps(plan))


def mirror_of(folder: ResultsFolder) -> MlflowMirror:
    return MlflowMirror(default_tracking_uri(folder.root), folder.root)


def seal(folder: ResultsFolder, *records: TrialRecord) -> None:
    for entry in records:
        write_record(entry, folder.record(entry.key))


def query(folder: ResultsFolder, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Read MLflow's tables past MLflow."""
    connection = sqlite3.connect(folder.root / "mlflow.db")
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def dump(folder: ResultsFolder) -> dict[str, list[tuple[Any, ...]]]:
    return {table: sorted(query(folder, f"select * from {table}"), key=repr) for table in TABLES}


def live_runs(folder: ResultsFolder) -> dict[str, str]:
    """Id by name of the runs that are not deleted."""
    return dict(query(folder, "select name, run_uuid from runs where lifecycle_stage = 'active'"))


def tags_of(folder: ResultsFolder, run: str) -> dict[str, str]:
    return dict(query(folder, "select key, value from tags where run_uuid = ?", live_runs(folder)[run]))


def parameters_of(folder: ResultsFolder, run: str) -> dict[str, str]:
    return dict(query(folder, "select key, value from params where run_uuid = ?", live_runs(folder)[run]))


def curve(folder: ResultsFolder, run: str, metric: str) -> list[tuple[int, float, int]]:
    statement = "select step, value, timestamp from metrics where run_uuid = ? and key = ? order by step, timestamp"
    return query(folder, statement, live_runs(folder)[run], metric)


def state_of(folder: ResultsFolder, run: str) -> tuple[str, int, int | None]:
    statement = "select status, start_time, end_time from runs where run_uuid = ?"
    return query(folder, statement, live_runs(folder)[run])[0]


TRIAL = "bi-GCN Digits 100k seed 41"


def test_a_study_holds_cells_and_a_cell_holds_trials(folder: ResultsFolder) -> None:
    search = record("key9", phase="search", number=7, chosen_from=None, test_metric=None, test_loss=None)
    vanilla = record("key1", cell="gcn_none", seed=95, gated_layers=(), **VANILLA)
    seal(folder, record(), search, vanilla)
    assert mirror_of(folder).sync_folder() == 3
    parents = {
        "study quickstart": None,
        "bi-GCN Digits 100k": "study quickstart",
        "GCN Digits 100k": "study quickstart",
        "bi-GCN Digits 100k seed 41": "bi-GCN Digits 100k",
        "bi-GCN Digits 100k search 7": "bi-GCN Digits 100k",
        "GCN Digits 100k seed 95": "GCN Digits 100k",
    }
    runs = live_runs(folder)
    assert set(runs) == set(parents)
    for run, parent in parents.items():
        assert tags_of(folder, run).get("mlflow.parentRunId") == (None if parent is None else runs[parent])
    assert query(folder, "select name, artifact_location from experiments where experiment_id != 0") == [
        ("quickstart", (folder.root / "mlartifacts").as_uri())
    ]
    assert tags_of(folder, "study quickstart")["mlflow.note.content"] == "A demonstration"


def test_parameters_are_those_that_apply(folder: ResultsFolder) -> None:
    seal(folder, record(), record("key1", cell="gcn_none", gated_layers=(), **VANILLA))
    mirror_of(folder).sync_folder()
    shared = {
        "dataset": "digits", "backbone": "gcn", "layers": "4", "budget": "100000", "hidden_dim": "146",
        "params": "99871", "readout": "mean", "head": "mlp", "semantics": "paper", "batch_size": "128",
        "learning_rate": "0.001", "lr_factor": "0.5", "lr_patience": "10", "min_lr": "1e-05", "max_epochs": "30",
        "seed": "41",
    }  # fmt: skip
    gated = {"placement": "boosting", "gated_layers": "2", "gate": "bilateral", "num_clusters": "9", "sigma_m": "0.1"}
    assert parameters_of(folder, TRIAL) == {**shared, **gated, "unsupervised_weight": "1.0"}
    assert parameters_of(folder, "GCN Digits 100k seed 41") == {**shared, "placement": "none"}
    assert parameters_of(folder, "bi-GCN Digits 100k") == {
        "dataset": "digits", "backbone": "gcn", "layers": "4", "budget": "100000", "placement": "boosting",
        "gate": "bilateral", "unsupervised_weight": "1.0", "seeds": "41,95,12,35",
    }  # fmt: skip


def test_heads_and_readout_are_parameters_only_where_they_exist() -> None:
    assert trial_parameters(record(heads=8))["heads"] == "8"
    assert "readout" not in trial_parameters(record(task="node_classification"))


def test_tags_are_what_a_researcher_filters_by(folder: ResultsFolder) -> None:
    seal(folder, record())
    mirror_of(folder).sync_folder()
    tags = tags_of(folder, TRIAL)
    expected = {
        "level": "trial", "trial_key": "key0", "study": "quickstart", "cell": "gcn_boosting", "phase": "confirm",
        "model": "bi-GCN", "status": "finished", "reason": "max_epochs", "chosen_from": "key9",
        "dataset": "digits", "backbone": "gcn",
        "placement": "boosting", "gate": "bilateral", "budget": "100000", "seed": "41", "git_commit": "0123abcd",
        "git_dirty": "False", "data_fingerprint": "f00d", "mlflow.source.name": "run_study.py",
        "mlflow.source.git.commit": "0123abcd",
    }  # fmt: skip
    assert expected.items() <= tags.items()
    assert not {"fold", "number"} & set(tags)


def test_curves_go_by_epoch_under_the_names_of_the_metric(folder: ResultsFolder) -> None:
    seal(folder, record())
    mirror_of(folder).sync_folder()
    assert curve(folder, TRIAL, "val_accuracy") == [
        (1, 0.265625, 1_800_000_002_000),
        (2, 0.28125, 1_800_000_004_000),
        (3, 0.296875, 1_800_000_006_000),
    ]
    assert [value for _, value, _ in curve(folder, TRIAL, "train_loss")] == [2.0, 1.0, 2.0 / 3]
    finals = {
        "train_accuracy_final": 0.75, "val_accuracy_final": 0.5, "test_accuracy": 0.625, "train_loss_final": 0.25,
        "val_loss_final": 0.375, "test_loss": 0.5, "epochs": 3.0, "seconds": 4.5,
    }  # fmt: skip
    for name, value in finals.items():
        assert curve(folder, TRIAL, name) == [(3, value, 1_800_000_007_000)]
    curves = {
        "learning_rate", "train_loss", "train_unsupervised_loss", "train_accuracy", "val_loss",
        "val_unsupervised_loss", "val_accuracy", "gate_min", "gate_max", "gate_std", "epoch_seconds",
    }  # fmt: skip
    assert {name for (name,) in query(folder, "select distinct key from metrics")} - curves - set(finals) == {
        "confirm_finished",
        *(f"{split}_accuracy_{kind}" for split in ("train", "val", "test") for kind in ("mean", "std")),
    }
    assert len(query(folder, "select * from metrics where run_uuid = ?", live_runs(folder)[TRIAL])) == 3 * 11 + 8


@given(st.lists(st.one_of(st.none(), st.floats()), min_size=1, max_size=5))
def test_a_value_that_is_not_a_number_is_no_point(values: list[float | None]) -> None:
    epochs = tuple(epoch(number, gate_std=value) for number, value in enumerate(values, start=1))
    rows = epoch_metrics(replace(record(), epochs=epochs), after=0)
    points = {row.step: row.value for row in rows if row.name == "gate_std"}
    finite = {n: v for n, v in enumerate(values, start=1) if v is not None and abs(v) < float("inf")}
    assert points == finite


def test_a_running_trial_has_no_final_metrics() -> None:
    assert final_metrics(running()) == []
    assert MetricRow("test_accuracy", 0.625, 1_800_000_007_000, 3) in final_metrics(record())


@pytest.mark.parametrize(
    ("status", "shown"),
    [("finished", "FINISHED"), ("pruned", "FINISHED"), ("diverged", "FAILED"), ("failed", "FAILED")],
)
def test_a_status_is_shown_with_the_times_of_the_record(folder: ResultsFolder, status: Any, shown: str) -> None:
    seal(folder, record(status=status))
    mirror_of(folder).sync_folder()
    assert state_of(folder, TRIAL) == (shown, 1_800_000_000_000, 1_800_000_007_000)


def a_busy_folder(folder: ResultsFolder) -> None:
    seal(
        folder,
        record(),
        record("key1", seed=95, test_metric=0.5),
        record("key2", epochs=1, status="failed", reason="out of memory\n" + "x" * 9000, seed=12),
        record("key3", epochs=150, phase="search", number=0, test_metric=None, status="pruned", reason="epoch 150"),
        record("key4", cell="gcn_none", **{**VANILLA, "gated_layers": ()}, test_metric=float("nan")),
    )
    write_record(running("key5", 2), folder.live_record("key5", FIRST_ATTEMPT))


def test_a_second_mirror_of_the_same_folder_changes_nothing(folder: ResultsFolder) -> None:
    a_busy_folder(folder)
    first = mirror_of(folder)
    assert first.sync_folder() == 6
    once = dump(folder)
    assert len(once["runs"]) == 1 + 2 + 6
    assert first.sync_folder() == 0
    assert dump(folder) == once
    second = mirror_of(folder)
    assert second.sync_folder() == 6
    assert dump(folder) == once
    for entry in (record(), running("key5", 2)):
        second.sync(entry)
    assert dump(folder) == once


def test_compacting_changes_nothing_in_the_mirror(folder: ResultsFolder) -> None:
    a_busy_folder(folder)
    write_record(running("key2", 1), folder.live_record("key2", FIRST_ATTEMPT))  # the failed one is tried again
    watching = mirror_of(folder)
    watching.sync_folder()
    once = dump(folder)
    compact(folder.root)
    assert watching.sync_folder() == 4, "all but the failed one and the live ones are in another file now"
    assert mirror_of(folder).sync_folder() == 6
    assert dump(folder) == once
    seal(folder, record(status="superseded", reason="the search was extended"))
    assert watching.sync_folder() == 1
    statement = "select s.value from tags s join tags k using (run_uuid) where s.key = 'status' and k.value = 'key0'"
    assert query(folder, statement) == [("superseded",)]


def test_records_that_are_compacted_while_the_mirror_reads_are_mirrored(
    folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal(folder, record("key0"), record("key1", seed=95))
    listed = changes.single_files

    def overtaken(place: Path) -> list[Path]:
        files = listed(place)
        monkeypatch.setattr(changes, "single_files", listed)
        compact(folder.root)
        return files

    mirror = mirror_of(folder)
    mirror.connect()
    monkeypatch.setattr(changes, "single_files", overtaken)
    assert mirror.sync_folder() == 2
    assert len(live_runs(folder)) == 1 + 2 + 2


# ---- how the study stands

GOAL = {"direction": "max", "trials": 1, "confirm_trials": 1, "max_epochs": 3, "rungs": [1, 3]}


def marks(folder: ResultsFolder) -> dict[str, str]:
    mirror = mirror_of(folder)
    mirror.sync_folder()
    mirror.mark_as_it_stands()
    return {run: state_of(folder, run)[0] for run in ("study quickstart", "bi-GCN Digits 100k", "GCN Digits 100k")}


def searched(key: str, cell: str, **changes: Any) -> TrialRecord:
    vanilla = {**VANILLA, "gated_layers": ()} if cell == "gcn_none" else {}
    searching: dict[str, Any] = {"phase": "search", "number": 0, "chosen_from": None, "test_metric": None}
    return record(key, cell=cell, **{**vanilla, **searching, **changes})


def confirmed(key: str, cell: str) -> TrialRecord:
    return record(key, cell=cell, **({**VANILLA, "gated_layers": ()} if cell == "gcn_none" else {}))


@pytest.fixture
def planned(folder: ResultsFolder) -> ResultsFolder:
    write_plan(folder, planned_cell(**GOAL), planned_cell("gcn_none", **GOAL, **VANILLA))
    return folder


def test_a_study_is_finished_in_mlflow_only_once_nothing_is_left(planned: ResultsFolder) -> None:
    study, gated, vanilla = "study quickstart", "bi-GCN Digits 100k", "GCN Digits 100k"
    assert set(marks(planned).values()) == {"KILLED"}
    seal(planned, searched("s0", "gcn_boosting"), confirmed("c0", "gcn_boosting"), searched("s1", "gcn_none"))
    assert marks(planned) == {study: "KILLED", gated: "FINISHED", vanilla: "KILLED"}
    seal(planned, confirmed("c1", "gcn_none"))
    assert set(marks(planned).values()) == {"FINISHED"}
    write_record(replace(running("c1"), cell="gcn_none", **VANILLA), planned.live_record("c1", FIRST_ATTEMPT))
    assert marks(planned) == {study: "KILLED", gated: "FINISHED", vanilla: "KILLED"}


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


# ---- tables, pictures, the page


def test_a_database_that_came_with_a_copied_folder_sends_no_file_to_the_first(
    planned: ResultsFolder, tmp_path: Path
) -> None:
    mirror_of(planned).sync_folder()
    copied = ResultsFolder(tmp_path / "copied")
    shutil.copytree(planned.root, copied.root)
    (copied.root / "page.html").write_text("a page")
    mirror = MlflowMirror(default_tracking_uri(copied.root), copied.root)
    mirror.sync_folder()
    with pytest.raises(MirrorError, match=r"came with a copied or moved folder.*remove the database"):
        mirror.sync_files()
    assert not list((planned.root / "mlartifacts").rglob("page.html"))
    bare = tmp_path / "without its database"
    shutil.copytree(copied.root, bare, ignore=shutil.ignore_patterns("mlflow.db*"))
    again = MlflowMirror(default_tracking_uri(bare), bare)
    again.sync_folder()
    assert again.sync_files() == 1
    assert list((bare / "mlartifacts").rglob("page.html"))


def artifacts(folder: ResultsFolder) -> dict[str, bytes]:
    top = folder.root / "mlartifacts" / live_runs(folder)["study quickstart"] / "artifacts"
    return {path.relative_to(top).as_posix(): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def make_files(folder: ResultsFolder) -> dict[str, bytes]:
    contents = {"tables/results.tex": b"tex", "figures/a/sigma_m.pdf": b"pdf", "page.html": b"<html>"}
    for name, text in contents.items():
        path = folder.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    (folder.root / "tables" / ".half.tmp").write_bytes(b"half")
    return contents


def test_what_aggregate_made_lies_on_the_run_of_the_study(folder: ResultsFolder) -> None:
    mirror = mirror_of(folder)
    assert mirror.sync_files() == 0
    contents = make_files(folder)
    assert mirror.sync_files() == 3
    assert artifacts(folder) == contents
    once = dump(folder)
    written = {path: path.stat().st_mtime_ns for path in (folder.root / "mlartifacts").rglob("*")}
    assert [mirror.sync_files(), mirror_of(folder).sync_files()] == [0, 0]
    assert dump(folder) == once
    assert {path: path.stat().st_mtime_ns for path in (folder.root / "mlartifacts").rglob("*")} == written


def test_what_changed_or_is_gone_is_changed_or_gone_there_and_the_rest_stays(folder: ResultsFolder) -> None:
    from mlflow import MlflowClient

    contents = make_files(folder)
    mirror_of(folder).sync_files()
    client = MlflowClient(default_tracking_uri(folder.root))
    client.log_text(live_runs(folder)["study quickstart"], "looks odd", "remarks/mine.txt")
    (folder.root / "tables" / "results.tex").write_bytes(b"other")
    shutil.rmtree(folder.root / "figures")
    assert mirror_of(folder).sync_files() == 2
    expected = {**contents, "tables/results.tex": b"other", "remarks/mine.txt": b"looks odd"}
    del expected["figures/a/sigma_m.pdf"]
    assert artifacts(folder) == expected


def test_the_thread_takes_the_files_along_at_its_end(folder: ResultsFolder) -> None:
    with MirrorThread(None, folder.root, interval_s=3600):
        contents = make_files(folder)
    assert artifacts(folder) == contents


def test_a_run_from_before_a_tag_existed_gets_it(folder: ResultsFolder) -> None:
    seal(folder, record())
    mirror_of(folder).sync_folder()
    whole = dump(folder)
    connection = sqlite3.connect(folder.root / "mlflow.db")
    with connection:
        connection.execute("delete from tags where key = 'model'")
    connection.close()
    mirror_of(folder).sync_folder()
    assert dump(folder) == whole


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


def test_a_trial_is_followed_from_its_first_epochs_to_its_end(folder: ResultsFolder) -> None:
    mirror = mirror_of(folder)
    write_record(running(epochs=3), folder.live_record("key0", FIRST_ATTEMPT))
    assert mirror.sync_folder() == 1
    assert [step for step, _, _ in curve(folder, TRIAL, "val_loss")] == [1, 2, 3]
    assert state_of(folder, TRIAL)[0] == "RUNNING"
    seal(folder, record(epochs=5))
    shutil.rmtree(folder.live_folder("key0"))
    assert mirror.sync_folder() == 1
    assert [step for step, _, _ in curve(folder, TRIAL, "val_loss")] == [1, 2, 3, 4, 5]
    assert curve(folder, TRIAL, "test_accuracy") == [(5, 0.625, 1_800_000_011_000)]
    assert state_of(folder, TRIAL)[0] == "FINISHED"
    assert len(query(folder, "select * from runs")) == 1 + 2 + 1


def test_watching_a_trial_and_mirroring_it_afterwards_give_the_same_rows(
    folder: ResultsFolder, tmp_path: Path, migrated: Path
) -> None:
    seeds = [record("key0", 3, seed=41, test_metric=0.25), record("key1", 4, seed=95, test_metric=0.75)]
    watching = mirror_of(folder)
    for epochs in (1, 2):
        watching.sync(running("key0", epochs))
    for entry in seeds:
        seal(folder, entry)
        watching.sync_folder()
    watched = {metric: curve(folder, "bi-GCN Digits 100k", metric) for metric in ("test_accuracy_mean",)}
    watched |= {name: curve(folder, TRIAL, name) for name in ("val_accuracy", "test_accuracy", "epoch_seconds")}
    shutil.copyfile(migrated, tmp_path / "again.db")
    MlflowMirror(f"sqlite:///{tmp_path / 'again.db'}", folder.root).sync_folder()
    shutil.copyfile(tmp_path / "again.db", folder.root / "mlflow.db")
    for name, rows in watched.items():
        run = "bi-GCN Digits 100k" if name == "test_accuracy_mean" else TRIAL
        assert curve(folder, run, name) == rows
    assert [value for _, value, _ in watched["test_accuracy_mean"]] == [0.25, 0.5]


def test_a_crash_before_the_state_was_written_leaves_no_second_rows(folder: ResultsFolder) -> None:
    seal(folder, record())
    mirror_of(folder).sync_folder()
    whole = dump(folder)
    trial = f"run_uuid = '{live_runs(folder)[TRIAL]}'"
    connection = sqlite3.connect(folder.root / "mlflow.db")
    with connection:
        connection.execute(f"delete from tags where {trial} and key in ('mirror_state', 'status', 'reason')")
        connection.execute(f"delete from metrics where {trial} and step = 3 and key like 'val%'")
        connection.execute(f"delete from latest_metrics where {trial} and key like 'val%'")
        connection.execute(f"update runs set status = 'RUNNING', end_time = null where {trial}")
    connection.close()
    mirror_of(folder).sync_folder()
    assert dump(folder)["metrics"] == whole["metrics"]
    assert dump(folder) == whole


def test_a_run_that_was_created_twice_is_one_again(folder: ResultsFolder) -> None:
    seal(folder, record())
    mirror = mirror_of(folder)
    mirror.sync_folder()
    kept = live_runs(folder)[TRIAL]
    same = {"level": "trial", "trial_key": "key0"}
    mirror.connect().create("trial", "a create whose answer was lost", 1_800_000_000_000, same)
    mirror_of(folder).sync_folder()
    assert set(live_runs(folder)) == {"study quickstart", "bi-GCN Digits 100k", "GCN Digits 100k", TRIAL}
    assert live_runs(folder)[TRIAL] == kept


Rebuilt = Callable[[], Content]


@pytest.fixture
def rebuilt(folder: ResultsFolder, tmp_path: Path, migrated: Path) -> Rebuilt:
    """What a mirror that sees the folder for the first time makes of it."""

    def make() -> Content:
        shutil.copyfile(migrated, tmp_path / "rebuilt.db")
        MlflowMirror(f"sqlite:///{tmp_path / 'rebuilt.db'}", folder.root).sync_folder()
        return content(tmp_path / "rebuilt.db")

    return make


def trained_again(whole: TrialRecord, after: int) -> TrialRecord:
    """The record with other clocks after so many epochs: a worker was lost, and they were trained again."""
    later = tuple(replace(entry, ended_at=entry.ended_at + 99, seconds=7.0) for entry in whole.epochs[after:])
    return replace(whole, epochs=whole.epochs[:after] + later)


def test_a_trial_taken_up_at_an_earlier_checkpoint_shows_the_epochs_of_its_record(
    folder: ResultsFolder, rebuilt: Rebuilt
) -> None:
    mirror = mirror_of(folder)
    mirror.sync(running(epochs=5))
    mirror.sync(running(epochs=3))
    ended = trained_again(record(epochs=6), after=3)
    seal(folder, ended)
    mirror.sync_folder()
    assert [(step, at) for step, _, at in curve(folder, TRIAL, "val_accuracy")] == [
        (entry.epoch, 1000 * entry.ended_at) for entry in ended.epochs
    ]
    assert content(folder.root / "mlflow.db") == rebuilt()


@pytest.mark.parametrize("first", [running(epochs=5), record(epochs=5, status="failed")], ids=["running", "failed"])
@pytest.mark.parametrize("lost", ["mirror_state", "mirror_state status reason"])
def test_a_mirror_killed_before_the_state_was_written_leaves_no_point_of_epochs_that_were_trained_again(
    folder: ResultsFolder, rebuilt: Rebuilt, first: TrialRecord, lost: str
) -> None:
    mirror_of(folder).sync(first)
    connection = sqlite3.connect(folder.root / "mlflow.db")
    with connection:
        for tag in lost.split():
            connection.execute("delete from tags where key = ? and run_uuid = ?", (tag, live_runs(folder)[TRIAL]))
    connection.close()
    seal(folder, trained_again(record(epochs=6), after=3))
    mirror_of(folder).sync_folder()
    assert [step for step, _, _ in curve(folder, TRIAL, "val_loss")] == [1, 2, 3, 4, 5, 6]
    assert content(folder.root / "mlflow.db") == rebuilt()


def test_a_mirror_killed_between_two_batches_is_completed_in_the_same_run(
    folder: ResultsFolder, rebuilt: Rebuilt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """150 epochs are four batches; the second one's answer is lost, and the process with it."""
    from mlflow import MlflowClient

    seal(folder, record(epochs=150))
    send = MlflowClient.log_batch
    batches = []

    def cut(client: MlflowClient, run_id: str, **batch: Any) -> None:
        send(client, run_id, **batch)
        batches.append(len(batch.get("metrics", ())))
        if batches.count(500) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "log_batch", cut)
        with pytest.raises(KeyboardInterrupt):
            mirror_of(folder).sync_folder()
    assert 0 < len(curve(folder, TRIAL, "learning_rate")) < 150
    begun = live_runs(folder)[TRIAL]
    mirror_of(folder).sync_folder()
    assert live_runs(folder)[TRIAL] == begun
    assert content(folder.root / "mlflow.db") == rebuilt()


def test_a_failed_trial_that_is_tried_again_keeps_no_final_values_of_the_failed_try(
    folder: ResultsFolder, rebuilt: Rebuilt
) -> None:
    mirror = mirror_of(folder)
    mirror.sync(record(epochs=2, status="failed", reason="its worker was lost"))
    mirror.sync(running(epochs=3))
    seal(folder, record(epochs=4))
    mirror.sync_folder()
    assert [step for step, _, _ in curve(folder, TRIAL, "seconds")] == [4]
    assert content(folder.root / "mlflow.db") == rebuilt()


def test_a_cell_that_confirms_another_configuration_shows_the_new_mean_alone(
    folder: ResultsFolder, rebuilt: Rebuilt
) -> None:
    """Means of 0.25 and 0.75, then of 0.5 alone: the old two would stay beside the new one, and be the latest."""
    old = [record("key0", test_metric=0.25, ended_at=1e9), record("key1", seed=95, test_metric=0.75, ended_at=2e9)]
    seal(folder, *old, record("key9", phase="search", number=7))
    mirror = mirror_of(folder)
    mirror.sync_folder()
    cell = "bi-GCN Digits 100k"
    assert [value for _, value, _ in curve(folder, cell, "test_accuracy_mean")] == [0.25, 0.5]
    seal(folder, *(replace(entry, status="superseded", reason="another one was chosen") for entry in old))
    seal(folder, record("key2", seed=12, test_metric=0.5, ended_at=3e9))
    assert mirror.sync_folder() == 3
    assert curve(folder, cell, "test_accuracy_mean") == [(1, 0.5, 3_000_000_000_000)]
    children = query(
        folder, "select count(*) from tags where key = 'mlflow.parentRunId' and value = ?", live_runs(folder)[cell]
    )
    assert children == [(4,)]
    assert content(folder.root / "mlflow.db") == rebuilt()
    once = dump(folder)
    mirror_of(folder).sync_folder()
    assert dump(folder) == once


def test_a_mirror_that_lost_its_server_reads_no_trial_again_that_arrived(folder: ResultsFolder) -> None:
    seal(folder, record(), record("key1", seed=95))
    write_record(running("key5", 2), folder.live_record("key5", FIRST_ATTEMPT))
    mirror = mirror_of(folder)
    assert mirror.sync_folder() == 3
    mirror.disconnect()
    seal(folder, record("key2", seed=12))
    assert mirror.sync_folder() == 2, "the live one and the new one"


def test_a_server_that_comes_back_with_an_older_state_gets_what_it_lost(
    folder: ResultsFolder, rebuilt: Rebuilt, tmp_path: Path
) -> None:
    seal(folder, record())
    mirror = mirror_of(folder)
    mirror.sync_folder()
    shutil.copyfile(folder.root / "mlflow.db", tmp_path / "backup.db")
    seal(folder, record("key1", seed=95))
    mirror.sync_folder()
    mirror.disconnect()
    shutil.copyfile(tmp_path / "backup.db", folder.root / "mlflow.db")
    assert mirror.sync_folder() == 1
    assert content(folder.root / "mlflow.db") == rebuilt()


def test_a_trial_that_ended_is_held_in_short(folder: ResultsFolder) -> None:
    """What a mirror holds grows with the trials by an id and three hashes each; what waits is on disk alone."""
    seal(folder, *(record(f"key{number}", seed=number) for number in range(5)))
    write_record(running("live", 2), folder.live_record("live", FIRST_ATTEMPT))
    for mirror in (mirror_of(folder), mirror_of(folder)):
        mirror.sync_folder()
        held = [run.tags.get("trial_key") for run in mirror.connect().opened if run.tags["level"] == "trial"]
        assert held in ([], ["live"])
        assert len(mirror.connect().opened) == 1 + 2 + len(held)


@pytest.mark.parametrize(
    "changed",
    [
        record(params=99_872),
        replace(record(), epochs=(epoch(1), epoch(2, val_loss=9.0), epoch(3))),
        record(epochs=2, status="pruned", reason="at the rung of epoch 2"),
    ],
    ids=["other parameters", "another value of an epoch", "epochs after the rung dropped"],
)
def test_a_record_that_denies_the_run_replaces_it(folder: ResultsFolder, changed: TrialRecord) -> None:
    mirror_of(folder).sync(running(epochs=3))
    mirror_of(folder).sync(changed)
    assert parameters_of(folder, TRIAL)["params"] == str(changed.params)
    assert [value for _, value, _ in curve(folder, TRIAL, "val_loss")] == [entry.val_loss for entry in changed.epochs]
    assert len(live_runs(folder)) == 1 + 2 + 1


def test_a_failed_trial_that_is_tried_again_runs_and_loses_its_reason(folder: ResultsFolder) -> None:
    mirror = mirror_of(folder)
    failed = record(epochs=2, status="failed", reason="its worker was lost")
    seal(folder, failed)
    write_record(running(epochs=2), folder.live_record("key0", FIRST_ATTEMPT))
    os.utime(folder.live_record("key0", FIRST_ATTEMPT), (1_000_000_000, 1_000_000_000))
    mirror.sync_folder()
    assert (state_of(folder, TRIAL)[0], tags_of(folder, TRIAL)["reason"]) == ("FAILED", "its worker was lost")
    write_record(running(epochs=3), folder.live_record("key0", FIRST_ATTEMPT))
    os.utime(folder.record("key0"), (1_000_000_000, 1_000_000_000))
    mirror.sync_folder()
    assert state_of(folder, TRIAL)[0] == "RUNNING"
    assert "reason" not in tags_of(folder, TRIAL)
    assert tags_of(folder, TRIAL)["status"] == "running"


def test_a_cell_shows_mean_and_population_std_over_its_finished_seeds(folder: ResultsFolder) -> None:
    # Means of 2, 4, 9: 2, 3, 5; population deviations 0, 1, sqrt(26 / 3).
    ended = {"key0": 30.0, "key1": 20.0, "key2": 10.0}
    values = {"key2": 2.0, "key1": 4.0, "key0": 9.0}
    seal(folder, *(record(key, test_metric=values[key], ended_at=1_800_000_000.0 + ended[key]) for key in values))
    seal(folder, record("key3", status="failed", test_metric=99.0), record("key4", phase="search", number=1))
    mirror_of(folder).sync_folder()
    cell = "bi-GCN Digits 100k"
    assert curve(folder, cell, "test_accuracy_mean") == [
        (1, 2.0, 1_800_000_010_000),
        (2, 3.0, 1_800_000_020_000),
        (3, 5.0, 1_800_000_030_000),
    ]
    assert [value for _, value, _ in curve(folder, cell, "test_accuracy_std")] == pytest.approx([0, 1, (26 / 3) ** 0.5])
    assert [value for _, value, _ in curve(folder, cell, "confirm_finished")] == [1, 2, 3]


def test_a_file_that_is_no_record_is_said_once_and_the_others_are_mirrored(
    folder: ResultsFolder, caplog: pytest.LogCaptureFixture
) -> None:
    seal(folder, record("key1"))
    folder.record("key0").write_bytes(b"PAR1 cut short")
    mirror = mirror_of(folder)
    assert [mirror.sync_folder(), mirror.sync_folder()] == [1, 0]
    told = [entry.getMessage() for entry in caplog.records if entry.name.startswith("study")]
    assert len(told) == 1
    assert str(folder.record("key0")) in told[0]


def test_what_people_added_in_mlflow_stays(folder: ResultsFolder) -> None:
    from mlflow import MlflowClient

    mirror_of(folder).sync(running())
    MlflowClient(default_tracking_uri(folder.root)).set_tag(live_runs(folder)[TRIAL], "remark", "looks odd")
    mirror_of(folder).sync(record())
    assert tags_of(folder, TRIAL)["remark"] == "looks odd"


def test_a_deleted_experiment_is_taken_back(folder: ResultsFolder) -> None:
    from mlflow import MlflowClient

    seal(folder, record())
    mirror_of(folder).sync_folder()
    client = MlflowClient(default_tracking_uri(folder.root))
    experiment = client.get_experiment_by_name("quickstart")
    assert experiment is not None
    client.delete_experiment(experiment.experiment_id)
    mirror_of(folder).sync_folder()
    assert len(live_runs(folder)) == 1 + 2 + 1


def test_a_fresh_database_is_there_whole_or_not_at_all(
    folder: ResultsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    def interrupted(tracking_uri: str) -> None:
        Path(tracking_uri.removeprefix("sqlite:///")).write_bytes(b"half a database")
        raise KeyboardInterrupt

    path = tmp_path / "elsewhere" / "mlflow.db"
    with monkeypatch.context() as patch:
        patch.setattr(mlflow, "MlflowClient", interrupted)
        with pytest.raises(KeyboardInterrupt):
            create_database(f"sqlite:///{path}")
    assert list(path.parent.iterdir()) == []
    MlflowMirror(f"sqlite:///{path}", folder.root).sync_folder()
    assert [entry.name for entry in path.parent.iterdir()] == ["mlflow.db"]


def a_refusing_uri() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://someone:hunter2@127.0.0.1:{listener.getsockname()[1]}"


def test_a_server_that_is_not_there_is_said_once_and_raises_nothing(
    folder: ResultsFolder, caplog: pytest.LogCaptureFixture
) -> None:
    seal(folder, record())
    thread = MirrorThread(a_refusing_uri(), folder.root)
    assert [thread.step(), thread.step(), thread.step()] == [False, False, False]
    told = [entry.getMessage() for entry in caplog.records]
    assert len(told) == 1
    assert "quickstart" in told[0]
    assert "http://someone:***@127.0.0.1" in told[0]
    assert "hunter2" not in caplog.text


def test_a_thread_whose_server_never_came_says_how_to_complete_the_mirror(
    folder: ResultsFolder, caplog: pytest.LogCaptureFixture
) -> None:
    thread = MirrorThread(a_refusing_uri(), folder.root)
    thread.start()
    assert thread.stop(timeout_s=30.0) is False
    assert f"python run_study.py rebuild-mlflow {folder.root}" in caplog.text
    assert "hunter2" not in caplog.text


def test_the_end_says_what_it_waits_for_and_waits_no_longer_than_it_may(
    folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_SAID_AFTER_S", 0.1)
    told: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://someone:hunter2@127.0.0.1:{silent.getsockname()[1]}"
        thread = MirrorThread(uri, folder.root, tell=told.append)
        thread.start()
        assert thread.stop(timeout_s=0.5) is False
    assert told == [
        f"the records of quickstart are complete; waiting for MLflow at {masked(uri)} to take the last of them, "
        "at most 0.5 s"
    ]


def test_the_end_says_nothing_where_it_need_not_wait(folder: ResultsFolder) -> None:
    told: list[str] = []
    with MirrorThread(None, folder.root, tell=told.append, interval_s=3600):
        pass
    assert told == []


def test_a_database_whose_server_refuses_is_said_at_once_by_its_own_error(
    folder: ResultsFolder, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg")
    uri = a_refusing_uri().replace("http://", "postgresql+psycopg://") + "/studies"

    def retried(_: str) -> None:
        raise AssertionError("this is MLflow's own way in, which tries ten times")

    monkeypatch.setattr("mlflow.store.db.utils.create_sqlalchemy_engine_with_retry", retried)
    assert MirrorThread(uri, folder.root).step() is False
    (told,) = (entry.getMessage() for entry in caplog.records)
    assert "Connection refused" in told
    assert "hunter2" not in told


def test_a_file_that_is_no_database_raises_nothing(folder: ResultsFolder, caplog: pytest.LogCaptureFixture) -> None:
    (folder.root / "mlflow.db").write_bytes(b"this is not a database" * 100)
    assert MirrorThread(None, folder.root).step() is False
    assert "file is not a database" in caplog.text


def test_a_database_that_cannot_be_made_is_made_when_it_can_be(
    folder: ResultsFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "study")
    seal(folder, record())
    (tmp_path / "blocked").write_text("a file where a folder should be")
    thread = MirrorThread(f"sqlite:///{tmp_path / 'blocked' / 'mlflow.db'}", folder.root)
    assert thread.step() is False
    (tmp_path / "blocked").unlink()
    assert thread.step() is True
    assert [entry.levelname for entry in caplog.records if entry.name.startswith("study")] == ["WARNING", "WARNING"]
    shutil.copyfile(tmp_path / "blocked" / "mlflow.db", folder.root / "mlflow.db")
    assert state_of(folder, TRIAL)[0] == "FINISHED"


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


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("sqlite:////home/me@work/mlflow.db", "sqlite:////home/me@work/mlflow.db"),
        ("http://localhost:5000", "http://localhost:5000"),
        ("https://me:secret@host:443/path", "https://me:***@host:443/path"),
        ("https://token@host", "https://***@host"),
        ("postgresql+psycopg2://me:a/b@c#d@host/db", "postgresql+psycopg2://me:***@host/db"),
        (
            "postgresql://host/db?user=me&password=secret&sslmode=require",
            "postgresql://host/db?user=me&password=***&sslmode=require",
        ),
        ("mysql://:secret@host/db", "mysql://:***@host/db"),
        ("https://host/?access_TOKEN=secret", "https://host/?access_TOKEN=***"),
    ],
)
def test_an_address_is_printed_without_its_secrets(uri: str, shown: str) -> None:
    assert masked(uri) == shown
    assert masked_text(f"cannot reach {uri} now", uri) == f"cannot reach {shown} now"


@given(st.text(alphabet=st.characters(codec="ascii", exclude_characters="?"), min_size=4))
def test_no_password_survives(password: str) -> None:
    assert masked(f"postgresql://me:{password}@host/db") == "postgresql://me:***@host/db"


def test_the_pages_open_with_one_command(tmp_path: Path) -> None:
    command = ui_command(f"sqlite:///{tmp_path}/my results/mlflow.db", port=5001)
    assert f"--backend-store-uri 'sqlite:///{tmp_path}/my results/mlflow.db'" in command
    assert "--host 127.0.0.1 --port 5001" in command
    assert ui_command("https://me:secret@host/path") == "https://host/path", "the browser asks"
    assert ui_page(port=5001) == "http://127.0.0.1:5001/#/experiments/1?workflowType=machine_learning"


def test_what_the_user_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "77")
    monkeypatch.delenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", raising=False)
    set_client_settings()
    assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "77"
    assert os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "0"


def test_cells_that_would_share_a_name_are_told_apart(folder: ResultsFolder) -> None:
    write_plan(
        folder,
        planned_cell("a"),
        planned_cell("b", placement="dense"),
        planned_cell("c", placement=[2, 4], layers=16),
        planned_cell("d", gate="uniform"),
        planned_cell("e", budget=None, hidden_dim=146, dataset_title="ZINC", backbone="gated_gcn"),
        planned_cell("f", budget=12_345, placement=None),
        planned_cell("g", backbone="gat", seeds=[1]),
        planned_cell("h", backbone="gat", seeds=[2]),
        planned_cell("i", **VANILLA),
    )
    assert cell_names(read_plan(folder.plan_file).cells) == {
        "a": "bi-GCN Digits 100k boosting L=4",
        "b": "bi-GCN Digits 100k dense L=4",
        "c": "bi-GCN Digits 100k 2,4 L=16",
        "d": "uniform-GCN Digits 100k",
        "e": "bi-GatedGCN ZINC width 146",
        "f": "bi-GCN Digits 12345",
        "g": "bi-GAT Digits 100k",
        "h": "bi-GAT Digits 100k (h)",
        "i": "GCN Digits 100k",
    }


def test_a_trial_is_named_by_its_fold_and_without_a_plan_by_itself() -> None:
    assert trial_name(record(fold=3), "bi-GCN ENZYMES 100k") == "bi-GCN ENZYMES 100k seed 41 fold 3"
    assert trial_name(record(), None) == "bi-GCN Digits 100k seed 41"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not a readable plan"),
        ('{"format": 2}', "found plan format 2, expected 1"),
        ('{"format": 1, "study": "s", "caption": null, "cells": [{}]}', "'id'"),
    ],
)
def test_a_plan_that_cannot_be_read_is_named(folder: ResultsFolder, content: str, words: str) -> None:
    folder.plan_file.write_text(content)
    with pytest.raises(MirrorError, match=words) as caught:
        mirror_of(folder)
    assert str(folder.plan_file) in str(caught.value)


def test_a_folder_without_a_plan_is_no_study(folder: ResultsFolder) -> None:
    folder.plan_file.unlink()
    with pytest.raises(NoStudyError, match=rf"^{folder.root}: no study here \(plan.json is missing\)"):
        mirror_of(folder)


def test_the_state_of_a_run_without_the_tag_is_that_of_an_empty_run() -> None:
    empty = MirrorState.of({})
    assert empty.epochs == 0
    assert not empty.denied_by(record())
    assert MirrorState.of({"mirror_state": str(empty.after(record()))}) == empty.after(record())


def test_every_status_of_a_record_has_one_in_mlflow() -> None:
    assert set(RUN_STATUS) == set(get_args(Status))


@pytest.mark.parametrize("uri", ["foo://bar", "runs.db", "ftp://host/x"])
def test_an_address_that_mlflow_could_never_open_is_refused(uri: str) -> None:
    with pytest.raises(MirrorError, match="expected a URI that begins with one of sqlite"):
        require_tracking_uri(uri)


@pytest.mark.parametrize("uri", ["sqlite:////tmp/m.db", "http://127.0.0.1:5000", "mysql+pymysql://u:p@h/d"])
def test_known_addresses_pass(uri: str) -> None:
    require_tracking_uri(uri)
