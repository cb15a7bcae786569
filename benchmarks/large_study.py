"""A made-up study of 100,000 trials with a million epochs, laid out as a real one whose records were compacted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bimp.config import ModelConfig, TrainConfig, TrialConfig
from study.assignment import TrialAssignment
from study.growing_record import initial_record
from study.journal import JournalEntry
from study.records import COMPACTED_FILE, SCHEMA
from study.results import ResultsFolder

DATASETS = {"digits": "Digits", "zinc": "ZINC", "cifar10": "CIFAR10", "pattern": "PATTERN", "cluster": "CLUSTER"}
BACKBONES = ("gcn", "graphsage", "gat", "gated_gcn")
SEARCH_TRIALS, SEEDS, EPOCHS = 2_480, 20, 10
CELLS = 2 * len(DATASETS) * len(BACKBONES)
TRIALS = CELLS * (SEARCH_TRIALS + SEEDS)


def make_large_study(root: Path, singles: int) -> ResultsFolder:
    """The study in the folder ``root``: records in the compacted file, ``singles`` of them in files of their own."""
    folder = ResultsFolder(root)
    folder.create()
    rng = np.random.default_rng(0)
    cells = list(_cells())
    folder.plan_file.write_text(json.dumps({"format": 1, "study": "large", "caption": None, "cells": cells}))
    records = pa.concat_tables([_records(cell, rng) for cell in cells])
    records = records.take(pc.sort_indices(records.column("key")))
    is_single = np.zeros(TRIALS, bool)
    is_single[rng.choice(TRIALS, singles, replace=False)] = True
    own = records.filter(pa.array(is_single))
    for row, key in enumerate(own.column("key").to_pylist()):
        pq.write_table(own.slice(row, 1), folder.record(key), write_page_checksum=True)
    if singles < TRIALS:
        rest = records.filter(pa.array(~is_single))
        pq.write_table(rest, folder.records / COMPACTED_FILE, row_group_size=10_000, write_page_checksum=True)
    folder.journal.mkdir()
    (folder.journal / "000001.jsonl").write_text("".join(f"{line}\n" for line in _journal(records)))
    return folder


def _cells() -> Iterator[dict[str, Any]]:
    for placement, gate in (("none", None), ("boosting", "bilateral")):
        for dataset, title in DATASETS.items():
            for backbone in BACKBONES:
                yield {
                    "id": f"{dataset}-{backbone}-{placement}-L4-100k",
                    "dataset": dataset,
                    "dataset_title": title,
                    "metric": "accuracy",
                    "direction": "max",
                    "backbone": backbone,
                    "layers": 4,
                    "budget": 100_000,
                    "hidden_dim": None,
                    "placement": placement,
                    "gate": gate,
                    "num_clusters": None,
                    "sigma_m": None,
                    "unsupervised_weight": None,
                    "seeds": list(range(SEEDS)),
                    "folds": None,
                    "trials": SEARCH_TRIALS,
                    "confirm_trials": SEEDS,
                    "max_epochs": EPOCHS,
                }


def _records(cell: dict[str, Any], rng: np.random.Generator) -> pa.Table:
    """The trials of a cell: searched ones with a configuration each, then one of them again with every seed."""
    count = SEARCH_TRIALS + SEEDS
    place = np.arange(count)
    is_confirm = place >= SEARCH_TRIALS
    fixed = _record_that_begins(cell)
    config = json.loads(fixed["config_json"])
    rates = np.where(is_confirm, 0.5, rng.random(count))
    seeds = np.where(is_confirm, place - SEARCH_TRIALS, 0)
    changing: dict[str, Any] = {
        "key": [hashlib.sha256(f"{cell['id']} {number}".encode()).hexdigest()[:20] for number in place],
        "phase": np.where(is_confirm, "confirm", "search"),
        "status": np.where(is_confirm | (place % 8 == 0), "finished", "pruned"),
        "number": pa.array(place, mask=is_confirm),
        "seed": seeds,
        "learning_rate": rates,
        "config_json": [
            json.dumps({**config, "seed": seed, "train": {**config["train"], "learning_rate": rate}})
            for seed, rate in zip(seeds.tolist(), rates.tolist(), strict=True)
        ],
        "started_at": 1.7e9 + 60 * rng.random(count),
        "test_metric": pa.array(rng.random(count), mask=~is_confirm),
        **{name: rng.random(count) for name in ("train_metric", "val_metric", "train_loss", "val_loss")},
        "epochs": _epochs(count, rng),
    }
    columns = [pa.array(changing.get(entry.name, [fixed.get(entry.name)] * count), entry.type) for entry in SCHEMA]
    return pa.table(columns, schema=SCHEMA)


def _record_that_begins(cell: dict[str, Any]) -> dict[str, Any]:
    model = ModelConfig(backbone=cell["backbone"], layers=4, hidden_dim=64)
    training = TrainConfig(max_epochs=EPOCHS, batch_size=128, learning_rate=1e-3)
    given = TrialAssignment(
        key="",
        study="large",
        cell=cell["id"],
        phase="search",
        number=0,
        chosen_from=None,
        budget=cell["budget"],
        config=TrialConfig(dataset=cell["dataset"], model=model, train=training, seed=0),
        data_fingerprint="0123456789abcdef",
        data_root="",
        results="",
        threads=1,
        use_gpu=False,
        git_commit="0123abcd",
        git_dirty=False,
    )
    ended = {"reason": "max_epochs", "seconds": 100.0, "ended_at": 1.8e9}
    gated = {"placement": cell["placement"], "gate": cell["gate"]}
    return {**asdict(initial_record(given, "a processor")), **ended, **gated}


def _epochs(count: int, rng: np.random.Generator) -> pa.Array:
    kind = SCHEMA.field("epochs").type
    numbers = np.tile(np.arange(1, EPOCHS + 1), count)
    columns = [
        pa.array(numbers if entry.name == "epoch" else rng.random(count * EPOCHS), entry.type)
        for entry in kind.value_type
    ]
    rows = pa.StructArray.from_arrays(columns, fields=list(kind.value_type))
    return pa.ListArray.from_arrays(pa.array(np.arange(0, count * EPOCHS + 1, EPOCHS), pa.int32()), rows, type=kind)


def _journal(records: pa.Table) -> Iterator[str]:
    columns = records.select(["cell", "number", "key", "learning_rate"])
    searched = columns.filter(pc.is_valid(columns.column("number")))
    for row in searched.sort_by([("number", "ascending"), ("cell", "ascending")]).to_pylist():
        values = {"learning_rate": row.pop("learning_rate")}
        yield json.dumps(asdict(JournalEntry(**row, values=values)))
