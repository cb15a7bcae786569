"""``resources.gpus_per_trial: auto``: a probe of every cell on a GPU of the cluster, kept in the results folder."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

import torch

from bimp.config import TrialConfig
from bimp.layers.own import import_layer
from study.assignment import TrialAssignment
from study.cell_run import PlannedTrial
from study.out_of_memory import one_line, out_of_memory
from study.packing import Packing, Probed, packing
from study.plan import StudyPlan
from study.plan.heaviest import heaviest
from study.probe import probe
from study.results import ResultsFolder
from study.spec import ResourcesSpec, StudySpec
from study.trial import open_data
from study.whole_files import write_whole

logger = logging.getLogger(__name__)

MakeProbe = Callable[[PlannedTrial], TrialAssignment]
"""Completes a probe's trial with what only the driver knows, as for every trial."""


def packed_resources(
    plan: StudyPlan, spec: StudySpec, folder: ResultsFolder, gpus: float, make: MakeProbe
) -> tuple[ResourcesSpec, str]:
    """The study's resources with ``auto`` decided, and a sentence that says how.

    Cells that were probed in an earlier run are not probed again. A cell whose probe fails gets a GPU to itself.

    Args:
        plan: of the study.
        spec: the study.
        folder: its results folder.
        gpus: that the cluster has; without any, trials run on CPUs.
        make: completes a trial.
    """
    if not gpus:
        return spec.resources.with_gpus(0.0), "gpus_per_trial: auto: the cluster has no GPU, trials run on CPUs"
    configs = {cell.id: replace(heaviest(cell, spec), seed=0) for cell in plan.cells}
    known = _read(folder)
    missing = {name: config for config in configs.values() if (name := _name(config)) not in known}
    assignments = {name: make(_trial(name, config)) for name, config in missing.items()}
    failed: dict[str, str] = {}
    for name, outcome in probe_on_cluster(assignments, spec.resources.cpus_per_trial, gpus=1).items():
        if isinstance(outcome, Probed):
            known[name] = outcome
            write_whole(folder.packing_file, _written(known))
        else:
            failed[name] = outcome
    for cell, config in configs.items():
        if _name(config) in failed:
            logger.warning("cell %s: its probe failed (%s); a trial gets a GPU to itself", cell, failed[_name(config)])
    decided = _decided(configs, known, failed, spec.resources.max_trials_per_gpu)
    several = f"{decided.trials} trials share a GPU" if decided.trials > 1 else "a trial has a GPU to itself"
    return spec.resources.with_gpus(decided.share), f"gpus_per_trial: auto: {several} ({decided.reason})"


def _decided(
    configs: Mapping[str, TrialConfig], known: Mapping[str, Probed], failed: Mapping[str, str], most: int
) -> Packing:
    if failed:
        return Packing(trials=1, reason="a probe failed")
    return packing({cell: known[_name(config)] for cell, config in configs.items()}, most)


def probe_on_cluster(assignments: Mapping[str, TrialAssignment], cpus: int, gpus: float) -> dict[str, Probed | str]:
    """What every trial took, each tried alone on a GPU, as many at a time as there are; of a failed one why it failed.

    Args:
        assignments: the trials, by any name.
        cpus: cores of each.
        gpus: of each.
    """
    import ray  # after prepare_environment
    from ray.exceptions import RayError

    # A process for each: memory of the one before must not count.
    task = ray.remote(num_cpus=cpus, num_gpus=gpus, max_calls=1, max_retries=0)(probe_assignment)
    asked = {name: task.remote(assignment.to_dict()) for name, assignment in assignments.items()}
    found: dict[str, Probed | str] = {}
    for name, answer in asked.items():
        try:
            outcome: dict[str, Any] = ray.get(answer)
        except RayError as error:
            found[name] = one_line(error)
        else:
            found[name] = outcome["failed"] if "failed" in outcome else Probed(**outcome)
    return found


def probe_assignment(plain: dict[str, Any]) -> dict[str, Any]:
    """Run the probe in a worker: the fields of :class:`Probed`, or ``failed`` with the cause.

    On a CPU, where there is no GPU's memory to share, the memory of the process stands for it.
    """
    assignment = TrialAssignment.from_dict(plain)
    device = torch.device("cuda" if assignment.use_gpu else "cpu")
    gpu, memory = "", 0
    try:
        import_layer(assignment.config.model.backbone)
        torch.set_num_threads(assignment.threads)
        gpu, memory = _gpu(device)
        dataset = open_data(assignment)
        fold = assignment.config.fold
        found = probe(assignment.config, dataset.split("train", fold), dataset.split("val", fold), device)
    except Exception as error:  # noqa: BLE001 - the boundary between a probe and the study
        full = out_of_memory(error)
        # A GPU that others fill may not even say what it is: of the model that tells nothing.
        if full is not None and full.place == "gpu" and gpu:
            return asdict(Probed(memory_bytes=None, utilisation=None, gpu=gpu, gpu_memory=memory))
        return {"failed": one_line(error)}
    return asdict(Probed(memory_bytes=found.memory_bytes, utilisation=found.utilisation, gpu=gpu, gpu_memory=memory))


def _gpu(device: torch.device) -> tuple[str, int]:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device), torch.cuda.get_device_properties(device).total_memory
    return "none", 0


def _trial(name: str, config: TrialConfig) -> PlannedTrial:
    return PlannedTrial(key=f"probe-{name}", cell="probe", phase="search", config=config, budget=None)


def _name(config: TrialConfig) -> str:
    """The same for every configuration that takes the same."""
    text = json.dumps(replace(config, seed=0, fold=None).to_dict(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _written(known: Mapping[str, Probed]) -> bytes:
    return (json.dumps({name: asdict(probed) for name, probed in known.items()}, indent=2) + "\n").encode()


def _read(folder: ResultsFolder) -> dict[str, Probed]:
    """What earlier runs measured; nothing where there is none, or a file that cannot be read: it is measured again."""
    try:
        return {name: Probed(**plain) for name, plain in json.loads(folder.packing_file.read_bytes()).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
