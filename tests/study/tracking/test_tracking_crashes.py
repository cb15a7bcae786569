"""A mirror that was killed anywhere: the next one completes its rows and writes none twice."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from made_mirrors import TRIAL, mirror_of, record, running, seal, trained_again
from read_mirrors import Rebuilt, curve, dump, live_runs

from benchmarks.faults.mirrored import content
from study.records import TrialRecord
from study.results import ResultsFolder
from study.tracking.state import MirrorState


def test_the_state_of_a_run_without_the_tag_is_that_of_an_empty_run() -> None:
    empty = MirrorState.of({})
    assert empty.epochs == 0
    assert not empty.denied_by(record())
    assert MirrorState.of({"mirror_state": str(empty.after(record()))}) == empty.after(record())


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
