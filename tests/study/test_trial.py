"""A trial as a worker runs it, on the real digits; no Ray."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from made_trials import FINGERPRINT, assignment, config, record

from bimp.config import ModelConfig, TrialConfig
from bimp.data import DataError, open_prepared, prepare
from bimp.evaluation import evaluate
from bimp.network import Network
from bimp.tasks import task_of
from study.assignment import TrialAssignment
from study.growing_record import initial_record
from study.live_trial import TrialProgress
from study.records import TrialRecord, read_record, write_record
from study.results import FIRST_ATTEMPT, ResultsFolder
from study.store import StoreTrouble
from study.trial import train_trial
from study.worker import reports_of


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    prepare("digits", root)
    return root


@pytest.fixture
def folder(tmp_path: Path) -> ResultsFolder:
    folder = ResultsFolder(tmp_path / "results")
    folder.create()
    return folder


def given(folder: ResultsFolder, data: Path, **changes: Any) -> TrialAssignment:
    fingerprint = open_prepared("digits", data).fingerprint
    return assignment(folder.root, data, data_fingerprint=fingerprint, **changes)


def numbers(ended: TrialRecord) -> TrialRecord:
    epochs = tuple(replace(epoch, seconds=0.0, ended_at=0.0) for epoch in ended.epochs)
    return replace(ended, seconds=0.0, started_at=0.0, ended_at=None, epochs=epochs)


def live(trial: TrialAssignment) -> TrialRecord:
    return read_record(ResultsFolder(Path(trial.results)).live_record(trial.key, FIRST_ATTEMPT))


def test_an_assignment_survives_json(tmp_path: Path) -> None:
    model = ModelConfig(
        backbone="gat", layers=4, hidden_dim=3, heads=8, placement=(1, 4), gate="uniform", num_clusters=2, sigma_m=1e-3
    )
    training = config(time_limit_s=1.5).train
    trial = assignment(
        tmp_path,
        phase="confirm",
        number=None,
        chosen_from="k",
        config=TrialConfig(dataset="digits", model=model, train=training, seed=7, fold=2),
    )
    assert TrialAssignment.from_dict(json.loads(json.dumps(trial.to_dict()))) == trial


def test_record_and_checkpoint_of_an_epoch_are_on_disk_when_it_is_told(folder: ResultsFolder, data: Path) -> None:
    trial = given(folder, data)
    told = []
    for progress in train_trial(trial):
        on_disk = live(trial)
        assert on_disk.status == "running"
        assert on_disk.num_epochs == progress.epoch
        assert on_disk.epochs[-1].val_metric == on_disk.val_metric == progress.val_metric
        assert torch.load(folder.checkpoint(trial.key, FIRST_ATTEMPT), weights_only=True)["epoch"] == progress.epoch
        told.append((progress.epoch, progress.ended))
    assert told == [(1, False), (2, False), (3, True)]
    ended = live(trial)
    assert (ended.status, ended.reason, ended.threads, ended.git_commit) == ("finished", "max_epochs", 1, "abc")
    assert ended.seconds == pytest.approx(sum(epoch.seconds for epoch in ended.epochs))
    assert json.loads(ended.config_json) == trial.config.to_dict()


def test_a_search_trial_never_sees_the_test_split(folder: ResultsFolder, data: Path) -> None:
    trial = given(folder, data)
    list(train_trial(trial))
    assert (live(trial).test_metric, live(trial).test_loss, live(trial).train_metric) == (None, None, None)
    assert not folder.final_weights(trial.key).exists()


class Noisy(torch.nn.Module):
    """A layer of one's own that draws in evaluation too."""

    def __init__(self, row_dim: int) -> None:
        super().__init__()
        self.map = torch.nn.Linear(row_dim, row_dim)

    def forward(self, h: torch.Tensor, edge_index: torch.Tensor, beta_hat: torch.Tensor | None = None) -> torch.Tensor:
        rows: torch.Tensor = self.map(h)
        return rows + torch.randn_like(rows)


def test_what_a_layer_draws_in_the_last_measurement_follows_from_the_trial(tmp_path: Path, data: Path) -> None:
    found = []
    for seed in (3, 4):
        folder = ResultsFolder(tmp_path / str(seed))
        folder.create()
        model = replace(config().model, backbone=f"{__name__}:Noisy")
        trial = given(
            folder, data, phase="confirm", number=None, chosen_from="k", config=replace(config(), model=model)
        )
        torch.manual_seed(seed)  # what the process drew before
        list(train_trial(trial))
        found.append((live(trial).status, live(trial).train_loss, live(trial).test_loss))
    assert found[0] == found[1]
    assert found[0][0] == "finished"


def test_a_confirm_trial_is_measured_by_the_weights_that_it_keeps(folder: ResultsFolder, data: Path) -> None:
    trial = given(folder, data, phase="confirm", number=None, chosen_from="k")
    list(train_trial(trial))
    ended = live(trial)
    assert not folder.final_weights(trial.key).exists(), "whoever seals the trial moves them there"
    kept = torch.load(folder.live_weights(trial.key, trial.attempt), weights_only=True)
    assert TrialConfig.from_dict(kept["config"]) == trial.config
    network = Network(trial.config.model, task_of("digits"))
    network.load_state_dict(kept["network"])
    dataset = open_prepared("digits", data)
    for split, metric, loss in (
        ("train", ended.train_metric, ended.train_loss),
        ("val", ended.val_metric, ended.val_loss),
        ("test", ended.test_metric, ended.test_loss),
    ):
        measured = evaluate(network, trial.config, dataset.split(split), "cpu")  # type: ignore[arg-type]
        assert (measured.metric, measured.loss) == (metric, loss), split


@pytest.mark.parametrize("stopped_after", [1, 2, 3])
def test_an_interrupted_trial_tells_its_last_epoch_again_and_ends_as_an_undisturbed_one(
    tmp_path: Path, data: Path, stopped_after: int
) -> None:
    trials = []
    for name in ("undisturbed", "interrupted"):
        folder = ResultsFolder(tmp_path / name)
        folder.create()
        trials.append(given(folder, data, phase="confirm", number=None))
    undisturbed, interrupted = trials
    expected = list(train_trial(undisturbed))
    first = take(train_trial(interrupted), stopped_after)
    assert first == expected[:stopped_after]
    before = live(interrupted)
    again = list(train_trial(interrupted))
    assert again == expected[stopped_after - 1 :]
    assert numbers(live(interrupted)) == numbers(live(undisturbed))
    assert live(interrupted).epochs[:stopped_after] == before.epochs, "an epoch on disk was trained again"
    ours, theirs = (
        torch.load(ResultsFolder(Path(trial.results)).live_weights(trial.key, FIRST_ATTEMPT), weights_only=True)
        for trial in trials
    )
    assert all(torch.equal(ours["network"][name], theirs["network"][name]) for name in ours["network"])


def test_an_epoch_that_the_checkpoint_has_not_seen_is_trained_again(folder: ResultsFolder, data: Path) -> None:
    """The worker died between the record of an epoch and its checkpoint."""
    trial = given(folder, data)
    expected = list(train_trial(trial))
    whole = live(trial)
    folder.checkpoint(trial.key, FIRST_ATTEMPT).unlink()
    take(train_trial(trial), 1)
    behind = folder.checkpoint(trial.key, FIRST_ATTEMPT).read_bytes()
    take(train_trial(trial), 2)
    folder.checkpoint(trial.key, FIRST_ATTEMPT).write_bytes(behind)
    assert live(trial).num_epochs == 2
    assert list(train_trial(trial)) == expected
    assert numbers(live(trial)) == numbers(whole)
    together = sum(epoch.seconds for epoch in live(trial).epochs)
    assert together == pytest.approx(live(trial).seconds), "time goes on from the checkpoint's"


@pytest.mark.parametrize("broken", ["checkpoint", "record", "no record", "an older record"])
def test_what_a_crash_of_the_machine_cut_makes_the_trial_begin_again(
    folder: ResultsFolder, data: Path, broken: str
) -> None:
    trial = given(folder, data)
    expected = take(train_trial(trial), 1)
    older = folder.live_record(trial.key, FIRST_ATTEMPT).read_bytes()
    expected += take(train_trial(trial), 2)[1:]
    if broken == "an older record":
        folder.live_record(trial.key, FIRST_ATTEMPT).write_bytes(older)
    elif broken == "no record":
        folder.live_record(trial.key, FIRST_ATTEMPT).unlink()
    else:
        place = folder.checkpoint if broken == "checkpoint" else folder.live_record
        path = place(trial.key, FIRST_ATTEMPT)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    again = list(train_trial(trial))
    assert [progress.epoch for progress in again] == [1, 2, 3]
    assert again[:2] == expected
    assert live(trial).status == "finished"


@pytest.mark.parametrize("of_what", ["\x05\0\0\0epoch", "\x07\0\0\0running", "a weight"])  # texts as pickle has them
def test_a_checkpoint_with_a_wrong_byte_in_it_makes_the_trial_begin_again(
    folder: ResultsFolder, data: Path, of_what: str
) -> None:
    """Raised, it would fail this trial at every start; not noticed, the trial would go on with another weight."""
    trial = given(folder, data)
    take(train_trial(trial), 2)
    path = folder.checkpoint(trial.key, FIRST_ATTEMPT)
    whole = path.read_bytes()
    weight = torch.load(path, weights_only=True)["network"]["head.scorer.0.weight"]
    stored = weight.numpy().tobytes() if of_what == "a weight" else of_what.encode()
    assert whole.count(stored) == 1
    path.write_bytes(whole.replace(stored, stored[:-1] + bytes([stored[-1] ^ 1])))
    assert [progress.epoch for progress in take(train_trial(trial), 2)] == [1, 2]


def test_a_failed_trial_that_goes_on_is_running_again(folder: ResultsFolder, data: Path) -> None:
    trial = given(folder, data)
    take(train_trial(trial), 1)
    write_record(live(trial).sealed("failed", "OSError: gone", 1.0), folder.live_record(trial.key, FIRST_ATTEMPT))
    take(train_trial(trial), 1)
    assert (live(trial).status, live(trial).reason, live(trial).ended_at) == ("running", None, None)


def test_a_diverged_trial_says_when_and_why_and_tells_no_epoch(folder: ResultsFolder, data: Path) -> None:
    trial = given(folder, data, config=config(learning_rate=1e30))
    assert list(train_trial(trial)) == []
    ended = live(trial)
    assert (ended.status, ended.epochs, ended.val_metric) == ("diverged", (), None)
    assert ended.reason is not None
    assert ended.reason.startswith("epoch 1: ")
    assert ended.ended_at is not None


def test_other_data_than_the_driver_checked_is_refused(folder: ResultsFolder, data: Path) -> None:
    trial = replace(given(folder, data), data_fingerprint=FINGERPRINT)
    with pytest.raises(DataError, match=rf"trial {trial.key} .* expected {FINGERPRINT}; the data was prepared anew"):
        next(train_trial(trial))


def test_a_trial_takes_exactly_the_threads_that_it_was_given(folder: ResultsFolder, data: Path) -> None:
    before = torch.get_num_threads()
    try:
        take(train_trial(given(folder, data, threads=3)), 1)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_a_new_record_repeats_the_configuration(tmp_path: Path) -> None:
    trial = assignment(tmp_path)
    begun = initial_record(trial, "a processor")
    assert begun.params == sum(p.numel() for p in Network(trial.config.model, task_of("digits")).parameters())
    assert (begun.placement, begun.gated_layers, begun.gate) == ("boosting", (2,), "bilateral")
    assert (begun.num_clusters, begun.sigma_m, begun.unsupervised_weight) == (3, 0.5, 1.0)
    assert (begun.metric, begun.direction, begun.seed, begun.fold) == ("accuracy", "max", 41, None)
    explicit = replace(trial, config=replace(trial.config, model=replace(trial.config.model, placement=(2, 1))))
    assert initial_record(explicit, "a processor").placement == "2,1"
    assert record(trial, epochs=2).val_metric == 0.2


def take(trial: Iterator[TrialProgress], count: int) -> list[TrialProgress]:
    """What is told until a worker dies after so many epochs."""
    taken = [next(trial) for _ in range(count)]
    trial.close()  # type: ignore[attr-defined]
    return taken


def test_a_failure_that_a_store_which_cannot_be_read_does_not_take_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raised out of the worker it would count as lost, and cost the trial its cause."""
    folder = ResultsFolder(tmp_path)
    folder.create()
    trial = assignment(tmp_path)
    write_record(record(trial, 1), folder.live_record(trial.key, FIRST_ATTEMPT))

    def stale(path: Path) -> bytes:
        raise OSError(errno.ESTALE, "Stale file handle")

    def broken(_: TrialAssignment) -> Iterator[TrialProgress]:
        raise ValueError("a fault of the trial's own")

    monkeypatch.setattr("study.worker.train_trial", broken)
    monkeypatch.setattr(Path, "read_bytes", stale)
    assert list(reports_of(trial)) == [{"failed": "ValueError: a fault of the trial's own"}]


@pytest.mark.parametrize("away_after", [0, 1, 2, 3])
def test_a_store_that_goes_away_and_comes_back_costs_the_trial_nothing(
    tmp_path: Path, data: Path, away_after: int
) -> None:
    trials = []
    for name in ("undisturbed", "disturbed"):
        folder = ResultsFolder(tmp_path / name)
        folder.create()
        trials.append(given(folder, data, phase="confirm", number=None))
    undisturbed, disturbed = trials
    expected = list(train_trial(undisturbed))
    elsewhere = tmp_path / "elsewhere"
    paused: list[float] = []

    def pause(seconds: float) -> None:
        paused.append(seconds)
        assert not folder.root.exists(), "made anew in the place of the one that is away"
        if len(paused) == 3:
            elsewhere.rename(folder.root)

    told: list[TrialProgress] = []
    troubles: list[StoreTrouble] = []
    if away_after == 0:
        folder.root.rename(elsewhere)
    for news in train_trial(disturbed, pause):
        if isinstance(news, StoreTrouble):
            troubles.append(news)
            continue
        told.append(news)
        if len(told) == away_after:
            folder.root.rename(elsewhere)
    assert told == expected
    assert paused == [1, 2, 4]
    assert troubles == [StoreTrouble(f"[Errno 2] The results folder is not there: '{folder.root}'")] * 3
    assert numbers(live(disturbed)) == numbers(live(undisturbed))
    assert folder.live_weights(disturbed.key, disturbed.attempt).exists()
