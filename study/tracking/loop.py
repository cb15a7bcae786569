"""The thread that keeps MLflow's mirror up to date while a study runs."""

from __future__ import annotations

import logging
import shlex
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType

from study.store import store_trouble
from study.tracking.address import (
    MirrorError,
    default_tracking_uri,
    in_shell,
    masked,
    to_fill_in,
    told_error,
)
from study.tracking.mirror import MlflowMirror
from study.tracking.runs import mirror_errors

_log = logging.getLogger(__name__)

LAST_WAIT_S = 60.0
"""The longest that the end of a study waits for MLflow. What is left then is for ``rebuild-mlflow``."""

_SAID_AFTER_S = 2.0


class MirrorThread:
    """Mirrors the results folder every few seconds, and once more at the end; never raises into the study.

    A server that is down or a database that is locked is said once in the log, as a warning, and tried again in
    the next round; its return is said too.

    As a context manager it starts at the beginning of the block and stops at its end, which waits for a last pass: not
    where MLflow refuses it, and never longer than :data:`LAST_WAIT_S`.

    Args:
        tracking_uri: of an MLflow server or database; None for a database in the results folder.
        results: the study's results folder; its ``plan.json`` must be there.
        done: asked at the end of the block: whether the study has finished. A block left by an exception has not.
        ended_cells: asked then too: ids of the cells that have, where the study has not.
        tell: takes the line that says what the end waits for.
        interval_s: seconds between two passes.

    Raises:
        MirrorError: the folder has no readable plan.
    """

    def __init__(
        self,
        tracking_uri: str | None,
        results: Path,
        *,
        done: Callable[[], bool] = lambda: True,
        ended_cells: Callable[[], Collection[str]] = tuple,
        tell: Callable[[str], object] = _log.info,
        interval_s: float = 5.0,
    ) -> None:
        self._mirror = MlflowMirror(tracking_uri or default_tracking_uri(results), results)
        self._given_uri = tracking_uri
        self._tell = tell
        self._done = done
        self._ended_cells = ended_cells
        self._interval_s = interval_s
        self._stopping = threading.Event()
        self._failing = False
        self._complete = False
        self._finished = True
        self._begun = False
        # A daemon: a server that does not answer must not keep the program from ending.
        self._thread = threading.Thread(target=self._loop, name="mlflow-mirror", daemon=True)

    def __enter__(self) -> MirrorThread:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(complete=kind is None and self._done())

    def start(self) -> None:
        """Make a database of our own where there is none, then start mirroring in the background."""
        if self._mirror.tracking_uri.startswith("sqlite:"):
            self._guarded(self._connect)
        self._thread.start()

    def step(self) -> bool:
        """One pass over the folder; False where MLflow could not be reached."""
        return self._guarded(self._pass)

    def stop(self, *, complete: bool = True, timeout_s: float = LAST_WAIT_S) -> bool:
        """Make a last pass, mark the study and end the thread.

        Args:
            complete: whether the study is finished; if not, MLflow shows it as KILLED.
            timeout_s: how long to wait at most; the thread is left behind then.

        Returns:
            Whether MLflow holds everything. If not, the log says how to complete it.
        """
        began = time.monotonic()
        self._finished = complete
        self._stopping.set()
        if self._thread.ident is not None:
            self._wait(timeout_s)
        if not self._complete:
            _log.warning(
                "MLflow at %s does not hold all of study %s (waited %.0f s); the records do. Complete it with: %s",
                masked(self._mirror.tracking_uri),
                self._mirror.study,
                time.monotonic() - began,
                self._rebuild_command(),
            )
        return self._complete

    def _wait(self, timeout_s: float) -> None:
        self._thread.join(min(_SAID_AFTER_S, timeout_s))
        if self._thread.is_alive() and timeout_s > _SAID_AFTER_S:
            self._tell(
                f"what was done of {self._mirror.study} is on record; waiting for MLflow at "
                f"{masked(self._mirror.tracking_uri)} to take the last of it, at most {timeout_s:g} s"
            )
            self._thread.join(timeout_s - _SAID_AFTER_S)

    def _rebuild_command(self) -> str:
        command = f"python run_study.py rebuild-mlflow {shlex.quote(str(self._mirror.results))}"
        if self._given_uri is None:
            return command
        secret = to_fill_in(self._given_uri)
        return f"{command} --mlflow {in_shell(self._given_uri)}{f' ({secret})' if secret else ''}"

    def _loop(self) -> None:
        while True:
            self.step()
            if self._stopping.wait(self._interval_s):
                break
        self._complete = self._guarded(self._end)

    def _connect(self) -> None:
        self._mirror.connect()

    def _pass(self) -> None:
        if not self._begun:
            self._mirror.begin()
            self._begun = True
        self._mirror.sync_folder()

    def _end(self) -> None:
        self._mirror.sync_folder()
        try:
            self._mirror.sync_files()
        except MirrorError as error:
            _log.warning("%s", error)
        self._mirror.finish(complete=self._finished, ended_cells=self._ended_cells())

    def _guarded(self, act: Callable[[], None]) -> bool:
        try:
            act()
        except Exception as error:
            if not isinstance(error, mirror_errors()):
                if store_trouble(error) is None:
                    raise
                return False  # an object store is away; whoever writes there says it
            self._mirror.disconnect()
            if not self._failing:
                self._failing = True
                uri = self._mirror.tracking_uri
                _log.warning(
                    "MLflow at %s cannot be written for study %s (%s); the study goes on and its records are kept, "
                    "the mirror tries again every %g s",
                    masked(uri),
                    self._mirror.study,
                    told_error(error, uri),
                    self._interval_s,
                )
            return False
        if self._failing:
            self._failing = False
            _log.warning(
                "MLflow at %s can be written again; what study %s has on record goes there now",
                masked(self._mirror.tracking_uri),
                self._mirror.study,
            )
        return True
