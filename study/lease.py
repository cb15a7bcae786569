"""One run at a time in a results folder, on any disk and in any object store: a lease with a heartbeat and a number.

A run takes the lease by creating ``lease/NUMBER.json``, which only one can do, and shows every few seconds in
``lease/NUMBER.beat`` that it lives. Who finds the beat of the highest number standing still takes the next number. The
highest number holds: a run that was away so long that another took its place finds that out before it writes again.
What its workers still write goes to folders that carry its number, where nobody looks any more.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from study.journal import newest_journal
from study.lease_holder import EXPIRES_S, Holder, claims, last_holder, lease_number, this_process
from study.results import ResultsFolder, ResultsFolderError, numbered
from study.whole_files import create_once, found_files, make_folder, write_whole

HEARTBEAT_S = 10.0
WAIT_ELSEWHERE = "wait for it, or name another with --results"


class LeaseLostError(RuntimeError):
    """Another run has taken the results folder: this one was away for longer than its lease."""


class Lease:
    """The right to write in a results folder, while the block lasts.

    Args:
        folder: the results folder.
        mend: what to do where another run works in it, for the error.
        pause: waits so many seconds.
        tell: takes a line that says why it waits.

    Attributes:
        attempt: number of the lease; 0 before it is taken.
        waits: what the next sign of life says that this run waits for; see :class:`Holder`.
        on_loss: called, in a thread of the lease's own, once another run has taken the folder.

    Raises:
        ResultsFolderError: on entering: another run works in the folder.
    """

    def __init__(
        self,
        folder: ResultsFolder,
        mend: str = WAIT_ELSEWHERE,
        *,
        pause: Callable[[float], object] = time.sleep,
        tell: Callable[[str], object] = lambda line: None,
    ) -> None:
        self.attempt = 0
        self.waits: str | None = None
        self.on_loss: Callable[[LeaseLostError], object] = lambda error: None
        self._folder = folder
        self._mend = mend
        self._pause = pause
        self._tell = tell
        self._held = False
        self._lost = False
        self._shown = 0.0
        self._ended = threading.Event()
        self._heart = threading.Thread(target=self._beat_on, name="lease", daemon=True)

    def __enter__(self) -> Lease:
        make_folder(self._folder.leases)
        try:
            while not self._take():
                pass
            self._remove_earlier()
            self._heart.start()
        except BaseException:
            if self._held:
                self.give_back()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._heart.join()
        self.give_back()

    def give_back(self) -> None:
        """Say that this run has ended, so that the next one need not wait."""
        # Where the folder does not take it, who comes next waits for the beat to stand still.
        with suppress(Exception):
            write_whole(self._file("end"), b"")

    def require(self) -> None:
        """Check, before something is written, that no other run has taken the folder.

        Raises:
            LeaseLostError: one has.
            OSError: nobody knows, since the folder cannot be read.
        """
        if not self._lost and time.monotonic() - self._shown > EXPIRES_S - 2 * HEARTBEAT_S:
            self._beat()
        if self._lost:
            raise self._loss()

    def _take(self) -> bool:
        """Take the next number; False if somebody else took it at the same time.

        Raises:
            ResultsFolderError: another run works here.
        """
        last = last_holder(self._folder)
        at_work = None if last is None or last.ended else last if last.works else self._alive_elsewhere(last)
        if at_work is not None:
            raise ResultsFolderError(
                f"{self._folder.root}: another run works in this folder ({at_work.describe()}); {self._mend}"
            )
        # Somebody may have removed the leases, or copied the rest: a journal of a higher number would hide this run's.
        self.attempt = 1 + max(0 if last is None else last.attempt, newest_journal(self._folder.journal))
        self._shown = time.monotonic()
        self._held = create_once(self._file("json"), this_process(self.attempt).written())
        return self._held

    def _alive_elsewhere(self, last: Holder) -> Holder | None:
        """The run that works here though the last beat elsewhere is old, if one does after a wait.

        It is ``last``, whose clock may differ, or one that took the lease meanwhile.
        """
        if last.is_on_this_host:
            return None
        self._tell(
            f"{self._folder.root}: another run worked here ({last.describe()}) and did not say that it ended; waiting "
            f"{EXPIRES_S:g} s for a sign of it"
        )
        self._pause(EXPIRES_S)
        now = last_holder(self._folder)
        if now is None or now.ended or (now.attempt, now.seen) == (last.attempt, last.seen):
            return None
        return now

    def _beat_on(self) -> None:
        while not self._ended.wait(HEARTBEAT_S):
            # A folder that refuses is tried again at the next beat; whoever writes there meets it, and says so.
            with suppress(Exception):
                self._beat()
            if self._lost:
                self.on_loss(self._loss())
                return

    def _beat(self) -> None:
        """Show that this run lives, unless another has taken its place."""
        if any(lease_number(claim.path) > self.attempt for claim in claims(found_files(self._folder.leases))):
            self._lost = True
            return
        write_whole(self._file("beat"), json.dumps({"seen": time.time(), "waits": self.waits}).encode())
        self._shown = time.monotonic()

    def _loss(self) -> LeaseLostError:
        return LeaseLostError(
            f"{self._folder.root}: another run took this folder, since this one gave no sign of life for more than "
            f"{EXPIRES_S:g} s; it stops here, and the other goes on"
        )

    def _remove_earlier(self) -> None:
        for file in found_files(self._folder.leases):
            if lease_number(file.path) < self.attempt:
                with suppress(OSError):
                    file.path.unlink(missing_ok=True)

    def _file(self, kind: str) -> Path:
        return self._folder.leases / f"{numbered(self.attempt)}.{kind}"
