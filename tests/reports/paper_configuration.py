"""Trials with a whole configuration: the paper's, but for what a test changes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from study.records import TrialRecord

MODEL: dict[str, Any] = {
    "semantics": "released",
    "heads": 1,
    "pos_enc_dim": None,
    "out_dim": None,
    "edge_features": "given",
    "readout": "mean",
}
TRAIN: dict[str, Any] = {
    "batch_size": 128,
    "learning_rate": 1e-3,
    "lr_factor": 0.5,
    "lr_patience": 10,
    "min_lr": 1e-5,
    "max_epochs": 1000,
    "time_limit_s": 43200.0,
    "precision": "float32",
}


def configured(record: TrialRecord, **changes: Any) -> TrialRecord:
    """The trial with a whole configuration: that of the paper's ZINC rows, but for ``changes``."""
    model = {key: changes.get(key, value) for key, value in MODEL.items()}
    train = {key: changes.get(key, value) for key, value in TRAIN.items()}
    content = {"dataset": record.dataset, "seed": record.seed, "fold": record.fold, "model": model, "train": train}
    return replace(record, config_json=json.dumps(content))
