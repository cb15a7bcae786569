"""What ``plan`` tells of a study's hours: from a measurement, from earlier records, or epochs alone."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from study.cluster import cores_here, fit_on_gpus
from study.counted import counted
from study.plan import StudyPlan
from study.plan.effort import efforts
from study.plan.hours import Estimate, estimate
from study.spec import ResourcesSpec, StudySpec


class EstimateError(ValueError):
    """An estimate that cannot be made; says what is missing."""


def planned_hours(
    plan: StudyPlan, spec: StudySpec, *, earlier: Path | None, data: Path | None, slots: int | None
) -> Estimate:
    """The estimate.

    Args:
        plan: of the study.
        spec: the study.
        earlier: a results folder whose records tell how long an epoch takes; None: none does.
        data: the prepared data to measure on; None: nothing is measured.
        slots: that there are; None: those of this machine, by its cores alone where it has no GPU. A study that has a
            ``max_concurrent`` of less uses no more.

    Raises:
        EstimateError: both ways are asked for, or ``earlier`` has no record that fits any cell.
        DataError, ProbeError: it cannot be measured. RecordError: a record cannot be read.
        NoStudyError, StoreAccessError: there is no study in ``earlier``.
    """
    if earlier is not None and data is not None:
        raise EstimateError("--measure and --from: found both, expected one: each tells how long an epoch takes")
    speeds = {}
    if earlier is not None:
        from study.past_speed import past_speeds

        speeds = past_speeds(earlier, plan.cells)
        if not speeds:
            raise EstimateError(
                f"--from {earlier}: found no record of the datasets, backbones and sizes of {plan.name}; measure with "
                "--measure, or name another results folder"
            )
    elif data is not None:
        from study.measured_speed import measured_speeds

        speeds = measured_speeds(plan, spec, data, lambda line: sys.stderr.write(f"{line}\n"))
    count, known_from = (slots, "--slots") if slots is not None else _slots_here(spec.resources)
    most = spec.resources.max_concurrent
    if most is not None and most <= count:
        count, known_from = most, "resources.max_concurrent"
    return estimate(efforts(plan, spec), spec, speeds, slots=count, slots_from=known_from)


def _slots_here(resources: ResourcesSpec) -> tuple[int, str]:
    cores = cores_here()
    fit = max(1, cores // resources.cpus_per_trial)
    known_from = f"the {counted(cores, 'core')} of this machine, {resources.cpus_per_trial} a trial"
    gpus = torch.cuda.device_count() if resources.gpus_per_trial != 0 else 0
    if gpus:
        on_gpus, each = _on_gpus(gpus, resources)
        if on_gpus < fit:
            fit = max(1, on_gpus)
            known_from = f"the {'GPU' if gpus == 1 else f'{gpus} GPUs'} of this machine, {each}"
    return fit, f"{known_from}; --slots for another"


def _on_gpus(gpus: int, resources: ResourcesSpec) -> tuple[int, str]:
    if resources.gpus_per_trial == "auto":
        return gpus * resources.max_trials_per_gpu, f"at most {counted(resources.max_trials_per_gpu, 'trial')} on one"
    return fit_on_gpus(gpus, resources.gpus), f"{resources.gpus:g} a trial"
