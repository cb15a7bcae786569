from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest
from made_trials import assignment, record

from study.records import RecordError, Status, read_record, write_record
from study.results import FIRST_ATTEMPT, ResultsFolder
from study.sealing import clear_away, seal

TRACEBACK = "Traceback of an earlier try"


@pytest.fixture
def folder(tmp_path: Path) -> ResultsFolder:
    folder = ResultsFolder(tmp_path)
    folder.create()
    return folder


def live(folder: ResultsFolder, epochs: int, status: Status = "running", reason: str | None = None) -> None:
    trial = assignment(folder.root)
    so_far = record(trial, epochs)
    write_record(replace(so_far, status=status, reason=reason), folder.live_record(trial.key, FIRST_ATTEMPT))
    folder.checkpoint(trial.key, FIRST_ATTEMPT).write_bytes(b"a checkpoint")
    folder.errors.mkdir()
    folder.error(trial.key).write_text(TRACEBACK)


def test_a_pruned_trial_ends_at_its_rung(folder: ResultsFolder) -> None:
    """The worker was an epoch ahead when it was stopped: what came after the rung is no part of the trial."""
    live(folder, epochs=5)
    sealed = seal(assignment(folder.root), folder, pruned_at=4)
    assert (sealed.status, sealed.reason, sealed.num_epochs) == ("pruned", "at the rung of epoch 4", 4)
    assert (sealed.val_metric, sealed.val_loss, sealed.ended_at) == (0.4, 0.25, 4.0)
    assert sealed.seconds == sum(epoch.seconds for epoch in sealed.epochs) == 8.0
    assert read_record(folder.record(sealed.key)) == sealed


@pytest.mark.parametrize(("status", "reason"), [("finished", "max_epochs"), ("diverged", "epoch 3: loss nan")])
@pytest.mark.parametrize("pruned_at", [None, 2])
@pytest.mark.parametrize("error", [None, "its worker was lost 3 times"])
def test_the_workers_own_word_counts_first(
    folder: ResultsFolder, status: Status, reason: str, pruned_at: int | None, error: str | None
) -> None:
    live(folder, epochs=2, status=status, reason=reason)
    sealed = seal(assignment(folder.root), folder, pruned_at=pruned_at, error=error)
    assert (sealed.status, sealed.reason, sealed.num_epochs) == (status, reason, 2)


def test_a_lost_worker_counts_before_a_rung(folder: ResultsFolder) -> None:
    live(folder, epochs=2)
    sealed = seal(assignment(folder.root), folder, pruned_at=2, error="its worker was lost 3 times")
    assert (sealed.status, sealed.reason, sealed.num_epochs) == ("failed", "its worker was lost 3 times", 2)


def test_a_worker_that_ends_without_a_word_failed(folder: ResultsFolder) -> None:
    live(folder, epochs=2)
    sealed = seal(assignment(folder.root), folder)
    assert (sealed.status, sealed.reason) == ("failed", "its worker ended after epoch 2 without a word")


@pytest.mark.parametrize("found", ["nothing", "a cut record"])
def test_a_worker_that_left_no_record_failed_before_its_first_epoch(folder: ResultsFolder, found: str) -> None:
    trial = assignment(folder.root)
    if found == "a cut record":
        folder.live_record(trial.key, FIRST_ATTEMPT).parent.mkdir(parents=True)
        folder.live_record(trial.key, FIRST_ATTEMPT).write_bytes(b"PAR1")
    sealed = seal(trial, folder, error="its worker was lost 3 times")
    assert (sealed.status, sealed.num_epochs, sealed.device) == ("failed", 0, "unknown")
    assert read_record(folder.record(trial.key)) == sealed


@pytest.mark.parametrize("epochs", [None, 3])
def test_a_pruned_trial_whose_record_does_not_reach_the_rung_failed(folder: ResultsFolder, epochs: int | None) -> None:
    """The disk lost what the worker had brought there: a next try trains it again."""
    if epochs is not None:
        live(folder, epochs)
    sealed = seal(assignment(folder.root), folder, pruned_at=4)
    told = f"stopped at the rung of epoch 4, and on record are {epochs or 0} of these epochs"
    assert (sealed.status, sealed.reason, sealed.num_epochs) == ("failed", told, epochs or 0)


def test_a_failed_trial_keeps_what_the_next_start_goes_on_from(folder: ResultsFolder) -> None:
    live(folder, epochs=1, status="failed", reason="OSError: gone")
    sealed = seal(assignment(folder.root), folder)
    clear_away(sealed, folder)
    assert (sealed.status, sealed.reason) == ("failed", "OSError: gone")
    assert folder.checkpoint(sealed.key, FIRST_ATTEMPT).exists()
    assert folder.live_record(sealed.key, FIRST_ATTEMPT).exists()
    assert folder.error(sealed.key).read_text() == TRACEBACK


def test_any_other_trial_leaves_its_record_alone(folder: ResultsFolder) -> None:
    live(folder, epochs=3, status="finished", reason="max_epochs")
    clear_away(seal(assignment(folder.root), folder), folder)
    assert list(folder.live.iterdir()) == []
    assert list(folder.errors.iterdir()) == []


def test_new_weights_leave_nothing_that_was_measured_on_earlier_ones(folder: ResultsFolder) -> None:
    """A superseded trial is begun again, by other code maybe: its figure would show rows of networks that are gone."""
    live(folder, epochs=3, status="finished", reason="max_epochs")
    key = assignment(folder.root).key
    folder.smoothing(key).parent.mkdir()
    folder.smoothing(key).write_bytes(b"of the earlier weights")
    folder.final_weights(key).write_bytes(b"earlier")
    folder.live_weights(key, FIRST_ATTEMPT).write_bytes(b"new")
    seal(assignment(folder.root), folder)
    assert folder.final_weights(key).read_bytes() == b"new"
    assert not folder.smoothing(key).exists()


def test_a_live_record_that_cannot_be_read_at_this_moment_is_not_taken_for_lost(
    folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(folder, epochs=2, status="finished", reason="max_epochs")

    def stale(path: Path) -> bytes:
        raise OSError(errno.ESTALE, "Stale file handle", str(path))

    with monkeypatch.context() as broken:
        broken.setattr(Path, "read_bytes", stale)
        with pytest.raises(RecordError, match=r"Stale file handle.*; once it can be, the same command goes on"):
            seal(assignment(folder.root), folder)
    assert not folder.record(assignment(folder.root).key).exists()
    assert seal(assignment(folder.root), folder).status == "finished"
