"""Small studies for tests of the mirror: plans, and records with numbers that are easy to check."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from study.records import EpochRecord, TrialRecord, write_record
from study.results import FIRST_ATTEMPT, ResultsFolder
from study.tracking import MlflowMirror, default_tracking_uri

VANILLA: dict[str, Any] = {
    "placement": "none",
    "gate": None,
    "num_clusters": None,
    "sigma_m": None,
    "unsupervised_weight": None,
}
TRIAL = "bi-GCN Digits 100k seed 41"
"""The run of :func:`record` in MLflow."""


def planned_cell(name: str = "gcn_boosting", **changes: Any) -> dict[str, Any]:
    """A cell as ``plan.json`` holds it: bi-GCN on digits, four seeds, nothing to search."""
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
    """Epoch ``number``, which ended two seconds after the one before."""
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
    """A confirm trial that finished, of the first cell and seed."""
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
    """The same trial while it trains."""
    unmeasured = dict.fromkeys(["train_metric", "val_metric", "test_metric", "train_loss", "val_loss", "test_loss"])
    return replace(record(key, epochs), status="running", reason=None, ended_at=None, **unmeasured)


def trained_again(whole: TrialRecord, after: int) -> TrialRecord:
    """The record with other clocks after so many epochs: a worker was lost, and they were trained again."""
    later = tuple(replace(entry, ended_at=entry.ended_at + 99, seconds=7.0) for entry in whole.epochs[after:])
    return replace(whole, epochs=whole.epochs[:after] + later)


def write_plan(folder: ResultsFolder, *cells: dict[str, Any], caption: str = "A demonstration") -> None:
    plan = {"format": 1, "study": "quickstart", "caption": caption, "cells": cells}
    folder.plan_file.write_text(json.dumps(plan))


def mirror_of(folder: ResultsFolder) -> MlflowMirror:
    """A new mirror into the database of the folder."""
    return MlflowMirror(default_tracking_uri(folder.root), folder.root)


def seal(folder: ResultsFolder, *records: TrialRecord) -> None:
    """Write records of trials that ended."""
    for entry in records:
        write_record(entry, folder.record(entry.key))


def a_busy_folder(folder: ResultsFolder) -> None:
    """Write six trials of both cells: finished, failed, pruned, without a number, and running."""
    seal(
        folder,
        record(),
        record("key1", seed=95, test_metric=0.5),
        record("key2", epochs=1, status="failed", reason="out of memory\n" + "x" * 9000, seed=12),
        record("key3", epochs=150, phase="search", number=0, test_metric=None, status="pruned", reason="epoch 150"),
        record("key4", cell="gcn_none", **{**VANILLA, "gated_layers": ()}, test_metric=float("nan")),
    )
    write_record(running("key5", 2), folder.live_record("key5", FIRST_ATTEMPT))
