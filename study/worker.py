"""The function that Ray Tune runs on a worker. Kept apart from the driver's modules, so that workers start fast.

What it reports is one of these:

- ``epoch``, ``val_metric``, ``ended``: one more epoch (:class:`study.live_trial.TrialProgress`);
- ``epochs``, ``on_record``: one more epoch of trials that are trained together, and those whose end is on record
  (:class:`study.together.TogetherProgress`);
- ``came_apart``: the cause for which such trials cannot be, and are to be tried one by one;
- ``store_trouble``: the results folder refuses for now, and the trial waits (:class:`study.store.StoreTrouble`);
- ``out_of_memory``, ``cause``: memory ran out beside other trials, and the trial ended here without a last word;
- ``unfit_node``, ``cause``: the node, by its id, is not fit for the study, and the trial did not begin;
- ``failed``: the cause of a failure that the results folder did not take.

Each may carry ``log``: the lines that were logged meanwhile (:mod:`study.worker_log`).
"""

from __future__ import annotations

import gc
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import ray
import torch
from ray import tune

from bimp.config import ConfigError
from study.assignment import TrialAssignment
from study.attempts import newest_record
from study.growing_record import initial_record
from study.location import location
from study.node_check import NodeNeeds, look_here
from study.out_of_memory import failed_alone, one_line, out_of_memory
from study.records import write_record
from study.results import ResultsFolder
from study.store import StoreTrouble, require_store, store_trouble
from study.together import train_together
from study.trial import train_trial
from study.whole_files import make_folder, write_whole
from study.worker_log import WorkerLog


def run_assignment(config: dict[str, Any]) -> None:
    """The trainable: train the assigned trial and report every epoch to Tune."""
    assignment = TrialAssignment.from_dict(config)
    unmet = NodeNeeds(versions=assignment.versions, cuda=assignment.use_gpu).unmet(look_here())
    if unmet is not None:
        tune.report({"unfit_node": ray.get_runtime_context().get_node_id(), "cause": unmet})
        return
    for report in reports_of(assignment):
        tune.report(report)


def reports_of(assignment: TrialAssignment) -> Iterator[dict[str, Any]]:
    """Train the trial; what the driver is to hear of it, and what was logged meanwhile."""
    with WorkerLog() as log:
        for report in _news_of(assignment):
            lines = log.take()
            yield {**report, "log": lines} if lines else report


def _news_of(assignment: TrialAssignment) -> Iterator[dict[str, Any]]:
    """Train the trial; what the driver is to hear of it.

    A fault of the trial's own ends it as ``failed`` with its cause on record, and does not raise: it would fail again.
    So does memory that runs out, if the trial had it to itself; else the driver is told, and the record stays as it is.

    Only where the error left this process no GPU (a bad index on it, a fault of the card), giving that back raises too:
    the process ends, in which every later trial would fail, and the driver has the trial tried in others.
    """
    last = None
    try:
        for news in train_together(assignment) if assignment.companions else train_trial(assignment):
            yield {"store_trouble": news.cause} if isinstance(news, StoreTrouble) else asdict(news)
    except Exception as error:  # noqa: BLE001 - the boundary between one trial's code and the study
        last = _end_of(assignment, error)
    finally:
        if last is not None or assignment.use_gpu:
            # Only now: the error's traceback held what the trial had in memory, and the next may run in this process.
            _free_memory(assignment)
    if last is not None:
        yield last


def _end_of(assignment: TrialAssignment, error: Exception) -> dict[str, Any] | None:
    memory = out_of_memory(error)
    if assignment.companions:  # by itself, each will tell what is wrong with it
        return {"came_apart": one_line(error) if memory is None else memory.cause}
    if memory is not None and assignment.alone not in (memory.place, "host"):
        return {"out_of_memory": memory.place, "cause": memory.cause}
    cause = one_line(error) if memory is None else failed_alone(memory, assignment.config)
    try:
        _record_failure(assignment, error, cause)
    except Exception as refusal:
        if not isinstance(refusal, OSError) and store_trouble(refusal) is None:
            raise
        return {"failed": cause}
    return None


def _record_failure(assignment: TrialAssignment, error: Exception, cause: str) -> None:
    folder = ResultsFolder(location(assignment.results))
    require_store(folder)
    # Of a network that cannot be built on this node, nothing can be counted.
    record = newest_record(folder, assignment.key, assignment.attempt) or initial_record(
        assignment, "unknown", params=0 if isinstance(error, ConfigError) else None
    )
    failed = record.sealed("failed", cause, time.time())
    write_record(failed, folder.live_record(assignment.key, assignment.attempt))
    make_folder(folder.errors)
    write_whole(folder.error(assignment.key), "".join(traceback.format_exception(error)).encode())


def _free_memory(assignment: TrialAssignment) -> None:
    gc.collect()  # a run on a GPU and its captured steps refer to each other
    if assignment.use_gpu:
        # Each stream that steps were captured on keeps one for each thread, of 32 MiB on an H100; no captured step that
        # writes there is left.
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()
