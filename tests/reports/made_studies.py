"""Results folders with known numbers: what a study would have left behind."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from study.records import EpochRecord, Status, TrialRecord, write_record

Cell = dict[str, Any]

TITLES = {"zinc": "ZINC", "digits": "Digits", "enzymes": "ENZYMES", "cluster": "CLUSTER", "tsp": "TSP"}
METRICS = {
    "zinc": "mae",
    "digits": "accuracy",
    "enzymes": "accuracy",
    "cluster": "balanced_accuracy",
    "tsp": "f1",
}
SEEDS = (41, 95, 12, 35)


def vanilla(dataset: str, backbone: str, layers: int | None = 4, budget: int | None = 100_000, **changes: Any) -> Cell:
    metric = METRICS.get(dataset, "accuracy")
    return {
        "id": f"{dataset}-{backbone}-none-L{layers}-{budget}",
        "dataset": dataset,
        "dataset_title": TITLES.get(dataset, dataset),
        "metric": metric,
        "direction": "min" if metric == "mae" else "max",
        "backbone": backbone,
        "layers": layers,
        "budget": budget,
        "hidden_dim": None,
        "placement": "none",
        "gate": None,
        "num_clusters": None,
        "sigma_m": None,
        "unsupervised_weight": None,
        "seeds": list(SEEDS),
        "folds": None,
        **changes,
    }


def gated(dataset: str, backbone: str, placement: str | None = "boosting", **changes: Any) -> Cell:
    cell = vanilla(dataset, backbone)
    fixed = {"placement": placement, "gate": "bilateral", "num_clusters": 8, "sigma_m": 0.5, "unsupervised_weight": 1.0}
    cell |= fixed | changes
    if "id" not in changes:
        cell["id"] = f"{dataset}-{backbone}-{placement}-{cell['gate']}-L{cell['layers']}-{cell['budget']}"
    return cell


def trial(
    cell: Mapping[str, Any],
    seed: int,
    test_metric: float | None = None,
    *,
    train_metric: float | None = None,
    fold: int | None = None,
    num_epochs: int = 3,
    params: int = 99_000,
    status: Status = "finished",
    reason: str | None = "max_epochs",
    phase: str = "confirm",
    learning_rate: float = 1e-3,
    started_at: float = 100.0,
    **chosen: Any,
) -> TrialRecord:
    """A trial of ``cell``; ``chosen`` gives the values that the cell leaves to the search."""
    values = {
        "layers": 4,
        "hidden_dim": 70,
        **{key: value for key, value in cell.items() if value is not None and key in _CHOSEN},
        **chosen,
    }
    config = {"dataset": cell["dataset"], "seed": seed, "fold": fold, "train": {"learning_rate": learning_rate}}
    identity = json.dumps([cell["id"], phase, config, values], sort_keys=True)
    return TrialRecord(
        key=hashlib.sha256(identity.encode()).hexdigest()[:20],
        study="made",
        cell=cell["id"],
        phase=phase,
        status=status,
        reason=reason,
        number=0 if phase == "search" else None,
        chosen_from=None,
        dataset=cell["dataset"],
        dataset_title=cell["dataset_title"],
        task="graph_classification",
        metric=cell["metric"],
        direction=cell["direction"],
        backbone=cell["backbone"],
        layers=values["layers"],
        hidden_dim=values["hidden_dim"],
        heads=1,
        budget=values.get("budget"),
        params=params,
        placement=values.get("placement", "boosting"),
        gated_layers=(),
        gate=values.get("gate"),
        num_clusters=values.get("num_clusters"),
        sigma_m=values.get("sigma_m"),
        unsupervised_weight=values.get("unsupervised_weight"),
        readout="mean",
        head="mlp",
        semantics="paper",
        batch_size=128,
        learning_rate=learning_rate,
        lr_factor=0.5,
        lr_patience=10,
        min_lr=1e-5,
        max_epochs=1000,
        time_limit_s=None,
        seed=seed,
        fold=fold,
        train_metric=test_metric if train_metric is None else train_metric,
        val_metric=0.5,
        test_metric=test_metric,
        train_loss=0.1,
        val_loss=0.2,
        test_loss=0.3,
        seconds=10.0,
        started_at=started_at,
        ended_at=started_at + 10.0,
        device="cpu",
        threads=1,
        git_commit=None,
        git_dirty=None,
        data_fingerprint="0f",
        config_json=json.dumps(config),
        versions_json="{}",
        epochs=tuple(_epoch(epoch) for epoch in range(1, num_epochs + 1)),
    )


_CHOSEN = ("layers", "budget", "hidden_dim", "placement", "gate", "num_clusters", "sigma_m", "unsupervised_weight")


def _epoch(epoch: int) -> EpochRecord:
    return EpochRecord(
        epoch=epoch,
        learning_rate=1e-3,
        train_loss=0.1,
        train_unsupervised_loss=None,
        train_metric=0.5,
        val_loss=0.2,
        val_unsupervised_loss=None,
        val_metric=0.5,
        gate_min=None,
        gate_max=None,
        gate_std=None,
        seconds=1.0,
        ended_at=1.0,
    )


def runs(cell: Mapping[str, Any], tests: Sequence[float], **changes: Any) -> list[TrialRecord]:
    """A finished confirm run of each seed, in the cell's order, with these test metrics."""
    return [trial(cell, seed, test, **changes) for seed, test in zip(cell["seeds"], tests, strict=True)]


def write_study(
    folder: Path, cells: Sequence[Cell], trials: Iterable[TrialRecord], caption: str | None = None, study: str = "made"
) -> Path:
    records = folder / "records"
    records.mkdir(parents=True, exist_ok=True)
    plan = {"format": 1, "study": study, "caption": caption, "cells": list(cells)}
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    for record in trials:
        (records / f"{record.key}.parquet").write_bytes(_file_of(pickle.dumps(record)))
    return folder


@cache
def _file_of(pickled: bytes) -> bytes:
    """The content of a record's file: most studies of these tests have the same trials."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "record.parquet"
        write_record(pickle.loads(pickled), path)
        return path.read_bytes()


def write_used_data(folder: Path, title: str, **splits: int) -> Path:
    """What the study's data holds, which all its trials name by the fingerprint 0f."""
    used = {"dataset": title.lower(), "title": title, "origin": "made", "graphs": sum(splits.values())}
    content = {"format": 1, "datasets": {"0f": {**used, "split_graphs": splits}}}
    (folder / "data.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def worked_study(folder: Path) -> Path:
    """The study whose tables lie in ``expected/``: every kind of row, with numbers that can be worked by hand."""
    zinc = [
        gcn := vanilla("zinc", "gcn"),
        bi_gcn := gated("zinc", "gcn", num_clusters=None, sigma_m=None),
        uniform_gcn := gated("zinc", "gcn", gate="uniform"),
        interleaved_gcn := gated("zinc", "gcn", "interleaved"),
        graphsage := vanilla("zinc", "graphsage"),
        gat := vanilla("zinc", "gat"),
        bi_gat := gated("zinc", "gat"),
        explicit := gated("zinc", "gated_gcn", "2,4"),
        deep := vanilla("zinc", "gcn", 16, 500_000),
        bi_deep := gated("zinc", "gcn", layers=16, budget=500_000),
    ]
    digits = [
        digits_gcn := vanilla("digits", "gcn", seeds=[41]),
        digits_8 := gated("digits", "gcn", seeds=[41], id="digits-bi-8", num_clusters=8),
        digits_16 := gated("digits", "gcn", seeds=[41], id="digits-bi-16", num_clusters=16),
    ]
    odd_title = r"R&D_100%~^\{ü}$#"
    folds = {"dataset_title": odd_title, "seeds": [41], "folds": [0, 1, 2]}
    enzymes = [
        enzymes_gat := vanilla("enzymes", "gat", **folds),
        enzymes_bi := gated("enzymes", "gat", **folds),
        enzymes_dense := gated("enzymes", "gat", "dense", **folds),
    ]
    epochs = [100, 101, 101, 103]
    trials = [
        *(
            trial(gcn, seed, test, train_metric=0.3, num_epochs=number, params=103_077)
            for seed, test, number in zip(SEEDS, [0.45, 0.47, 0.45, 0.47], epochs, strict=True)
        ),
        *runs(bi_gcn, [0.40, 0.40, 0.40, 0.40], num_clusters=9, sigma_m=0.371, params=125_651),
        *runs(uniform_gcn, [0.38, 0.42, 0.42, 0.38], params=125_651),
        *runs(interleaved_gcn, [0.45, 0.47, 0.45, 0.47]),
        *runs(graphsage, [0.468, 0.468, 0.468, 0.472], num_epochs=148),
        *runs(gat, [0.475, 0.475, 0.475, 0.475]),
        *runs(bi_gat, [0.1, 0.1, 0.1, 0.1])[:3],
        trial(bi_gat, 35, status="diverged", reason="train loss is NaN\nin epoch 3"),
        *runs(explicit, [0.33, 0.35, 0.33, 0.35]),
        *runs(deep, [0.36, 0.37, 0.37, 0.38], params=505_079),
        *runs(bi_deep, [0.27, 0.28, 0.28, 0.29], params=536_482),
        trial(digits_gcn, 41, 0.97438, train_metric=1.0),
        trial(digits_8, 41, 0.97437),
        trial(digits_16, 41, 0.9),
        *(
            trial(enzymes_gat, 41, test, fold=fold, status=status, reason=reason)
            for fold, test, status, reason in [
                (0, 0.6, "finished", "min_lr"),
                (1, None, "running", None),
                (2, 0.7, "finished", "min_lr"),
            ]
        ),
        *(trial(enzymes_bi, 41, test, fold=fold) for fold, test in enumerate([0.5, 0.7, 0.9])),
        trial(enzymes_dense, 41, phase="search", status="pruned", reason="9"),
    ]
    caption = "Made-up numbers, 100% of them"
    return write_study(folder, [*zinc, *digits, *enzymes], trials, caption, study="Worked_Study")
