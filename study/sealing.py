"""The end of a trial: the driver turns the worker's live record into a sealed one."""

from __future__ import annotations

import time

from study.assignment import TrialAssignment
from study.attempts import newest_record
from study.growing_record import back_to, initial_record
from study.records import TrialRecord, write_record
from study.results import ResultsFolder
from study.whole_files import move, remove_folder


def seal(
    assignment: TrialAssignment, folder: ResultsFolder, *, pruned_at: int | None = None, error: str | None = None
) -> TrialRecord:
    """Write the trial's record with its final status and reason; :func:`clear_away` follows once that is done.

    The worker's own word counts first (finished, diverged, failed); then ``error``, the cause for which its worker
    was lost; then ``pruned_at``, the epoch at which its scheduler stopped it. It may be done again where the store
    refused half-way: what it reads stays.
    """
    live = newest_record(folder, assignment.key, assignment.attempt) or initial_record(assignment, "unknown")
    record = _sealed(live, pruned_at, error)
    weights = folder.live_weights(record.key, assignment.attempt)
    if record.status == "finished" and weights.exists():
        # What was measured on the weights that these replace: a trial that was superseded may be begun again.
        folder.smoothing(record.key).unlink(missing_ok=True)
        move(weights, folder.final_weights(record.key))
    write_record(record, folder.record(record.key))
    return record


def clear_away(record: TrialRecord, folder: ResultsFolder) -> None:
    """Remove what only a live trial needs, once its ``record`` is sealed.

    A failed trial keeps its checkpoint: the next start of the study tries it again from there. Of any other, the
    traceback of an earlier try goes too.
    """
    if record.status != "failed":
        remove_folder(folder.live_folder(record.key))
        folder.error(record.key).unlink(missing_ok=True)


def _sealed(record: TrialRecord, pruned_at: int | None, error: str | None) -> TrialRecord:
    if record.status != "running":
        return record
    if error is not None:
        return record.sealed("failed", error, time.time())
    if pruned_at is None:
        return record.sealed("failed", f"its worker ended after epoch {record.num_epochs} without a word", time.time())
    kept = record.epochs[:pruned_at]
    if len(kept) < pruned_at:  # a disk may lose what was there when the epoch was reported
        told = f"stopped at the rung of epoch {pruned_at}, and on record are {len(kept)} of these epochs"
        return record.sealed("failed", told, time.time())
    return back_to(record, kept).sealed("pruned", f"at the rung of epoch {pruned_at}", kept[-1].ended_at)
