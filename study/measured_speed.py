"""Seconds an epoch of cells to come, by training a few batches of each cell's heaviest model on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from bimp.config import TrialConfig
from bimp.data import open_prepared
from study.plan import StudyPlan
from study.plan.heaviest import heaviest
from study.plan.hours import Speed
from study.probe import probe
from study.provenance import device_name
from study.spec import StudySpec


def measured_speeds(
    plan: StudyPlan, spec: StudySpec, data: Path, tell: Callable[[str], object] = lambda line: None
) -> dict[str, Speed]:
    """By cell; on a GPU if trials are to have one and this machine has, else on as many threads as a trial has.

    Args:
        plan: of the study.
        spec: the study.
        data: folder of its prepared datasets.
        tell: takes a line for every cell that is begun.

    Raises:
        DataError: a dataset is not prepared. ProbeError: a model cannot be trained.
    """
    resources = spec.resources
    uses_gpu = resources.gpus_per_trial != 0 and torch.cuda.is_available()
    device = torch.device("cuda" if uses_gpu else "cpu")
    torch.set_num_threads(resources.cpus_per_trial)
    threads = "" if uses_gpu else f" with {resources.cpus_per_trial} of its cores"
    where = f"{device_name(device)}{threads}"
    instead = " (its trials are to have a GPU)" if resources.gpus_per_trial != 0 and not uses_gpu else ""
    # All of them before the first is trained: one that is missing is better told at once.
    datasets = {name: open_prepared(name, data) for name in dict.fromkeys(cell.dataset for cell in plan.cells)}
    known: dict[TrialConfig, float] = {}
    for number, cell in enumerate(plan.cells, start=1):
        tell(f"measuring cell {number} of {len(plan.cells)}: {cell.id}")
        # What does not change the work of an epoch is alike in all.
        config = replace(heaviest(cell, spec), seed=0)
        if config not in known:
            dataset = datasets[config.dataset]
            train, validation = dataset.split("train", config.fold), dataset.split("val", config.fold)
            known[config] = probe(config, train, validation, device).seconds_an_epoch
    speed_of = {cell.id: known[replace(heaviest(cell, spec), seed=0)] for cell in plan.cells}
    said = f"every trial of a cell is as slow as its heaviest model, measured on this machine{instead}: {where}"
    return {cell: Speed(seconds_an_epoch=seconds, known_from=said) for cell, seconds in speed_of.items()}
