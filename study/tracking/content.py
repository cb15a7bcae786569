"""What MLflow shows of a cell and of a record: parameters, tags and metrics, as plain values.

Nothing here talks to a server, and everything is a function of the plan and the record alone: the same files
give the same rows, whenever they are mirrored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from statistics import fmean, pstdev
from typing import Any, NamedTuple, TypeGuard

from study.records import EpochRecord, TrialRecord
from study.tracking.names import PlannedCell, model_title, value_text

RUN_STATUS = {
    "running": "RUNNING",
    "finished": "FINISHED",
    "pruned": "FINISHED",
    "superseded": "FINISHED",
    "diverged": "FAILED",
    "failed": "FAILED",
}
"""MLflow's status for each of ours. Pruned counts as FINISHED: MLflow's list paints KILLED in the red of FAILED, and
most search trials are pruned. The tags ``status`` and ``reason`` tell what happened in our words."""

SOURCE_TAGS = {"mlflow.source.name": "run_study.py", "mlflow.source.type": "LOCAL"}
"""What MLflow's list shows as a run's source."""

LONGEST_TEXT = 500
"""Characters of a tag or parameter: the cause of a failure can be longer than MLflow takes; the record has it all."""

# fmt: off
_PARAMETERS = (
    "dataset", "backbone", "layers", "budget", "hidden_dim", "heads", "params", "placement", "gated_layers", "gate",
    "num_clusters", "sigma_m", "unsupervised_weight", "readout", "head", "out_dim", "pos_enc_dim", "semantics",
    "departures",
    "batch_size", "learning_rate", "lr_factor", "lr_patience", "min_lr", "max_epochs", "time_limit_s",
    "seed", "fold",
)
_TRIAL_TAGS = (
    "study", "cell", "phase", "status", "reason", "number", "chosen_from", "dataset", "backbone", "placement", "gate",
    "budget", "layers", "seed", "fold", "semantics", "device", "git_commit", "git_dirty", "data_fingerprint",
)
_CELL_PARAMETERS = (
    "dataset", "backbone", "layers", "budget", "hidden_dim", "placement", "gate", "num_clusters", "sigma_m",
    "unsupervised_weight",
)
# Seeds and folds may become more in an edit of the study file, and MLflow can alter no parameter.
_CELL_TAGS = ("dataset", "backbone", "placement", "gate", "budget", "layers", "seeds", "folds")
# fmt: on


PARENT_TAG = "mlflow.parentRunId"
"""The tag by which MLflow nests runs."""

_COMMIT_TAG = "mlflow.source.git.commit"

TRIAL_TAG_NAMES = frozenset({"level", "trial_key", "model", PARENT_TAG, _COMMIT_TAG, *_TRIAL_TAGS, *SOURCE_TAGS})
"""All tags that a trial's run can have from here; people add others."""


class MetricRow(NamedTuple):
    """One point of a curve; ``milliseconds`` since 1970."""

    name: str
    value: float
    milliseconds: int
    step: int


def trial_parameters(record: TrialRecord) -> dict[str, str]:
    """The hyperparameters that apply to the trial, as MLflow's parameters."""
    skipped = set() if record.backbone == "gat" else {"heads"}
    if not record.task.startswith("graph_"):
        skipped.add("readout")
    in_half = {} if record.precision == "float32" else {"precision": record.precision}
    return {**_present([name for name in _PARAMETERS if name not in skipped], vars(record)), **in_half}


def trial_tags(record: TrialRecord) -> dict[str, str]:
    """What a researcher filters by; the tag ``trial_key`` is how the run is found again."""
    tags = {
        "level": "trial",
        "trial_key": record.key,
        "model": model_title(record.backbone, record.placement, record.gate),
        **_present(_TRIAL_TAGS, vars(record)),
        **SOURCE_TAGS,
    }
    return tags if record.git_commit is None else {**tags, _COMMIT_TAG: record.git_commit}


def cell_parameters(cell: PlannedCell) -> dict[str, str]:
    """What is fixed for every trial of the cell."""
    return _present(_CELL_PARAMETERS, vars(cell))


def cell_tags(cell: PlannedCell, study: str) -> dict[str, str]:
    """The tags of a cell's run."""
    return {
        "level": "cell",
        "study": study,
        "cell": cell.id,
        "model": model_title(cell.backbone, cell.placement, cell.gate),
        **_present(_CELL_TAGS, vars(cell)),
        **SOURCE_TAGS,
    }


def study_tags(study: str, caption: str, cells: int) -> dict[str, str]:
    """The tags of the run of a study of so many ``cells``; MLflow shows the caption as its description."""
    described = {"mlflow.note.content": caption} if caption else {}
    return {"level": "study", "study": study, "cells": str(cells), **SOURCE_TAGS, **described}


def epoch_metrics(record: TrialRecord, after: int) -> list[MetricRow]:
    """The curves of the epochs after number ``after``; step and time are those of the epoch.

    ``*_metric`` goes by the name of the task's metric (``val_accuracy``), ``seconds`` as ``epoch_seconds``.
    Values that do not exist or are not finite make no point: MLflow would draw an infinity as 1.8e308.
    """
    rows: list[MetricRow] = []
    for epoch in record.epochs:
        if epoch.epoch > after:
            for column in fields(EpochRecord):
                if column.name not in ("epoch", "ended_at"):
                    name = _metric_name(column.name, record.metric)
                    _append(rows, name, getattr(epoch, column.name), epoch.ended_at, epoch.epoch)
    return rows


def final_metrics(record: TrialRecord) -> list[MetricRow]:
    """The values of a sealed trial's last model in evaluation mode, at the last epoch's step.

    Train and validation as ``train_accuracy_final`` ..., which MLflow sorts beside the curve ``train_accuracy`` (of
    the model while it changed); test, which has no curve, as ``test_accuracy``. Empty while the trial runs.
    """
    rows: list[MetricRow] = []
    if record.status == "running":
        return rows
    ended_at = end_of(record)
    for split, ending in (("train", "_final"), ("val", "_final"), ("test", "")):
        for kind, name in (("metric", record.metric), ("loss", "loss")):
            _append(rows, f"{split}_{name}{ending}", getattr(record, f"{split}_{kind}"), ended_at, record.num_epochs)
    _append(rows, "epochs", record.num_epochs, ended_at, record.num_epochs)
    _append(rows, "seconds", record.seconds, ended_at, record.num_epochs)
    return rows


@dataclass(frozen=True, kw_only=True)
class ConfirmResult:
    """What a cell's summary needs of a finished confirm trial."""

    ended_at: float
    key: str
    metric: str
    train: float | None
    val: float | None
    test: float | None


def confirm_result(record: TrialRecord) -> ConfirmResult | None:
    """The record's part in its cell's summary; None where it has none."""
    if record.phase != "confirm" or record.status != "finished" or not _is_number(record.test_metric):
        return None
    return ConfirmResult(
        ended_at=end_of(record),
        key=record.key,
        metric=record.metric,
        train=record.train_metric,
        val=record.val_metric,
        test=record.test_metric,
    )


def summary_metrics(results: Iterable[ConfirmResult]) -> list[MetricRow]:
    """Mean and, of two or more, population standard deviation over a cell's finished confirm trials, as in the tables.

    Step i is the summary of the first i that ended, so that a mirror which watched them and one made afterwards
    hold the same rows; the last step is the result.
    """
    ordered = sorted(results, key=lambda result: (result.ended_at, result.key))
    rows: list[MetricRow] = []
    for count, last in enumerate(ordered, start=1):
        _append(rows, "confirm_finished", count, last.ended_at, count)
        for split in ("test", "train", "val"):
            values = [value for result in ordered[:count] if _is_number(value := getattr(result, split))]
            if len(values) == count:
                _append(rows, f"{split}_{last.metric}_mean", fmean(values), last.ended_at, count)
                spread = pstdev(values) if count > 1 else None
                _append(rows, f"{split}_{last.metric}_std", spread, last.ended_at, count)
    return rows


def end_of(record: TrialRecord) -> float:
    """When the record's last known event was, in Unix seconds."""
    if record.ended_at is not None:
        return record.ended_at
    return record.epochs[-1].ended_at if record.epochs else record.started_at


def milliseconds(seconds: float) -> int:
    """Unix seconds as MLflow counts them."""
    return round(seconds * 1000)


def _is_number(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _append(rows: list[MetricRow], name: str, value: float | None, at: float, step: int) -> None:
    if _is_number(value):
        rows.append(MetricRow(name, float(value), milliseconds(at), step))


def _metric_name(column: str, metric: str) -> str:
    if column == "seconds":
        return "epoch_seconds"
    return column.removesuffix("metric") + metric if column.endswith("_metric") else column


def _present(names: Iterable[str], values: Mapping[str, Any]) -> dict[str, str]:
    texts = {name: value_text(values[name]) for name in names}
    return {name: text[:LONGEST_TEXT] for name, text in texts.items() if text}
