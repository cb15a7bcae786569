"""What the attempts at an unfinished trial left in the results folder."""

from __future__ import annotations

from study.records import RecordError, TrialRecord, read_record
from study.results import ResultsFolder
from study.store import store_trouble


def attempts_until(folder: ResultsFolder, key: str, attempt: str | None = None) -> list[str]:
    """The attempts at the trial ``key`` that have a record, newest first; none of them later than ``attempt``.

    A later one is somebody else's, who was given the trial when this worker was given up.
    """
    return [name for name in folder.attempts(key) if attempt is None or name <= attempt]


def newest_record(folder: ResultsFolder, key: str, attempt: str | None = None) -> TrialRecord | None:
    """The record of the newest of :func:`attempts_until` that can be read; None where none can.

    A worker may die before its first record, and the disk may lose one: that is no reason to end a study.

    Raises:
        RecordError: the store refuses, so that nobody knows what was written.
    """
    for name in attempts_until(folder, key, attempt):
        try:
            return read_record(folder.live_record(key, name))
        except RecordError as error:
            if store_trouble(error) is not None:
                raise
    return None
