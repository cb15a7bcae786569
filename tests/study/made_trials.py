"""Small trials for tests: assignments of real networks, and records with numbers that are easy to check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from bimp.config import ModelConfig, TrainConfig, TrialConfig, trial_key
from study.assignment import TrialAssignment
from study.growing_record import initial_record
from study.records import EpochRecord, TrialRecord

CELL = "digits-gcn-boosting-L2-h6"
FINGERPRINT = "0123456789abcdef"


def config(*, seed: int = 41, **training: Any) -> TrialConfig:
    model = ModelConfig(
        backbone="gcn", layers=2, hidden_dim=6, placement="boosting", gate="bilateral", num_clusters=3, sigma_m=0.5
    )
    trained = {"max_epochs": 3, "batch_size": 512, "learning_rate": 1e-2, "unsupervised_weight": 1.0, **training}
    return TrialConfig(dataset="digits", model=model, train=TrainConfig(**trained), seed=seed)


def assignment(results: Path, data: Path = Path("nowhere"), **changes: Any) -> TrialAssignment:
    given = TrialAssignment(
        key="",
        study="made",
        cell=CELL,
        phase="search",
        number=0,
        chosen_from=None,
        budget=None,
        config=config(),
        data_fingerprint=FINGERPRINT,
        data_root=str(data),
        results=str(results),
        threads=1,
        use_gpu=False,
        git_commit="abc",
        git_dirty=False,
    )
    given = replace(given, **changes)
    return replace(given, key=given.key or trial_key(given.config, given.phase, given.data_fingerprint))


def epoch(number: int, val_metric: float = 0.5) -> EpochRecord:
    """Epoch ``number``; it ended ``number`` seconds after 1970 and its losses are 1 over its number."""
    return EpochRecord(
        epoch=number,
        learning_rate=1e-2,
        train_loss=1 / number,
        train_unsupervised_loss=None,
        train_metric=val_metric,
        val_loss=1 / number,
        val_unsupervised_loss=None,
        val_metric=val_metric,
        gate_min=None,
        gate_max=None,
        gate_std=None,
        seconds=2.0,
        ended_at=float(number),
    )


def record(given: TrialAssignment, epochs: int = 0, **changes: Any) -> TrialRecord:
    """A running record after so many epochs, whose metric is a tenth of each epoch's number."""
    so_far = tuple(epoch(number, number / 10) for number in range(1, epochs + 1))
    last = so_far[-1] if so_far else None
    running = replace(
        initial_record(given, "a processor"),
        epochs=so_far,
        seconds=2.0 * epochs,
        started_at=0.0,
        val_metric=last.val_metric if last else None,
        val_loss=last.val_loss if last else None,
    )
    return replace(running, **changes)
