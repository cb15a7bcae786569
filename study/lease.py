"""One run at a time in a results folder, on any disk and in any object store: a lease with a heartbeat and a number.

A run takes the lease by creating ``lease/NUMBER.json``, which only one can do, and shows every few seconds in
``lease/NUMBER.beat`` that it lives. Who finds the beat of the highest number standing still takes the next number. The
highest number holds: a run that was away so long that another took its place finds that out before it writes again.
What its workers still write goes to folders that carry its number, where nobody looks any more.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

import psutil

from study.journal import newest_journal
from study.results import ResultsFolder, ResultsFolderError, numbered
from study.typed_json import TypedJsonError, typed_json
from study.whole_files import FoundFile, create_once, found_files, make_folder, write_whole

HEARTBEAT_S = 10.0
EXPIRES_S = 45.0
"""After so long without a sign of life another run may take the lease."""

_SAME_MOMENT_S = 0.005
"""More than arithmetic leaves between equal times; Linux counts the begin of a process in hundredths of a second."""

WAIT_ELSEWHERE = "wait for it, or name another with --results"


class LeaseLostError(RuntimeError):
    """Another run has taken the results folder: this one was away for longer than its lease."""


@dataclass(frozen=True, kw_only=True)
class Holder:
    """The run that has, or had, the lease.

    Attributes:
        attempt: number of its lease, from 1: how often somebody began to work in the folder.
        run: different for any two runs.
        host, processes, pid, process_started: its process; ``processes`` is the name space that its number is of, since
            containers of one host have numbers of their own.
        seen: its last sign of life, in Unix seconds by its own clock.
        ended: whether it gave the lease back.
        waits: why no trial of it, or which one, can begin, as it said with its last sign; None where all can.
        booted: when its machine began, by its clock as it was when the lease was taken; None: not said.
    """

    attempt: int
    run: str
    host: str
    processes: str
    pid: int
    process_started: float
    seen: float
    ended: bool = False
    waits: str | None = None
    booted: float | None = None

    @property
    def is_on_this_host(self) -> bool:
        """Whether its process can be looked at from here."""
        return (self.host, self.processes) == (socket.gethostname(), _process_name_space())

    @property
    def works(self) -> bool:
        """Whether it works now, as far as can be told at once: by its process on this host, elsewhere by its beat."""
        if self.ended:
            return False
        if self.is_on_this_host:
            started = _process_started(self.pid)
            if started is None:
                return False
            # Where the clock was set, Linux says that the machine and all of its processes began so much earlier or
            # later; other systems keep what they said.
            moved = 0.0 if self.booted is None else psutil.boot_time() - self.booted
            return any(abs(started - self.process_started - by) < _SAME_MOMENT_S for by in (0.0, moved))
        return time.time() - self.seen < EXPIRES_S

    def describe(self) -> str:
        """Who it is, for people."""
        return f"process {self.pid} of {self.host}, last sign of life {max(0.0, time.time() - self.seen):.0f} s ago"


@dataclass(frozen=True)
class _Beat:
    """A sign of life."""

    seen: float
    waits: str | None = None


def last_holder(folder: ResultsFolder) -> Holder | None:
    """The run that has the lease, or had it last; None if none ever had."""
    try:
        return _last(found_files(folder.leases))
    except FileNotFoundError:  # who took the lease since they were listed has removed the earlier ones
        return _last(found_files(folder.leases))


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
        if last is not None and not last.ended and (last.works or self._shows_life(last)):
            raise ResultsFolderError(
                f"{self._folder.root}: another run works in this folder ({last.describe()}); {self._mend}"
            )
        # Somebody may have removed the leases, or copied the rest: a journal of a higher number would hide this run's.
        self.attempt = 1 + max(0 if last is None else last.attempt, newest_journal(self._folder.journal))
        self._shown = time.monotonic()
        self._held = create_once(self._file("json"), _written(self.attempt))
        return self._held

    def _shows_life(self, last: Holder) -> bool:
        """Whether a run elsewhere, by whose clock its last beat is old, lives all the same: clocks may differ."""
        if last.is_on_this_host:
            return False
        self._tell(
            f"{self._folder.root}: another run worked here ({last.describe()}) and did not say that it ended; waiting "
            f"{EXPIRES_S:g} s for a sign of it"
        )
        self._pause(EXPIRES_S)
        now = last_holder(self._folder)
        return now is not None and not now.ended and (now.attempt, now.seen) != (last.attempt, last.seen)

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
        if any(_number(claim.path) > self.attempt for claim in _claims(found_files(self._folder.leases))):
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
            if _number(file.path) < self.attempt:
                with suppress(OSError):
                    file.path.unlink(missing_ok=True)

    def _file(self, kind: str) -> Path:
        return self._folder.leases / f"{numbered(self.attempt)}.{kind}"


def _written(attempt: int) -> bytes:
    holder = Holder(
        attempt=attempt,
        run=uuid.uuid4().hex,
        host=socket.gethostname(),
        processes=_process_name_space(),
        pid=os.getpid(),
        process_started=_process_started(os.getpid()) or 0.0,
        seen=time.time(),
        booted=psutil.boot_time(),
    )
    return json.dumps(asdict(holder)).encode()


def _claims(files: list[FoundFile]) -> list[FoundFile]:
    """Of the files of leases those by which one was taken, the newest last."""
    return [file for file in files if file.path.suffix == ".json" and _number(file.path)]


def _last(files: list[FoundFile]) -> Holder | None:
    claims = _claims(files)
    if not claims:
        return None
    claim = claims[-1]
    names = {file.path.name for file in files}
    number = _number(claim.path)
    try:
        holder = typed_json(Holder, claim.path.read_bytes())
    except TypedJsonError:
        # Created a moment ago and not yet written, or by a crash never: its age tells.
        holder = Holder(attempt=number, run="", host="?", processes="", pid=0, process_started=0.0, seen=claim.modified)
    beat = claim.path.with_suffix(".beat")
    seen, waits = holder.seen, holder.waits
    if beat.name in names:
        with suppress(OSError, TypedJsonError):
            shown = typed_json(_Beat, beat.read_bytes())
            seen, waits = shown.seen, shown.waits
    ended = claim.path.with_suffix(".end").name in names
    return Holder(**{**asdict(holder), "attempt": number, "seen": seen, "ended": ended, "waits": waits})


def _number(path: Path) -> int:
    return int(path.stem) if path.stem.isdecimal() else 0


def _process_name_space() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:  # no Linux
        return ""


def _process_started(pid: int) -> float | None:
    """When the process began, which tells it from a later one of the same number; None if there is none."""
    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None
