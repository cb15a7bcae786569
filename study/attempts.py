"""What the attempts at an unfinished trial left in the results folder."""

from __future__ import annotations

from study.location import is_remote
from study.records import CutRecordError, TrialRecord, read_record
from study.results import ResultsFolder, attempt_name
from study.store import store_trouble
from study.whole_files import found_files, make_folder, move


def attempts_until(folder: ResultsFolder, key: str, attempt: str | None = None) -> list[str]:
    """The attempts at the trial ``key`` that have a record, newest first; none of them later than ``attempt``.

    A later one is somebody else's, who was given the trial when this worker was given up.
    """
    return [name for name in folder.attempts(key) if attempt is None or name <= attempt]


def newest_record(folder: ResultsFolder, key: str, attempt: str | None = None) -> TrialRecord | None:
    """The record of the newest of :func:`attempts_until` that can be read; None where none can.

    A worker may die before its first record, and the disk may lose one: that is no reason to end a study.

    Raises:
        RecordError: the store refuses, so that nobody knows what was written, or it is of a schema version that is not
            read, whose trial would begin again.
    """
    for name in attempts_until(folder, key, attempt):
        try:
            return read_record(folder.live_record(key, name))
        except CutRecordError as error:
            if store_trouble(error) is not None:
                raise
    return None


def adopt_nameless_attempts(folder: ResultsFolder) -> None:
    """Make attempts of what versions without them left of unfinished trials, directly in ``live/KEY``.

    Nobody else may work in the folder.
    """
    if is_remote(folder.root):  # those versions wrote to none
        return
    nameless = attempt_name(0, 1)  # leases begin at 1: whatever came after is newer
    for file in found_files(folder.live):
        if file.path.parent.parent == folder.live:
            make_folder(file.path.parent / nameless)
            move(file.path, file.path.parent / nameless / file.path.name)
