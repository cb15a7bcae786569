"""A trial's record as it begins, as it grows by an epoch, and as it was some epochs ago."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from typing import Any

from bimp.budget import parameters_of
from bimp.engine import EpochResult
from bimp.semantics import TRAIN_SETTINGS
from bimp.tasks import task_of
from study.assignment import TrialAssignment
from study.provenance import library_versions
from study.records import EpochRecord, TrialRecord


def initial_record(assignment: TrialAssignment, device: str, params: int | None = None) -> TrialRecord:
    """The record of a trial that has no epoch yet; None: ``params`` are counted on its network."""
    config = assignment.config
    task = task_of(config.dataset)
    model, training = config.model, config.train
    placement = model.placement
    scheduled = {key: value for key, value in asdict(training).items() if key not in TRAIN_SETTINGS}
    settings: dict[str, Any] = config.settings
    return TrialRecord(
        key=assignment.key,
        study=assignment.study,
        cell=assignment.cell,
        phase=assignment.phase,
        status="running",
        reason=None,
        number=assignment.number,
        chosen_from=assignment.chosen_from,
        dataset=config.dataset,
        dataset_title=task.title,
        task=task.kind,
        metric=task.metric,
        direction=task.direction,
        backbone=model.backbone,
        layers=model.layers,
        hidden_dim=model.hidden_dim,
        heads=model.heads,
        budget=assignment.budget,
        params=parameters_of(model, task) if params is None else params,
        placement=placement if isinstance(placement, str) else ",".join(map(str, placement)),
        gated_layers=model.gated_layers,
        gate=model.gate,
        num_clusters=model.num_clusters,
        sigma_m=model.sigma_m if model.gate == "bilateral" else None,  # the uniform gate does not use it
        readout=model.readout,
        semantics=model.semantics,
        departures=json.dumps(config.departures, sort_keys=True) if config.departures else None,
        pos_enc_dim=model.pos_enc_dim,
        out_dim=model.out_dim,
        **settings,
        **scheduled,
        seed=config.seed,
        fold=config.fold,
        train_metric=None,
        val_metric=None,
        test_metric=None,
        train_loss=None,
        val_loss=None,
        test_loss=None,
        seconds=0.0,
        started_at=time.time(),
        ended_at=None,
        device=device,
        threads=assignment.threads,
        git_commit=assignment.git_commit,
        git_dirty=assignment.git_dirty,
        data_fingerprint=assignment.data_fingerprint,
        config_json=json.dumps(config.to_dict(), sort_keys=True),
        versions_json=json.dumps(library_versions(), sort_keys=True),
    )


def with_epoch(record: TrialRecord, result: EpochResult) -> TrialRecord:
    """``record`` with one more epoch."""
    train, validation = result.train, result.validation
    if train is None or validation is None:
        raise RuntimeError(f"trial {record.key}: epoch {result.epoch} has no losses and did not diverge")
    gate = validation.gate
    epoch = EpochRecord(
        epoch=result.epoch,
        learning_rate=result.learning_rate,
        train_loss=train.loss,
        train_unsupervised_loss=train.unsupervised_loss,
        train_metric=train.metric,
        val_loss=validation.loss,
        val_unsupervised_loss=validation.unsupervised_loss,
        val_metric=validation.metric,
        gate_min=gate.minimum if gate else None,
        gate_max=gate.maximum if gate else None,
        gate_std=gate.std if gate else None,
        seconds=result.seconds - record.seconds,
        ended_at=time.time(),
    )
    return replace(
        record,
        epochs=(*record.epochs, epoch),
        seconds=result.seconds,
        val_metric=validation.metric,
        val_loss=validation.loss,
    )


def back_to(record: TrialRecord, kept: tuple[EpochRecord, ...]) -> TrialRecord:
    """``record`` as it was after its epochs ``kept``, the seconds that it had trained by then included."""
    later = sum(epoch.seconds for epoch in record.epochs[len(kept) :])
    return replace(
        record,
        status="running",
        reason=None,
        ended_at=None,
        epochs=kept,
        seconds=record.seconds - later,
        val_metric=kept[-1].val_metric,
        val_loss=kept[-1].val_loss,
    )
