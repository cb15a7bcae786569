"""Where things lie in a results folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from study.smoothing_records import SMOOTHING_FOLDER


class ResultsFolderError(ValueError):
    """A results folder that this study cannot have: it holds another one, or another run works in it."""


@dataclass(frozen=True)
class ResultsFolder:
    """The layout of one study's results.

    ``records/KEY.parquet`` sealed records, the truth; ``live/KEY/`` record and checkpoint of a trial under way;
    ``weights/KEY.pt`` final weights of a confirm trial; ``smoothing/KEY.parquet`` how alike its rows become;
    ``study.yaml`` and ``plan.json`` what was asked for;
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
        return self.errors / f"{key}.txt"

    @property
    def tune(self) -> Path:
        """Scratch space of Ray Tune; nothing in it is read again."""
        return self.root / ".tune"

    def record(self, key: str) -> Path:
        return self.records / f"{key}.parquet"

    def live_folder(self, key: str) -> Path:
        return self.live / key

    def live_record(self, key: str) -> Path:
        return self.live / key / "record.parquet"

    def checkpoint(self, key: str) -> Path:
        return self.live / key / "checkpoint.pt"

    def final_weights(self, key: str) -> Path:
        return self.weights / f"{key}.pt"

    def smoothing(self, key: str) -> Path:
        return self.root / SMOOTHING_FOLDER / f"{key}.parquet"

    @contextmanager
    def for_one_run(self) -> Iterator[None]:
        """Keep other runs on this machine or this shared disk out; a run that dies lets go.

        Raises:
            ResultsFolderError: another run works in this folder.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.root / ".lock", timeout=0):
                yield
        except Timeout as error:
            raise ResultsFolderError(
                f"{self.root}: another run works in this folder; wait for it, or name another with --results"
            ) from error

    def create(self) -> None:
        """Make the folders that are missing."""
        for folder in (self.records, self.live, self.weights):
            folder.mkdir(parents=True, exist_ok=True)
