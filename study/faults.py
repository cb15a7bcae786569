"""Errors that are the user's to mend: shown in one line, without a traceback."""

from __future__ import annotations


class StudyInterruptedError(RuntimeError):
    """A study was stopped from outside; what had ended is on record, the rest goes on at the next start."""


INTERRUPTIONS = (StudyInterruptedError,)


def user_errors() -> tuple[type[Exception], ...]:
    """Every error that a command shows in one line; the packages that raise them are loaded only now."""
    from bimp.config import ConfigError
    from bimp.data import DataError
    from bimp.engine import DivergedError
    from bimp.released import ReleasedError
    from study.cluster import ClusterError
    from study.driver import ResultsError
    from study.journal import JournalError
    from study.records import RecordError
    from study.smoothing import SmoothingError
    from study.spec import SpecError
    from study.status import StatusError

    return (
        ClusterError,
        ConfigError,
        DataError,
        DivergedError,
        JournalError,
        RecordError,
        ReleasedError,
        ResultsError,
        SmoothingError,
        SpecError,
        StatusError,
        StudyInterruptedError,
    )
