"""Writing to a results folder that may be full, read-only or away for a while: said once, and tried again.

What is written is written whole (``study.whole_files``), so that a refusal leaves the old file as it was.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TypeVar

from study.location import is_client_error, is_remote
from study.results import ResultsFolder

logger = logging.getLogger(__name__)

Written = TypeVar("Written")

STORE_TROUBLES = frozenset(
    {
        errno.ENOSPC,  # full
        errno.EDQUOT,
        errno.EFBIG,
        errno.EROFS,  # not to be written
        errno.EACCES,
        errno.EPERM,
        errno.EIO,  # away, or breaking
        errno.ESTALE,
        errno.ENOTCONN,
        errno.ETIMEDOUT,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.ENODEV,
        errno.ENXIO,
    }
)
"""What a disk says that is full, that may not be written, or whose server does not answer: no fault of the code."""

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0


class StoreAwayError(OSError):
    """The results folder lacks what its run made there: its disk is not mounted, or somebody moved it."""


@dataclass(frozen=True)
class StoreTrouble:
    """The store refuses for now, with ``cause``; whoever tries waits and tries again."""

    cause: str


def store_trouble(error: BaseException | None) -> OSError | None:
    """The store's refusal that ``error`` is or was raised from; None if it is something else."""
    while error is not None:
        if isinstance(error, OSError) and (isinstance(error, StoreAwayError) or error.errno in STORE_TROUBLES):
            return error
        if is_client_error(error):
            return OSError(errno.EIO, f"{type(error).__name__}: {error}")
        error = error.__cause__
    return None


def require_store(folder: ResultsFolder) -> None:
    """Check that the results folder is where it was.

    A folder whose disk is gone must not be made anew in the place where it was mounted: what went there would be
    hidden once the disk is back.

    Raises:
        StoreAwayError: its folder of live trials is missing.
    """
    if not is_remote(folder.root) and not folder.live.is_dir():
        raise StoreAwayError(errno.ENOENT, "The results folder is not there", str(folder.root))


def waits() -> Iterator[float]:
    """Seconds between one try and the next: twice as long each time, up to :data:`LONGEST_WAIT_S`."""
    seconds = FIRST_WAIT_S
    while True:
        yield seconds
        seconds = min(2 * seconds, LONGEST_WAIT_S)


def trying(
    folder: ResultsFolder,
    act: Callable[[], Written],
    pause: Callable[[float], object],
    patience_s: float | None = None,
) -> Generator[StoreTrouble, None, Written]:
    """Do ``act`` on the store until it succeeds; yield each refusal, then ``pause``; gives what ``act`` gave.

    Args:
        folder: must be there for ``act`` to be tried.
        act: may be done again after it was refused half-way.
        pause: waits so many seconds.
        patience_s: after waiting so long, a refusal is raised. None: never.

    Raises:
        OSError: it is none of the store's, or patience ended.
    """
    waited = 0.0
    for seconds in waits():
        try:
            require_store(folder)
            return act()
        except Exception as error:
            trouble = store_trouble(error)
            if trouble is None or (patience_s is not None and waited >= patience_s):
                raise
            yield StoreTrouble(str(trouble))
        pause(seconds)
        waited += seconds
    raise AssertionError("waits end never")


class StoreNews:
    """Tells of a store that refuses, once, however many meet it, and of its return.

    Args:
        folder: the store.
        tell: takes a line. None: the log, as a warning.
    """

    def __init__(self, folder: ResultsFolder, tell: Callable[[str], None] | None = None) -> None:
        self._folder = folder
        self._tell = tell or logger.warning
        self._waiting: set[str] = set()

    def refused(self, who: str, trouble: StoreTrouble) -> None:
        """``who`` could not write."""
        if not self._waiting:
            self._tell(
                f"{self._folder.root} cannot be written ({trouble.cause}); what must be kept waits and is tried again, "
                f"at most {LONGEST_WAIT_S:g} s apart, until it can; Ctrl-C stops, and loses nothing that is on disk"
            )
        self._waiting.add(who)

    def written(self, who: str) -> None:
        """``who`` could write."""
        if who in self._waiting:
            self._waiting.remove(who)
            if not self._waiting:
                self._tell(f"{self._folder.root} can be written again; the study goes on")

    def gone(self, who: str) -> None:
        """``who`` tries no more."""
        self._waiting.discard(who)


class PatientStore:
    """The driver's way of writing: called with what is to be done, it comes back once that is done.

    Args:
        folder: the store.
        news: hears of refusals.
        pause: waits so many seconds; may raise to end the waiting.
        fence: called before each try; raises where this run may write no more.
    """

    def __init__(
        self,
        folder: ResultsFolder,
        news: StoreNews,
        pause: Callable[[float], object],
        fence: Callable[[], object] = lambda: None,
    ) -> None:
        self._folder = folder
        self._news = news
        self._pause = pause
        self._fence = fence

    def __call__(self, act: Callable[[], Written]) -> Written:
        """Do ``act``, again and again while the store refuses; gives what it gave."""

        def fenced() -> Written:
            self._fence()
            return act()

        tries = trying(self._folder, fenced, self._pause)
        while True:
            try:
                trouble = next(tries)
            except StopIteration as end:
                self._news.written("the driver")
                written: Written = end.value
                return written
            self._news.refused("the driver", trouble)
