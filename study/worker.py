"""The function that Ray Tune runs on a worker. Kept apart from the driver's modules, so that workers start fast."""

from __future__ import annotations

import time
import traceback
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ray import tune

from bimp.config import ConfigError
from study.records import RecordError, TrialRecord, read_record, write_record
from study.results import ResultsFolder
from study.trial import TrialAssignment, initial_record, train_trial


def run_assignment(config: dict[str, Any]) -> None:
    """The trainable: train the assigned trial and report every epoch to Tune.

    A fault of the trial's own ends it as ``failed`` with its cause on record, and does not raise: Tune would start
    it again, and it would fail again. Tune's retries are for workers that vanish.
    """
    assignment = TrialAssignment.from_dict(config)
    try:
        for progress in train_trial(assignment):
            tune.report(asdict(progress))
    except Exception as error:  # noqa: BLE001 - the boundary between one trial's code and the study
        # A disk that takes no record takes no cause either; the driver will say that the trial ended without a word.
        with suppress(OSError):
            _record_failure(assignment, error)


def _record_failure(assignment: TrialAssignment, error: Exception) -> None:
    folder = ResultsFolder(Path(assignment.results))
    cause = f"{type(error).__name__}: {error}".splitlines()[0]
    # Of a network that cannot be built on this node, nothing can be counted.
    record = _record_so_far(assignment, folder, params=0 if isinstance(error, ConfigError) else None)
    write_record(record.sealed("failed", cause, time.time()), folder.live_record(assignment.key))
    folder.errors.mkdir(exist_ok=True)
    folder.error(assignment.key).write_text("".join(traceback.format_exception(error)))


def _record_so_far(assignment: TrialAssignment, folder: ResultsFolder, params: int | None) -> TrialRecord:
    try:
        return read_record(folder.live_record(assignment.key))
    except RecordError:  # there is none, or it is what failed
        return initial_record(assignment, "unknown", params)
