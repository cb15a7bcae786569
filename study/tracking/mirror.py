"""MLflow as a mirror of the record files: it can be made anew from them at any time, and nothing waits for it.

One experiment a study; in it a study run holds a run for each cell, and a cell's run holds those of its trials.
A run is found again by its tags ``level`` and ``trial_key`` (or ``cell``), so a second pass updates it.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

from study.records import RecordError, TrialRecord, read_record
from study.results import ResultsFolder
from study.tracking.address import artifact_location
from study.tracking.content import (
    RUN_STATUS,
    ConfirmResult,
    cell_parameters,
    cell_tags,
    confirm_result,
    end_of,
    epoch_metrics,
    final_metrics,
    milliseconds,
    study_tags,
    summary_metrics,
    trial_parameters,
    trial_tags,
)
from study.tracking.names import cell_names, read_plan, trial_name
from study.tracking.runs import MirroredRun, MirroredRuns
from study.tracking.state import STATE_TAG, MirrorState, hash_of

_PARENT = "mlflow.parentRunId"
_log = logging.getLogger(__name__)


class MlflowMirror:
    """Brings a study's records to MLflow; reads ``plan.json``, ``records/`` and ``live/`` and writes none of them.

    All methods but the constructor raise the errors of :func:`mirror_errors`; after one, call
    :meth:`disconnect`, and the next pass finds out anew what is there.

    Args:
        tracking_uri: of an MLflow server or database.
        results: the study's results folder.

    Raises:
        MirrorError: the folder has no readable plan.
    """

    def __init__(self, tracking_uri: str, results: Path) -> None:
        self.tracking_uri = tracking_uri
        self.results = results
        self._folder = ResultsFolder(results)
        self._plan = read_plan(self._folder.plan_file)
        self._names = cell_names(self._plan.cells)
        self._runs: MirroredRuns | None = None
        self._seen: dict[Path, tuple[int, int, int]] = {}
        self._confirmed: dict[str, dict[str, ConfirmResult]] = {}
        self._ends: dict[str, float] = {}
        self._started: float | None = None

    @property
    def study(self) -> str:
        """The study's name, that of its experiment."""
        return self._plan.study

    def connect(self) -> MirroredRuns:
        """Open the experiment, with a run for the study and for every cell; what is there already is kept."""
        if self._runs is None:
            artifacts = artifact_location(self.tracking_uri, self.results)
            runs = MirroredRuns(self.tracking_uri, self.study, artifacts, self._plan.caption)
            self._open_parents(runs)
            self._runs = runs
        return self._runs

    def disconnect(self) -> None:
        """Forget what MLflow holds."""
        self._runs = None
        self._seen.clear()

    def sync_folder(self) -> int:
        """Mirror every record that is new or has changed, sealed or live, and the summaries of the cells.

        Returns:
            How many records were read for it. A file that is no record is passed over and said once.
        """
        self.connect()
        count = sum(self._sync_file(path) for path in self._current_files())
        self._write_summaries()
        return count

    def sync(self, record: TrialRecord) -> None:
        """Bring MLflow's run of this trial up to the record; an equal record changes nothing.

        Epochs that are there are not sent again. Where MLflow holds what the record denies (other parameters,
        other values of an epoch: the trial was run again elsewhere), its run is deleted and made anew.
        """
        runs = self.connect()
        self._remember(record)
        parameters, status = trial_parameters(record), RUN_STATUS[record.status]
        run = runs.find("trial", record.key)
        if run is not None and (
            MirrorState.of(run.tags).denied_by(record)
            or any(run.parameters.get(name, value) != value for name, value in parameters.items())
        ):
            runs.delete("trial", record.key)
            run = None
        if run is None:
            run = self._create_trial(runs, record)
        before = MirrorState.of(run.tags)
        after = before.after(record)
        if run.status == status and before == after:
            return
        if record.reason is None:
            runs.remove_tag(run, "reason")
        runs.write(
            run,
            metrics=epoch_metrics(record, after=before.epochs) + final_metrics(record),
            tags={**trial_tags(record), STATE_TAG: str(after)},
            parameters=parameters,
        )
        runs.set_status(run, status, milliseconds(end_of(record)))

    def begin(self) -> None:
        """Mark the study and its cells as running: it goes on."""
        self._mark_parents("RUNNING")

    def finish(self, *, complete: bool = True) -> None:
        """Mark the study and its cells as FINISHED, or as KILLED where it was interrupted."""
        self._mark_parents("FINISHED" if complete else "KILLED")

    def _current_files(self) -> list[Path]:
        """Of every trial the file that speaks last: a failed one that is tried again has a sealed and a live record."""
        files = {path.stem: path for path in sorted(self._folder.records.glob("*.parquet"))}
        for path in sorted(self._folder.live.glob("*/record.parquet")):
            with suppress(FileNotFoundError):  # sealed since it was listed
                sealed = files.get(path.parent.name)
                if sealed is None or path.stat().st_mtime_ns > sealed.stat().st_mtime_ns:
                    files[path.parent.name] = path
        return list(files.values())

    def _sync_file(self, path: Path) -> bool:
        record = self._read_changed(path)
        if record is not None:
            self.sync(record)
        return record is not None

    def _read_changed(self, path: Path) -> TrialRecord | None:
        try:
            entry = path.stat()
            stamp = (entry.st_mtime_ns, entry.st_size, entry.st_ino)
            if self._seen.get(path) == stamp:
                return None
            self._seen[path] = stamp
            return read_record(path)
        except FileNotFoundError:
            return None
        except RecordError as error:
            if path.exists():  # a live record vanishes when its trial is sealed, also between two lines of ours
                _log.warning("MLflow's mirror of study %s leaves out a record: %s", self.study, error)
            return None

    def _create_trial(self, runs: MirroredRuns, record: TrialRecord) -> MirroredRun:
        parent = runs.find("cell", record.cell) or runs.find("study", self.study)
        tags = trial_tags(record)
        if parent is not None:
            tags[_PARENT] = parent.run_id
        name = trial_name(record, self._names.get(record.cell))
        return runs.create("trial", name, milliseconds(record.started_at), tags)

    def _open_parents(self, runs: MirroredRuns) -> None:
        tags = study_tags(self.study, self._plan.caption)
        study = runs.find("study", self.study)
        if study is None:
            study = runs.create("study", f"study {self.study}", milliseconds(self._first_start()), tags)
        runs.write(study, tags=tags, parameters={"cells": str(len(self._plan.cells))})
        for cell in self._plan.cells:
            tags = {**cell_tags(cell, self.study), _PARENT: study.run_id}
            run = runs.find("cell", cell.id)
            if run is None:
                run = runs.create("cell", self._names[cell.id], milliseconds(self._first_start()), tags)
            runs.write(run, tags=tags, parameters=cell_parameters(cell))

    def _first_start(self) -> float:
        """When the study began: nothing says it, but it was not after its plan or its first trial."""
        if self._started is None:
            starts = [self._folder.plan_file.stat().st_mtime]
            for path in self._folder.records.glob("*.parquet"):
                with suppress(RecordError):  # said when its turn comes
                    starts.append(read_record(path).started_at)
            self._started = min(starts)
        return self._started

    def _remember(self, record: TrialRecord) -> None:
        self._ends[record.cell] = max(end_of(record), self._ends.get(record.cell, 0.0))
        result = confirm_result(record)
        if result is not None:
            self._confirmed.setdefault(record.cell, {})[record.key] = result

    def _write_summaries(self) -> None:
        runs = self.connect()
        for cell, results in self._confirmed.items():
            run = runs.find("cell", cell)
            rows = summary_metrics(results.values())
            state = {STATE_TAG: hash_of(rows)}
            if run is not None and run.tags.get(STATE_TAG) != state[STATE_TAG]:
                runs.write(run, metrics=rows, tags=state, parameters={})

    def _mark_parents(self, status: str) -> None:
        runs = self.connect()
        last = max([self._folder.plan_file.stat().st_mtime, *self._ends.values()])
        for cell in self._plan.cells:
            run = runs.find("cell", cell.id)
            if run is not None:
                runs.set_status(run, status, milliseconds(self._ends.get(cell.id, last)))
        study = runs.find("study", self.study)
        if study is not None:
            runs.set_status(study, status, milliseconds(last))
