"""What a study left behind, read as anybody could: records with the record module, MLflow's database with SQL."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from study.records import TrialRecord, read_records


def records(results: Path) -> dict[str, TrialRecord]:
    """Sealed records by key."""
    return {record.key: record for record in read_records(results / "records")}


def numbers(record: TrialRecord) -> TrialRecord:
    """A record without what two runs of the same trial may differ in: clocks."""
    epochs = tuple(replace(epoch, seconds=0.0, ended_at=0.0) for epoch in record.epochs)
    return replace(record, seconds=0.0, started_at=0.0, ended_at=None, epochs=epochs)


def mirrored_trials(results: Path) -> Counter[str]:
    """How many runs MLflow shows of each trial's key."""
    rows = query(
        results,
        "SELECT tags.value FROM tags JOIN runs USING (run_uuid)"
        " WHERE tags.key = 'trial_key' AND runs.lifecycle_stage = 'active'",
    )
    return Counter(key for (key,) in rows)


def mirrored_epochs(results: Path) -> dict[str, list[tuple[int, float]]]:
    """Step and value of ``val_metric``-like points by trial key, oldest first; one of a step twice shows twice."""
    rows = query(
        results,
        "SELECT tags.value, metrics.step, metrics.value FROM metrics JOIN tags USING (run_uuid)"
        " WHERE tags.key = 'trial_key' AND metrics.key = 'val_loss' ORDER BY metrics.step",
    )
    found: dict[str, list[tuple[int, float]]] = {}
    for key, step, value in rows:
        found.setdefault(key, []).append((step, value))
    return found


def query(results: Path, statement: str) -> list[tuple[Any, ...]]:
    """The rows that MLflow's database answers; opened for reading alone."""
    with closing(sqlite3.connect(f"file:{results / 'mlflow.db'}?mode=ro", uri=True)) as database:
        return database.execute(statement).fetchall()
