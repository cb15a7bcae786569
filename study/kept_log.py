"""Where the log of a run goes: into the results folder, or from this machine into an object store now and then."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from study.location import is_remote
from study.log import StudyLog
from study.results import ResultsFolder, numbered
from study.whole_files import write_whole

TAKEN_EVERY_S = 60.0


@contextmanager
def kept_log(folder: ResultsFolder, attempt: int, every_s: float = TAKEN_EVERY_S) -> Iterator[None]:
    """Log into ``RESULTS/log.jsonl`` while the block runs.

    An object store cannot append. There each run has a log of its own, ``log/ATTEMPT/0001.jsonl`` and so on, which is
    written on this machine and taken there now and then, what is new of it; a run that is killed leaves out what came
    after the last time.

    Args:
        folder: the results folder.
        attempt: number of the run's lease.
        every_s: seconds from one time to the next.
    """
    if not is_remote(folder.root):
        with StudyLog(folder.log_file):
            yield
        return
    with TemporaryDirectory(prefix="bimp-log-") as scratch:
        log = StudyLog(Path(scratch), in_parts=True)
        taker = _Taker(log, folder.logs / numbered(attempt))
        ended = threading.Event()

        def take_on() -> None:
            while not ended.wait(every_s):
                taker.take()

        taking = threading.Thread(target=take_on, name="log", daemon=True)
        taking.start()
        try:
            with log:
                yield
        finally:
            ended.set()
            taking.join()
            taker.take()


class _Taker:
    """Copies the files of a log that have grown since the last time; those that are full, once."""

    def __init__(self, log: StudyLog, place: Path) -> None:
        self._log = log
        self._place = place
        self._taken: dict[str, int] = {}

    def take(self) -> None:
        for file in self._log.files:
            # A store that refuses is told of by whoever writes records there; the next time takes these lines too.
            with suppress(Exception):
                if file.stat().st_size != self._taken.get(file.name):
                    content = file.read_bytes()
                    write_whole(self._place / file.name, content)
                    self._taken[file.name] = len(content)
