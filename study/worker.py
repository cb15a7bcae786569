"""The function that Ray Tune runs on a worker. Kept apart from the driver's modules, so that workers start fast."""

from __future__ import annotations

import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ray import tune

from bimp.config import ConfigError
from study.records import read_record, write_record
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
        _record_failure(assignment, error)


def _record_failure(assignment: TrialAssignment, error: Exception) -> None:
    folder = ResultsFolder(Path(assignment.results))
    path = folder.live_record(assignment.key)
    # Of a network that cannot be built on this node, nothing can be counted.
    params = 0 if isinstance(error, ConfigError) else None
    record = read_record(path) if path.exists() else initial_record(assignment, "unknown", params)
    cause = f"{type(error).__name__}: {error}".splitlines()[0]
    write_record(record.sealed("failed", cause, record.started_at + record.seconds), path)
    folder.errors.mkdir(exist_ok=True)
    folder.error(assignment.key).write_text("".join(traceback.format_exception(error)))
