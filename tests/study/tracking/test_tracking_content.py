"""What a mirrored study holds: its runs, their parameters, tags, curves and final values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_mirrors import TRIAL, VANILLA, epoch, mirror_of, record, running, seal
from read_mirrors import curve, live_runs, parameters_of, query, state_of, tags_of

from study.records import Status
from study.results import ResultsFolder
from study.tracking.content import RUN_STATUS, MetricRow, end_of, epoch_metrics, final_metrics, trial_parameters


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
        "gate": "bilateral", "unsupervised_weight": "1.0",
    }  # fmt: skip


def test_heads_and_readout_are_parameters_only_where_they_exist() -> None:
    assert trial_parameters(record(backbone="gat", heads=8))["heads"] == "8"
    assert trial_parameters(record(backbone="gat", heads=1))["heads"] == "1"
    assert "heads" not in trial_parameters(record(heads=1))
    assert "readout" not in trial_parameters(record(task="node_classification"))


def test_a_last_width_of_its_own_is_a_parameter() -> None:
    assert trial_parameters(record(out_dim=12))["out_dim"] == "12"
    assert "out_dim" not in trial_parameters(record(out_dim=None))


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
        *(f"{split}_accuracy_mean" for split in ("train", "val", "test")),
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


def test_every_status_of_a_record_has_one_in_mlflow() -> None:
    assert set(RUN_STATUS) == set(get_args(Status))


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
    deviations = {step: value for step, value, _ in curve(folder, cell, "test_accuracy_std")}
    assert deviations == pytest.approx({2: 1, 3: (26 / 3) ** 0.5}), "of a single run nothing is known, as in the tables"
    assert [value for _, value, _ in curve(folder, cell, "confirm_finished")] == [1, 2, 3]


def test_a_record_ends_with_what_it_knows_last() -> None:
    sealed = record(epochs=2, started_at=5.0, ended_at=90.0)
    assert end_of(sealed) == 90.0
    under_way = replace(sealed, status="running", ended_at=None)
    assert end_of(under_way) == sealed.epochs[-1].ended_at != 5.0
    assert end_of(replace(under_way, epochs=())) == 5.0
