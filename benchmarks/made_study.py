"""A results folder of trials that nobody trained, for what reads records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from bimp.config import ModelConfig, TrainConfig, TrialConfig
from study.assignment import TrialAssignment
from study.growing_record import initial_record
from study.records import EpochRecord, TrialRecord, write_record
from study.results import ResultsFolder

CELL = "digits-gcn-none-L2-h12"
BEGAN = 1.7e9


def make_study(root: Path, trials: int, epochs: int) -> ResultsFolder:
    """A study of one cell with so many search trials, all of which ended, in the folder ``root``."""
    folder = ResultsFolder(root)
    folder.create()
    cell = {
        "id": CELL, "dataset": "digits", "dataset_title": "Digits", "metric": "accuracy", "direction": "max",
        "backbone": "gcn", "layers": 2, "budget": None, "hidden_dim": 12, "placement": "none", "gate": None,
        "num_clusters": None, "sigma_m": None, "unsupervised_weight": None, "seeds": [41], "folds": None,
        "trials": trials, "confirm_trials": 1, "max_epochs": epochs,
    }  # fmt: skip
    folder.plan_file.write_text(json.dumps({"format": 1, "study": "made", "caption": None, "cells": [cell]}))
    values = np.random.default_rng(0)
    for number in range(trials):
        record = _record(number, epochs, values)
        write_record(record, folder.record(record.key))
    return folder


def _record(number: int, epochs: int, values: np.random.Generator) -> TrialRecord:
    training = TrainConfig(max_epochs=epochs, batch_size=128, learning_rate=float(values.random()))
    model = ModelConfig(backbone="gcn", layers=2, hidden_dim=12)
    assignment = TrialAssignment(
        key=f"{number:020x}",
        study="made",
        cell=CELL,
        phase="search",
        number=number,
        chosen_from=None,
        budget=None,
        config=TrialConfig(dataset="digits", model=model, train=training, seed=0),
        data_fingerprint="none",
        data_root="",
        results="",
        threads=1,
        use_gpu=False,
        git_commit=None,
        git_dirty=None,
    )
    history = tuple(_epoch(epoch, values) for epoch in range(1, epochs + 1))
    record = replace(initial_record(assignment, "none", params=1), started_at=BEGAN, epochs=history)
    ended = record.sealed("finished", "max_epochs", BEGAN + epochs)
    return replace(ended, seconds=float(epochs), val_metric=history[-1].val_metric, val_loss=history[-1].val_loss)


def _epoch(epoch: int, values: np.random.Generator) -> EpochRecord:
    train_loss, train_metric, val_loss, val_metric, *gate = values.random(7).tolist()
    return EpochRecord(
        epoch=epoch,
        learning_rate=1e-3,
        train_loss=train_loss,
        train_unsupervised_loss=0.5,
        train_metric=train_metric,
        val_loss=val_loss,
        val_unsupervised_loss=0.5,
        val_metric=val_metric,
        gate_min=gate[0],
        gate_max=gate[1],
        gate_std=gate[2],
        seconds=1.0,
        ended_at=BEGAN + epoch,
    )
