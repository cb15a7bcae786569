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
    RUN_STATUS,
    TRIAL_TAG_NAMES,
    end_of,
    epoch_metrics,
    final_metrics,
    milliseconds,
    trial_parameters,
    trial_tags,
)
from study.tracking.finished_files import FILES_TAG, FINISHED, finished_files, state_of_files
from study.tracking.names import read_plan, trial_name
from study.tracking.parents import ParentRuns
from study.tracking.runs import MirroredRun, MirroredRuns, hash_of_content
from study.tracking.state import STATE_TAG, MirrorState

_FIRST_METRICS = ("learning_rate", "epochs")
"""The first metrics of an epoch and of the final values: whoever was cut off while sending these has sent those."""


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
        self._runs: MirroredRuns | None = None
        self._changes = RecordChanges(self._folder, self._plan.study)
        self._parents = ParentRuns(self._plan, self._folder.plan_file, self._changes)
        self._settled: dict[str, tuple[str, str]] = {}

    @property
    def study(self) -> str:
        """The study's name, that of its experiment."""
        return self._plan.study

    def connect(self) -> MirroredRuns:
        """Open the experiment, with a run for the study and for every cell; what is there already is kept."""
        if self._runs is None:
            artifacts = artifact_location(self.tracking_uri, self.results)
            runs = MirroredRuns(self.tracking_uri, self.study, artifacts, self._plan.caption or "", TRIAL_TAG_NAMES)
            if self._parents.open(runs):
                self._changes.forget_all_but(())  # trials of a cell whose run was made anew
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
        runs = self.connect()
        count = self._sync_changes()
        while self._parents.sum_up(runs):
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
        self._parents.remember(record)
        parameters, status, state = trial_parameters(record), RUN_STATUS[record.status], MirrorState.after(record)
        tags = trial_tags(record) | self._parents.tag_of(runs, record.cell)
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
        self._parents.mark(self.connect(), "RUNNING", ())

    def finish(self, *, complete: bool = True, ended_cells: Collection[str] = ()) -> None:
        """Mark the study as FINISHED, or as KILLED where it was interrupted; its cells alike.

        ``ended_cells``: ids of those that are FINISHED all the same.
        """
        self._parents.mark(self.connect(), "FINISHED" if complete else "KILLED", ended_cells)

    def mark_as_it_stands(self) -> None:
        """Mark study and cells by what is on record: FINISHED where nothing is left, KILLED where no run goes on.

        A run that works in the folder marks them itself.

        Raises:
            StatusError, JournalError: the plan or the journal cannot be read.
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

    def _run_to_write(self, runs: MirroredRuns, record: TrialRecord, parameters: dict[str, str]) -> MirroredRun:
        """The trial's run if the record goes on from what it holds, else a new one in its place."""
        run = runs.find("trial", record.key)
        if run is not None and (
            MirrorState.of(run.tags).denied_by(record)
            or any(run.parameters.get(name, value) != value for name, value in parameters.items())
            or runs.hold_others(run, epoch_metrics(record, after=0) + final_metrics(record), _FIRST_METRICS)
        ):
            runs.delete("trial", record.key)
            run = None
        if run is not None:
            return run
        name = trial_name(record, self._parents.names.get(record.cell))
        tags = trial_tags(record) | self._parents.tag_of(runs, record.cell)
        return runs.create("trial", name, milliseconds(record.started_at), tags)
