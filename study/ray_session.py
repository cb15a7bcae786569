"""The processes of a local Ray: a session of their own, whether they are there, and the end of those that are left."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from study.signals import TAKEN, kill

ENDS_WITHIN_S = 5.0
"""How long the kernel may take to end what was killed."""

_NEEDED = ("gcs_server", "raylet")


class RaySession:
    """What a local Ray starts. A signal to the group of processes of the driver, or from its terminal, is not for it.

    It ends with the driver all the same: Ray has the kernel kill what it starts when the driver is gone, and workers
    follow the raylet.
    """

    def __init__(self) -> None:
        self._started: list[tuple[str, subprocess.Popen[bytes]]] = []

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Let Ray start its processes in this block as leaders of sessions; it has no setting for it."""
        from ray._private import services

        module: Any = services
        own = module.ConsolePopen
        module.ConsolePopen = self._leaders(own)
        try:
            yield
        finally:
            module.ConsolePopen = own

    @property
    def gone(self) -> bool:
        """Whether one of its processes has ended without which no trial runs."""
        return self.missing is not None

    @property
    def missing(self) -> str | None:
        """The name of that process."""
        ended = (name for name, process in self._started if name in _NEEDED and process.poll() is not None)
        return next(ended, None)

    def end(self) -> None:
        """End what is left of it, a suspended worker too; returns once nothing is, or after a few seconds."""
        until = time.monotonic() + ENDS_WITHIN_S
        while time.monotonic() < until:
            # Those that start others first.
            for _, process in self._started:
                with suppress(OSError):
                    process.kill()
                process.poll()
            left = self._left()
            if not left:
                break
            kill(left)
            psutil.wait_procs(left, timeout=0.1)
        self._started.clear()

    def _left(self) -> list[psutil.Process]:
        """Its processes that run or are suspended, whoever is their parent now."""
        leaders = {process.pid for _, process in self._started}
        left = []
        for process in psutil.process_iter():
            with suppress(OSError, psutil.Error):
                if os.getsid(process.pid) in leaders and process.status() != psutil.STATUS_ZOMBIE:
                    left.append(process)
        return left

    def _leaders(self, own: type[Any]) -> type[Any]:
        started = self._started

        class Leader(own):  # type: ignore[misc]
            def __init__(
                self, command: list[str], *, preexec_fn: Callable[[], object] | None = None, **options: Any
            ) -> None:
                def begin() -> None:
                    # Ray ends its processes by a signal that the driver blocks.
                    signal.pthread_sigmask(signal.SIG_UNBLOCK, TAKEN)
                    if preexec_fn is not None:
                        preexec_fn()

                super().__init__(command, preexec_fn=begin, start_new_session=True, **options)
                started.append((Path(command[0]).name, self))

        return Leader
