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

    An object store cannot append. There each run has a log of its own, ``log/ATTEMPT.jsonl``, which is written on this
    machine and taken there now and then; a run that is killed leaves out what came after the last time.

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
        log = StudyLog(Path(scratch) / f"{numbered(attempt)}.jsonl")
        ended = threading.Event()

        def take_on() -> None:
            while not ended.wait(every_s):
                _take(log, folder)

        taking = threading.Thread(target=take_on, name="log", daemon=True)
        taking.start()
        try:
            with log:
                yield
        finally:
            ended.set()
            taking.join()
            _take(log, folder)


def _take(log: StudyLog, folder: ResultsFolder) -> None:
    for file in log.files:
        # A store that refuses is told of by whoever writes records there; the next time takes these lines too.
        with suppress(Exception):
            write_whole(folder.logs / file.name, file.read_bytes())
