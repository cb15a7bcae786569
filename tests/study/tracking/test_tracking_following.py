"""Trials that are followed while they train, fail, are tried again or are replaced."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from made_mirrors import TRIAL, epoch, mirror_of, record, running, seal, trained_again
from read_mirrors import Rebuilt, curve, dump, live_runs, parameters_of, query, state_of, tags_of

from benchmarks.faults.mirrored import content
from study.records import TrialRecord, write_record
from study.results import FIRST_ATTEMPT, ResultsFolder
from study.tracking import MlflowMirror


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
