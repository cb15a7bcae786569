"""Which records of a results folder are new or have changed since the mirror last looked."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from study.record_files import row_groups
from study.records import COMPACTED_FILE, RecordError, TrialRecord, is_single, read_record, records_in, single_files
from study.results import ResultsFolder
from study.store import store_trouble
from study.whole_files import FoundFile, found_files, stamp

_log = logging.getLogger(__name__)
_MOST_LOOKS = 3


class RecordChanges:
    """Reads ``records/`` and ``live/`` and remembers what it has read.

    Args:
        folder: the results folder.
        study: its study's name, for warnings.
    """

    def __init__(self, folder: ResultsFolder, study: str) -> None:
        self._folder = folder
        self._compacted = folder.records / COMPACTED_FILE
        self._study = study
        self._seen: dict[Path, tuple[object, ...]] = {}

    def forget_all_but(self, keys: Collection[str]) -> None:
        """Give everything again at the next look, but what files of their own say of the trials ``keys``."""
        kept = [self._folder.record(key) for key in keys]
        self._seen = {path: self._seen[path] for path in kept if path in self._seen}

    def forget(self, keys: Collection[str]) -> None:
        """Give the records of these trials again at the next look."""
        for key in keys:
            self._seen.pop(self._folder.record(key), None)

    def look(self) -> Iterator[TrialRecord]:
        """The records that are new or have changed, sealed or live; what is no record is passed over and said once."""
        for _ in range(_MOST_LOOKS):
            # Listed before the compacted file is opened: what is gone when its turn comes has its row there then.
            files = self._current_files()
            yield from self._read_compacted(but=files)
            vanished = False
            for file in files.values():
                try:
                    record = self._read(file)
                except FileNotFoundError:
                    vanished |= file.path.parent == self._folder.records
                else:
                    if record is not None:
                        yield record
            if not vanished:
                return
            self._seen.pop(self._compacted, None)

    def starts(self) -> Iterator[float]:
        """When each sealed trial began, in Unix seconds."""
        compacted = [self._compacted] if self._compacted.exists() else []
        for path in [*single_files(self._folder.records), *compacted]:
            with suppress(RecordError):  # said when its turn comes
                for table in row_groups(path, ["started_at"]):
                    yield from table.column("started_at").to_pylist()

    def _current_files(self) -> dict[str, FoundFile]:
        """Of every trial that has a file of its own the one that speaks last: a failed one that is tried again has two.

        A live record speaks last beside one in the compacted file, which takes in no trial that has a live record.
        """
        files = {file.path.stem: file for file in found_files(self._folder.records) if is_single(file.path)}
        for key, file in self._folder.live_records().items():
            if key not in files or file.modified > files[key].modified:
                files[key] = file
        return files

    def _read_compacted(self, but: Collection[str]) -> Iterator[TrialRecord]:
        try:
            found = stamp(self._compacted)
        except FileNotFoundError:
            return
        if self._seen.get(self._compacted) == found:
            return
        try:
            for table in row_groups(self._compacted):
                yield from (record for record in records_in(table) if record.key not in but)
        except RecordError as error:
            self._warn(error)
        self._seen[self._compacted] = found

    def _read(self, file: FoundFile) -> TrialRecord | None:
        """The record in ``file``; None where it is known already or no record; FileNotFoundError where it is gone."""
        if self._seen.get(file.path) == file.stamp:
            return None
        record = None
        try:
            record = read_record(file.path)
        except RecordError as error:
            stamp(file.path)  # a live record vanishes when its trial is sealed, also between two lines of ours
            self._warn(error)
        self._seen[file.path] = file.stamp
        return record

    def _warn(self, error: RecordError) -> None:
        """Say that there is no record in a file.

        Raises:
            RecordError: the store refuses, so that nobody knows what there is: the next look may tell.
        """
        if store_trouble(error) is not None:
            raise error
        _log.warning("MLflow's mirror of study %s leaves out a record: %s", self._study, error)
