"""Who has the lease of a results folder, or had it last, as its files say it, and whether that run still works."""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from study.results import ResultsFolder
from study.typed_json import TypedJsonError, typed_json
from study.whole_files import FoundFile, found_files

EXPIRES_S = 45.0
"""After so long without a sign of life another run may take the lease."""

_SAME_MOMENT_S = 0.005
"""More than arithmetic leaves between equal times; Linux counts the begin of a process in hundredths of a second."""


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

    def written(self) -> bytes:
        """What the file says by which it takes the lease."""
        return json.dumps(asdict(self)).encode()

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


def this_process(attempt: int) -> Holder:
    """This process as the holder of the lease ``attempt``."""
    return Holder(
        attempt=attempt,
        run=uuid.uuid4().hex,
        host=socket.gethostname(),
        processes=_process_name_space(),
        pid=os.getpid(),
        process_started=_process_started(os.getpid()) or 0.0,
        seen=time.time(),
        booted=psutil.boot_time(),
    )


def claims(files: list[FoundFile]) -> list[FoundFile]:
    """Of the files of leases those by which one was taken, the newest last."""
    return [file for file in files if file.path.suffix == ".json" and lease_number(file.path)]


def _last(files: list[FoundFile]) -> Holder | None:
    taken = claims(files)
    if not taken:
        return None
    claim = taken[-1]
    names = {file.path.name for file in files}
    number = lease_number(claim.path)
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


def lease_number(path: Path) -> int:
    """Of the lease that a file in the folder of leases is of; 0: of none."""
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
