"""Where things lie in a results folder, which may also be a place in an object store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from study.record_files import KEY
from study.smoothing_records import SMOOTHING_FOLDER
from study.whole_files import FoundFile, found_files, make_folder

_RECORD = "record.parquet"


class ResultsFolderError(ValueError):
    """A results folder that this study cannot have: it holds another one, or another run works in it."""


@dataclass(frozen=True)
class ResultsFolder:
    """The layout of one study's results.

    ``records/KEY.parquet`` sealed records, the truth, ``records/compacted.parquet`` many of them in one file;
    ``live/KEY/ATTEMPT/`` record, checkpoint and, at its end, weights of a trial under way;
    ``weights/KEY.pt`` final weights of a confirm trial; ``smoothing/KEY.parquet`` how alike its rows become;
    ``study.yaml`` and ``plan.json`` what was asked for; ``data.json`` what the data holds; ``earlier/`` study files of
    cells that were dropped since; ``journal/`` what was begun; ``lease/`` who works here; ``log.jsonl``, in an object
    store ``log/``, what happened when; ``errors/KEY.txt`` tracebacks of failed trials; ``packing.json`` what a probe on
    a GPU found; ``data/`` the datasets, for nodes that do not see the driver's; ``mlflow.db`` the mirror; ``tables/``
    what was made of it.

    A trial is attempted anew when its worker is lost and when the study is started again. Each attempt has a folder of
    its own (:func:`attempt_name`): a worker that everybody gave up, and that still writes, disturbs none.
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
    def data_file(self) -> Path:
        """What the datasets hold, by fingerprint."""
        return self.root / "data.json"

    @property
    def journal(self) -> Path:
        return self.root / "journal"

    @property
    def leases(self) -> Path:
        return self.root / "lease"

    @property
    def log_file(self) -> Path:
        """What happened when; older lines are in ``log.jsonl.1`` and so on."""
        return self.root / "log.jsonl"

    @property
    def packing_file(self) -> Path:
        """What a trial of each cell took of a GPU, where it was to be found out."""
        return self.root / "packing.json"

    @property
    def logs(self) -> Path:
        """In an object store, where nothing can be appended: a folder for each run, by the number of its lease."""
        return self.root / "log"

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

    def live_record(self, key: str, attempt: str) -> Path:
        return self.live_folder(key) / _file_name(attempt) / _RECORD

    def checkpoint(self, key: str, attempt: str) -> Path:
        return self.live_folder(key) / _file_name(attempt) / "checkpoint.pt"

    def live_weights(self, key: str, attempt: str) -> Path:
        """The final weights until the trial is sealed."""
        return self.live_folder(key) / _file_name(attempt) / "weights.pt"

    def attempts(self, key: str) -> list[str]:
        """The attempts at a trial that have a record, newest first."""
        files = (file.path for file in found_files(self.live_folder(key)))
        return sorted({path.parent.name for path in files if path.name == _RECORD}, reverse=True)

    def live_keys(self) -> list[str]:
        """The trials under way, or left unfinished, with whatever there is of them."""
        return sorted({file.path.relative_to(self.live).parts[0] for file in found_files(self.live)})

    def live_records(self) -> dict[str, FoundFile]:
        """By key, of every trial under way, or left unfinished, the record of its newest attempt; ordered by key."""
        newest = {}
        for file in found_files(self.live):
            parts = file.path.relative_to(self.live).parts
            if len(parts) == 3 and parts[2] == _RECORD:
                newest[parts[0]] = file
        return newest

    def final_weights(self, key: str) -> Path:
        return self.weights / f"{_file_name(key)}.pt"

    def smoothing(self, key: str) -> Path:
        return self.root / SMOOTHING_FOLDER / f"{_file_name(key)}.parquet"

    @property
    def folders(self) -> tuple[Path, ...]:
        """Everything in it that is a folder where it is there, but for what was made of the records."""
        inputs = (self.records, self.live, self.journal, self.leases, self.weights, self.earlier_studies, self.errors)
        return (*inputs, self.root / SMOOTHING_FOLDER)

    def create(self) -> None:
        """Make the folders that are missing."""
        for folder in (self.records, self.live, self.weights):
            make_folder(folder)


def numbered(lease: int) -> str:
    """The number of a lease in the name of a file: later ones come later in order."""
    return f"{lease:06d}"


def attempt_name(lease: int, launch: int) -> str:
    """The name of the ``launch``-th attempt at a trial by the run that holds the ``lease``; in order of time."""
    return f"{numbered(lease)}-{launch:03d}"


FIRST_ATTEMPT = attempt_name(1, 1)


def _file_name(key: str) -> str:
    """The key of a trial, which may have been read from somebody's file: it must not lead out of the folder."""
    if not KEY.fullmatch(key):
        raise ResultsFolderError(f"{key!r}: not the key of a trial, which has letters, digits, - and _ alone")
    return key
