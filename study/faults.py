"""Errors that are the user's to mend: shown in one line, without a traceback."""

from __future__ import annotations

import errno
from pathlib import Path

from study.location import is_remote
from study.store import store_trouble
from study.store_access import require_bucket


class StudyInterruptedError(RuntimeError):
    """A study was stopped from outside; what had ended is on record, the rest goes on at the next start."""


class FolderError(ValueError):
    """A path that is no folder and cannot be made one; names the option that gave it."""


def require_folder(path: Path, option: str) -> None:
    """Make the folder ``path``, which ``option`` named, where it is missing; of an object store find the bucket.

    Raises:
        FolderError: a file is in its way, or the place cannot be written.
        StoreAccessError: there is no such bucket, or its store cannot be asked.
    """
    if is_remote(path):
        require_bucket(path, f"name another with {option}")
        return
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderError(
            f"{path}: no folder can be made there ({error.strerror}); name another with {option}"
        ) from error


def goes_on_in(root: Path) -> str:
    """What a user is told of a study that ended before its time, in the results folder ``root``."""
    return f"nothing that ended is lost; the same command goes on in {root}"


INTERRUPTIONS = (StudyInterruptedError,)

_NO_SUCH_PLACE = {
    errno.EEXIST: "found a file, expected a folder",
    errno.ENOTDIR: "found a file on the way, expected folders",
    errno.EISDIR: "found a folder, expected a file",
    errno.ENAMETOOLONG: "found a name that is too long for this disk",
    errno.ELOOP: "found a link that leads to itself",
}
"""What a disk says of a path that cannot be what it was taken for; a file that is missing is a fault of the code."""


def in_one_line(error: Exception) -> str | None:
    """What a user is told of ``error``; None for a fault of the code, which needs its traceback."""
    if isinstance(error, user_errors()):
        return str(error)
    if isinstance(error, OSError) and error.errno in _NO_SUCH_PLACE and error.filename is not None:
        # Of two names the second is what was asked for, as where a file takes its name when it is whole.
        place = error.filename2 or error.filename
        trouble = errno.EEXIST if error.errno == errno.ENOTDIR and Path(place).is_file() else error.errno
        return f"{place}: {_NO_SUCH_PLACE[trouble]}; move it away, or name another place"
    refusal = store_trouble(error)
    if refusal is not None:
        return f"{refusal}; once this is mended the same command goes on"
    return None


def user_errors() -> tuple[type[Exception], ...]:
    """Every error that a command shows in one line; the packages that raise them are loaded only now."""
    from bimp.config import ConfigError
    from bimp.data import DataError
    from bimp.measurement import DivergedError
    from bimp.released import ReleasedError
    from reports import ResultsError
    from study.best import BestError
    from study.cluster import ClusterError
    from study.cluster_address import ClusterAddressError
    from study.found_study import NoStudyError
    from study.given_place import GivenPlaceError
    from study.journal import JournalError
    from study.lease import LeaseLostError
    from study.location import LocationError
    from study.node_check import NodeError
    from study.node_code import CodeError
    from study.planned_hours import EstimateError
    from study.probe import ProbeError
    from study.records import RecordError
    from study.results import ResultsFolderError
    from study.smoothing import SmoothingError
    from study.spec import SpecError
    from study.status import StatusError
    from study.store_access import StoreAccessError
    from study.tracking import MirrorError

    return (
        BestError,
        ClusterAddressError,
        ClusterError,
        CodeError,
        ConfigError,
        DataError,
        FolderError,
        DivergedError,
        EstimateError,
        GivenPlaceError,
        JournalError,
        LeaseLostError,
        LocationError,
        MirrorError,
        NodeError,
        NoStudyError,
        ProbeError,
        RecordError,
        ReleasedError,
        ResultsError,
        ResultsFolderError,
        SmoothingError,
        SpecError,
        StatusError,
        StoreAccessError,
        StudyInterruptedError,
    )
