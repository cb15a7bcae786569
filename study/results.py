"""Where things lie in a results folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from study.smoothing_records import SMOOTHING_FOLDER

_KEY = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_-]*")


class ResultsFolderError(ValueError):
    """A results folder that this study cannot have: it holds another one, or another run works in it."""


@dataclass(frozen=True)
class ResultsFolder:
    """The layout of one study's results.

    ``records/KEY.parquet`` sealed records, the truth, ``records/compacted.parquet`` many of them in one file;
    ``live/KEY/`` record and checkpoint of a trial under way;
    ``weights/KEY.pt`` final weights of a confirm trial; ``smoothing/KEY.parquet`` how alike its rows become;
    ``study.yaml`` and ``plan.json`` what was asked for; ``earlier/`` study files of cells that were dropped since;
    ``journal.jsonl`` what was begun; ``mlflow.db`` the mirror; ``tables/`` what was made of it.
    """

    root: Path

    @property
    def records(self) -> Path:
        return self.root / "records"

    @property
    def live(self) -> Path:
        return self.root / "live"

    @property
    def weights(self) -> Path:
        return self.root / "weights"

    @property
    def study_file(self) -> Path:
        return self.root / "study.yaml"

    @property
    def earlier_studies(self) -> Path:
        """Study files whose cells the study has no more."""
        return self.root / "earlier"

    @property
    def plan_file(self) -> Path:
        return self.root / "plan.json"

    @property
    def journal_file(self) -> Path:
        return self.root / "journal.jsonl"

    @property
    def tables(self) -> Path:
        return self.root / "tables"

    @property
    def errors(self) -> Path:
        """Tracebacks of failed trials."""
        return self.root / "errors"

    def error(self, key: str) -> Path:
        return self.errors / f"{_file_name(key)}.txt"

    def record(self, key: str) -> Path:
        return self.records / f"{_file_name(key)}.parquet"

    def live_folder(self, key: str) -> Path:
        return self.live / _file_name(key)

    def live_record(self, key: str) -> Path:
        return self.live_folder(key) / "record.parquet"

    def checkpoint(self, key: str) -> Path:
        return self.live_folder(key) / "checkpoint.pt"

    def final_weights(self, key: str) -> Path:
        return self.weights / f"{_file_name(key)}.pt"

    def smoothing(self, key: str) -> Path:
        return self.root / SMOOTHING_FOLDER / f"{_file_name(key)}.parquet"

    @contextmanager
    def for_one_run(self, mend: str = "wait for it, or name another with --results") -> Iterator[None]:
        """Keep other runs on this machine or this shared disk out; a run that dies lets go.

        Args:
            mend: what to do where another one works in it.

        Raises:
            ResultsFolderError: another run works in this folder.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.root / ".lock", timeout=0):
                yield
        except Timeout as error:
            raise ResultsFolderError(f"{self.root}: another run works in this folder; {mend}") from error

    @property
    def in_use(self) -> bool:
        """Whether a run works here at this moment."""
        lock = self.root / ".lock"
        if not lock.exists():
            return False
        try:
            with FileLock(lock, timeout=0):
                return False
        except Timeout:
            return True
        except PermissionError:  # somebody else's folder: no way to know
            return False

    def create(self) -> None:
        """Make the folders that are missing."""
        for folder in (self.records, self.live, self.weights):
            folder.mkdir(parents=True, exist_ok=True)


def _file_name(key: str) -> str:
    """The key of a trial, which may have been read from somebody's file: it must not lead out of the folder."""
    if not _KEY.fullmatch(key):
        raise ResultsFolderError(f"{key!r}: not the key of a trial, which has letters, digits, - and _ alone")
    return key
