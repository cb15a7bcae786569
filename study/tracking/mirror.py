"""MLflow as a mirror of the record files: it can be made anew from them at any time, and nothing waits for it.

One experiment a study; in it a study run holds a run for each cell, and a cell's run holds those of its trials.
A run is found again by its tags ``level`` and ``trial_key`` (or ``cell``), so a second pass updates it.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from study.found_study import require_study
from study.presence import who_works_here
from study.records import RecordError, TrialRecord
from study.results import ResultsFolder
from study.status import study_status
from study.tracking.address import MirrorError, artifact_location, masked
from study.tracking.changes import RecordChanges
from study.tracking.content import (
    PARENT_TAG,
    RUN_STATUS,
    TRIAL_TAG_NAMES,
    ConfirmResult,
    MetricRow,
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
from study.tracking.finished_files import FILES_TAG, FINISHED, finished_files, state_of_files
from study.tracking.names import PlannedCell, cell_names, read_plan, trial_name
from study.tracking.runs import MirroredRun, MirroredRuns, hash_of_content
from study.tracking.state import STATE_TAG, MirrorState, SummaryState

_FIRST_TRIAL_METRICS = ("learning_rate", "epochs")
"""The first metrics of an epoch and of the final values: whoever was cut off while sending these has sent those."""

_FIRST_CELL_METRICS = ("confirm_finished",)


class MlflowMirror:
    """Brings a study's records to MLflow; reads ``plan.json``, ``records/`` and ``live/`` and writes none of them.

    All methods but the constructor raise the errors of :func:`mirror_errors`; after one, call
    :meth:`disconnect`, and the next pass finds out anew what is there.

    Args:
        tracking_uri: of an MLflow server or database.
        results: the study's results folder.

    Raises:
        NoStudyError, StoreAccessError: there is no study in the folder. MirrorError: its plan cannot be read.
    """

    def __init__(self, tracking_uri: str, results: Path) -> None:
        self.tracking_uri = tracking_uri
        self.results = results
        self._folder = ResultsFolder(results)
        require_study(results)
        self._plan = read_plan(self._folder.plan_file)
        self._names = cell_names(self._plan.cells)
        self._runs: MirroredRuns | None = None
        self._changes = RecordChanges(self._folder, self._plan.study)
        self._confirmed: dict[str, dict[str, ConfirmResult]] = {}
        self._ends: dict[str, float] = {}
        self._started: float | None = None
        self._settled: dict[str, tuple[str, str]] = {}

    @property
    def study(self) -> str:
        """The study's name, that of its experiment."""
        return self._plan.study

    def connect(self) -> MirroredRuns:
        """Open the experiment, with a run for the study and for every cell; what is there already is kept."""
        if self._runs is None:
            artifacts = artifact_location(self.tracking_uri, self.results)
            runs = MirroredRuns(self.tracking_uri, self.study, artifacts, self._plan.caption, TRIAL_TAG_NAMES)
            self._open_parents(runs)
            self._look_for_losses(runs)
            self._runs = runs
        return self._runs

    def disconnect(self) -> None:
        """Forget what MLflow holds, but for the ended trials that it has taken: they are not read again for it."""
        self._runs = None
        self._changes.forget_all_but(self._settled)

    def _look_for_losses(self, runs: MirroredRuns) -> None:
        """Read again what MLflow had taken and has no more, as where its database was put back to an older state."""
        lost = []
        for key, taken in self._settled.items():
            run = runs.known("trial", key)
            if run is None or (run.state, run.status) != taken:
                lost.append(key)
        self._changes.forget(lost)
        for key in lost:
            del self._settled[key]

    def sync_folder(self) -> int:
        """Mirror every record that is new or has changed, sealed or live, and the summaries of the cells.

        Returns:
            How many records were read for it. A file that is no record is passed over and said once.
        """
        self.connect()
        count = self._sync_changes()
        while self._write_summaries():
            self._changes.forget_all_but(())  # trials of a cell whose run was made anew
            self._sync_changes()
        return count

    def _sync_changes(self) -> int:
        count = 0
        for record in self._changes.look():
            self.sync(record)
            count += 1
        return count

    def sync(self, record: TrialRecord) -> None:
        """Bring MLflow's run of this trial up to the record; an equal record changes nothing.

        Epochs that are there are not sent again. Where MLflow holds what the record denies (other parameters, other
        points: the trial was run again, here or elsewhere, from an earlier epoch), its run is deleted and made anew.
        """
        runs = self.connect()
        self._remember(record)
        parameters, status, state = trial_parameters(record), RUN_STATUS[record.status], MirrorState.after(record)
        tags = self._tags_of(runs, record)
        known = runs.known("trial", record.key)
        content = hash_of_content(tags, parameters, TRIAL_TAG_NAMES)
        if known is None or (known.status, known.state, known.content) != (status, str(state), content):
            run = self._run_to_write(runs, record, parameters)
            if record.reason is None:
                runs.remove_tag(run, "reason")
            after = MirrorState.of(run.tags).epochs
            runs.write(
                run,
                metrics=epoch_metrics(record, after) + final_metrics(record),
                tags={**tags, STATE_TAG: str(state)},
                parameters=parameters,
            )
            runs.set_status(run, status, milliseconds(end_of(record)))
            run.found = False
        if record.status == "running":
            self._settled.pop(record.key, None)
        else:
            self._settled[record.key] = (str(state), status)
            runs.close("trial", record.key)

    def sync_files(self) -> int:
        """Make the tables, pictures and the page that lie in the folder the artifacts of the study's run.

        Returns:
            How many files were sent: all where one is new, has changed or is gone, else none.

        Raises:
            MirrorError: MLflow keeps the files of this study elsewhere, since its database came with a folder that was
                copied or moved.
        """
        runs = self.connect()
        run, files = runs.find("study", self.study), finished_files(self.results)
        state = state_of_files(files)
        if run is None or run.tags.get(FILES_TAG, state_of_files(())) == state:
            return 0
        expected = artifact_location(self.tracking_uri, self.results)
        if expected is not None and runs.artifacts != expected:
            raise MirrorError(
                f"{masked(self.tracking_uri)}: keeps the files of study {self.study} at {runs.artifacts}, since it "
                "came with a copied or moved folder; the records are mirrored, the files were not sent; remove the "
                "database, and `run_study.py rebuild-mlflow` makes it anew with its files here"
            )
        runs.put_files(run, files, FINISHED)
        runs.write(run, tags={FILES_TAG: state}, parameters={})
        return len(files)

    def begin(self) -> None:
        """Mark the study and its cells as running: it goes on."""
        self._mark_parents("RUNNING", ())

    def finish(self, *, complete: bool = True, ended_cells: Collection[str] = ()) -> None:
        """Mark the study as FINISHED, or as KILLED where it was interrupted; its cells alike.

        ``ended_cells``: ids of those that are FINISHED all the same.
        """
        self._mark_parents("FINISHED" if complete else "KILLED", ended_cells)

    def mark_as_it_stands(self) -> None:
        """Mark study and cells by what is on record: FINISHED where nothing is left, KILLED where no run goes on.

        A run that works in the folder marks them itself.

        Raises:
            StatusError: there is no plan, or it cannot be read.
        """
        if who_works_here(self._folder).works:
            return
        try:
            view = study_status(self.results).view
        except RecordError:  # said when it was read; what cannot be read is missing
            self.finish(complete=False)
            return
        ended = {line.goal.cell for line in view.cells if line.ended}
        self.finish(complete=len(ended) == len(view.cells), ended_cells=ended)

    def _tags_of(self, runs: MirroredRuns, record: TrialRecord) -> dict[str, str]:
        parent = runs.known("cell", record.cell) or runs.known("study", self.study)
        tags = trial_tags(record)
        return tags if parent is None else {**tags, PARENT_TAG: parent.run_id}

    def _run_to_write(self, runs: MirroredRuns, record: TrialRecord, parameters: dict[str, str]) -> MirroredRun:
        """The trial's run if the record goes on from what it holds, else a new one in its place."""
        run = runs.find("trial", record.key)
        if run is not None and (
            MirrorState.of(run.tags).denied_by(record)
            or any(run.parameters.get(name, value) != value for name, value in parameters.items())
            or _holds_others(runs, run, epoch_metrics(record, after=0) + final_metrics(record), _FIRST_TRIAL_METRICS)
        ):
            runs.delete("trial", record.key)
            run = None
        if run is not None:
            return run
        name = trial_name(record, self._names.get(record.cell))
        return runs.create("trial", name, milliseconds(record.started_at), self._tags_of(runs, record))

    def _open_parents(self, runs: MirroredRuns) -> None:
        tags = study_tags(self.study, self._plan.caption)
        study = runs.find("study", self.study)
        if study is None:
            study = runs.create("study", f"study {self.study}", milliseconds(self._first_start()), tags)
        runs.write(study, tags=tags, parameters={"cells": str(len(self._plan.cells))})
        for cell in self._plan.cells:
            self._open_cell(runs, cell)

    def _open_cell(self, runs: MirroredRuns, cell: PlannedCell) -> MirroredRun:
        study = runs.known("study", self.study)
        tags = cell_tags(cell, self.study) | ({} if study is None else {PARENT_TAG: study.run_id})
        run = runs.find("cell", cell.id)
        if run is None:
            run = runs.create("cell", self._names[cell.id], milliseconds(self._first_start()), tags)
        runs.write(run, tags=tags, parameters=cell_parameters(cell))
        return run

    def _first_start(self) -> float:
        """When the study began: nothing says it, but it was not after its plan or its first trial."""
        if self._started is None:
            self._started = min([self._folder.plan_file.stat().st_mtime, *self._changes.starts()])
        return self._started

    def _remember(self, record: TrialRecord) -> None:
        self._ends[record.cell] = max(end_of(record), self._ends.get(record.cell, 0.0))
        result = confirm_result(record)
        if result is not None:
            self._confirmed.setdefault(record.cell, {})[record.key] = result
        elif record.cell in self._confirmed:
            self._confirmed[record.cell].pop(record.key, None)  # superseded since

    def _write_summaries(self) -> bool:
        """Bring every cell's run up to its confirm trials; whether one had to be made anew, without its trials."""
        runs, anew = self.connect(), False
        for cell in self._plan.cells:
            run, rows = runs.find("cell", cell.id), summary_metrics(self._confirmed.get(cell.id, {}).values())
            if run is None or SummaryState.of(run.tags) == SummaryState.after(rows):
                continue
            if SummaryState.of(run.tags).denied_by(rows) or _holds_others(runs, run, rows, _FIRST_CELL_METRICS):
                runs.delete("cell", cell.id)
                run, anew = self._open_cell(runs, cell), True
            there = SummaryState.of(run.tags).count
            tags = {STATE_TAG: str(SummaryState.after(rows))}
            runs.write(run, metrics=[row for row in rows if row.step > there], tags=tags, parameters={})
            run.found = False
        return anew

    def _mark_parents(self, status: str, ended_cells: Collection[str]) -> None:
        runs = self.connect()
        last = max([self._folder.plan_file.stat().st_mtime, *self._ends.values()])
        for cell in self._plan.cells:
            run = runs.find("cell", cell.id)
            if run is not None:
                of_cell = "FINISHED" if cell.id in ended_cells else status
                runs.set_status(run, of_cell, milliseconds(self._ends.get(cell.id, last)))
        study = runs.find("study", self.study)
        if study is not None:
            runs.set_status(study, status, milliseconds(last))


def _holds_others(runs: MirroredRuns, run: MirroredRun, rows: list[MetricRow], names: tuple[str, ...]) -> bool:
    """Whether MLflow has points of ``names`` that are not among ``rows``.

    A mirror that was killed while it sent leaves points of which its state says nothing yet. They may be of epochs that
    the trial has trained again since, at other times: sent beside them, the new ones would double the curve.
    """
    return run.found and any(point not in rows for name in names for point in runs.points(run, name))
