"""Confirm trials that are trained together: as a worker runs them, and what becomes of them; no Ray."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from made_trials import assignment, config

from bimp.data import open_prepared, prepare
from study.assignment import TrialAssignment
from study.live_trial import TrialProgress
from study.records import TrialRecord, read_record
from study.results import ResultsFolder
from study.together import TogetherProgress, train_together
from study.trial import train_trial
from study.worker import reports_of

SEEDS = (41, 95, 12)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    prepare("digits", root)
    return root


@pytest.fixture(autouse=True)
def as_one_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """However large their batches are."""
    monkeypatch.setattr("bimp.stack.worth.MOST_NODES", 10**9)


def confirm_trials(folder: ResultsFolder, data: Path, **training: Any) -> list[TrialAssignment]:
    folder.create()
    given = {
        "phase": "confirm",
        "number": None,
        "chosen_from": "k",
        "data_fingerprint": open_prepared("digits", data).fingerprint,
    }
    return [assignment(folder.root, data, config=config(seed=seed, **training), **given) for seed in SEEDS]


def together(trials: list[TrialAssignment]) -> TrialAssignment:
    return replace(trials[0], companions=tuple(trials[1:]))


def live(trial: TrialAssignment) -> TrialRecord:
    return read_record(ResultsFolder(Path(trial.results)).live_record(trial.key, trial.attempt))


def progress(news: Iterator[Any]) -> Iterator[TogetherProgress]:
    for told in news:
        assert isinstance(told, TogetherProgress)
        yield told


def assert_alike(found: TrialRecord, expected: TrialRecord) -> None:
    """But for rounding, time and the word of how it was trained."""
    assert (found.status, found.reason, found.num_epochs) == (expected.status, expected.reason, expected.num_epochs)
    assert (found.key, found.seed, found.params) == (expected.key, expected.seed, expected.params)
    for one, other in zip(found.epochs, expected.epochs, strict=True):
        assert one.learning_rate == other.learning_rate
        assert one.val_loss == pytest.approx(other.val_loss, rel=1e-3)
        assert one.train_loss == pytest.approx(other.train_loss, rel=1e-3)
    for name in ("train", "val", "test"):
        loss = getattr(found, f"{name}_loss")
        assert loss == pytest.approx(getattr(expected, f"{name}_loss"), rel=1e-3)


def test_an_assignment_with_companions_survives_json(tmp_path: Path) -> None:
    trials = [assignment(tmp_path, config=config(seed=seed)) for seed in SEEDS]
    whole = together(trials)
    assert TrialAssignment.from_dict(json.loads(json.dumps(whole.to_dict()))) == whole
    assert whole.members == tuple(trials)


def test_each_trial_leaves_the_record_and_weights_that_it_would_leave_by_itself(tmp_path: Path, data: Path) -> None:
    alone = confirm_trials(ResultsFolder(tmp_path / "alone"), data)
    for trial in alone:
        list(train_trial(trial))
    trials = confirm_trials(ResultsFolder(tmp_path / "together"), data)
    told = []
    for news in progress(train_together(together(trials))):
        for key, of_trial in news.epochs.items():
            (trial,) = (trial for trial in trials if trial.key == key)
            assert live(trial).num_epochs == of_trial.epoch, "it is on disk when it is told"
            assert live(trial).val_metric == of_trial.val_metric
        told.append(({key: (each.epoch, each.ended) for key, each in news.epochs.items()}, news.on_record))
    keys = tuple(trial.key for trial in trials)
    assert told == [
        (dict.fromkeys(keys, (1, False)), ()),
        (dict.fromkeys(keys, (2, False)), ()),
        (dict.fromkeys(keys, (3, True)), ()),
        ({}, keys),
    ]
    for one, other in zip(trials, alone, strict=True):
        assert_alike(live(one), live(other))
        assert live(one).device == f"{live(other).device} (3 seeds together)"
        ours, theirs = (
            torch.load(ResultsFolder(Path(trial.results)).live_weights(trial.key, trial.attempt), weights_only=True)
            for trial in (one, other)
        )
        assert ours["config"] == theirs["config"]
        assert {name: value.shape for name, value in ours["network"].items()} == {
            name: value.shape for name, value in theirs["network"].items()
        }


def test_trials_that_take_turns_are_on_record_as_trained_alone(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = confirm_trials(ResultsFolder(tmp_path / "alone"), data)
    for trial in alone:
        list(train_trial(trial))
    monkeypatch.setattr("bimp.stack.worth.MOST_NODES", 0)
    trials = confirm_trials(ResultsFolder(tmp_path / "together"), data)
    list(progress(train_together(together(trials))))
    for one, other in zip(trials, alone, strict=True):
        assert live(one).device == live(other).device
        assert [epoch.val_loss for epoch in live(one).epochs] == [epoch.val_loss for epoch in live(other).epochs]


@pytest.mark.parametrize("first", ["together", "alone"])
def test_trials_go_on_the_other_way_from_where_a_worker_died(tmp_path: Path, data: Path, first: str) -> None:
    undisturbed = confirm_trials(ResultsFolder(tmp_path / "undisturbed"), data)
    for trial in undisturbed:
        list(train_trial(trial))
    trials = confirm_trials(ResultsFolder(tmp_path / "disturbed"), data)
    if first == "together":
        died = progress(train_together(together(trials)))
        next(died)
        next(died)
        for trial in trials:
            epochs = [(each.epoch, each.ended) for each in train_trial(trial) if isinstance(each, TrialProgress)]
            assert epochs == [(2, False), (3, True)]
    else:
        next(train_trial(trials[0]))
        list(train_trial(trials[1]))
        (told, done, *rest) = progress(train_together(together(trials)))
        assert {key: (each.epoch, each.ended) for key, each in told.epochs.items()} == {
            trials[0].key: (1, False),
            trials[1].key: (3, True),
        }
        assert done == TogetherProgress(epochs={}, on_record=(trials[1].key,))
        assert [sorted(each.epoch for each in news.epochs.values()) for news in rest] == [[1, 2], [2, 3], [], [3], []]
    for one, other in zip(trials, undisturbed, strict=True):
        assert_alike(live(one), live(other))


def test_a_diverged_trial_is_done_and_the_others_go_on(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = confirm_trials(ResultsFolder(tmp_path), data)
    folder = ResultsFolder(tmp_path)
    next(train_trial(trials[1]))
    path = folder.checkpoint(trials[1].key, trials[1].attempt)
    checkpoint = torch.load(path, weights_only=True)
    checkpoint["network"]["head.scorer.0.weight"].fill_(float("nan"))
    torch.save(checkpoint, path)
    told = list(progress(train_together(together(trials))))
    assert told[1].on_record == (trials[1].key,)
    assert set(told[1].epochs) == {trials[0].key, trials[2].key}
    assert (live(trials[1]).status, live(trials[1]).num_epochs) == ("diverged", 1)
    assert {live(trials[number]).status for number in (0, 2)} == {"finished"}


def test_a_fault_takes_the_trials_apart_and_is_none_of_theirs_yet(tmp_path: Path, data: Path) -> None:
    trials = confirm_trials(ResultsFolder(tmp_path), data)
    odd = replace(trials[1], config=replace(trials[1].config, train=replace(trials[1].config.train, max_epochs=2)))
    (told,) = reports_of(together([trials[0], odd]))
    assert told["came_apart"].startswith("ValueError: runs: found different configurations")
    assert not list(ResultsFolder(tmp_path).errors.glob("*"))
    missing = [replace(trial, data_root=str(tmp_path / "elsewhere")) for trial in trials]
    (told,) = reports_of(together(missing))
    assert told["came_apart"].startswith("DataError: ")


def test_no_key_of_a_report_means_something_to_tune() -> None:
    """``done`` would: Tune ends a trial that reports it."""
    from ray.tune import result

    of_tune = {value for value in vars(result).values() if isinstance(value, str)}
    assert not of_tune & set(TogetherProgress.__dataclass_fields__)
