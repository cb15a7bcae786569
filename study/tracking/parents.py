"""MLflow's runs of a study and of its cells, in which those of the trials stand: opened, summed up and marked."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from study.records import TrialRecord
from study.tracking.changes import RecordChanges
from study.tracking.content import (
    PARENT_TAG,
    ConfirmResult,
    MetricRow,
    cell_parameters,
    cell_tags,
    confirm_result,
    end_of,
    milliseconds,
    study_tags,
    summary_metrics,
)
from study.tracking.names import PlannedCell, StudyPlan, cell_names
from study.tracking.runs import MirroredRun, MirroredRuns
from study.tracking.state import STATE_TAG, SummaryState

_FIRST_METRICS = ("confirm_finished",)
"""The first metrics of a summary: whoever was cut off while sending one has sent those."""


class ParentRuns:
    """The runs of a study and its cells, made from the plan and from what was told of the trials.

    Methods that take the runs that MLflow holds raise the errors of :func:`study.tracking.runs.mirror_errors`.

    Args:
        plan: of the study. plan_file: where it lies; as old as the study, or younger where that was edited.
        changes: knows when trials began.
    """

    def __init__(self, plan: StudyPlan, plan_file: Path, changes: RecordChanges) -> None:
        self.names = cell_names(plan.cells)
        self._plan = plan
        self._plan_file = plan_file
        self._changes = changes
        self._confirmed: dict[str, dict[str, ConfirmResult]] = {}
        self._summaries: dict[str, list[MetricRow]] = {}
        self._ends: dict[str, float] = {}
        self._started: float | None = None

    def remember(self, record: TrialRecord) -> None:
        """Hear of a trial as it is on record now."""
        self._ends[record.cell] = max(end_of(record), self._ends.get(record.cell, 0.0))
        result, known = confirm_result(record), self._confirmed.setdefault(record.cell, {})
        if result == known.get(record.key):
            return
        self._summaries.pop(record.cell, None)
        if result is not None:
            known[record.key] = result
        else:
            del known[record.key]  # superseded since

    def open(self, runs: MirroredRuns) -> bool:
        """A run for the study and for every cell; what is there is kept, unless an edit gave the cell other parameters.

        Returns:
            Whether a cell's run was made anew, without its trials.
        """
        tags = study_tags(self._plan.study, self._plan.caption or "", len(self._plan.cells))
        study = runs.find("study", self._plan.study)
        if study is None:
            study = runs.create("study", f"study {self._plan.study}", milliseconds(self._first_start()), tags)
        runs.write(study, tags=tags, parameters={})
        anew = [_delete_with_others(runs, cell) for cell in self._plan.cells]
        for cell in self._plan.cells:
            self._open_cell(runs, cell)
        return any(anew)

    def _open_cell(self, runs: MirroredRuns, cell: PlannedCell) -> MirroredRun:
        study = runs.known("study", self._plan.study)
        tags = cell_tags(cell, self._plan.study) | ({} if study is None else {PARENT_TAG: study.run_id})
        run = runs.find("cell", cell.id)
        if run is None:
            run = runs.create("cell", self.names[cell.id], milliseconds(self._first_start()), tags)
        runs.write(run, tags=tags, parameters=cell_parameters(cell))
        return run

    def tag_of(self, runs: MirroredRuns, cell: str) -> dict[str, str]:
        """The tag of a trial's run that names the run it stands in: its cell's, or the study's."""
        parent = runs.known("cell", cell) or runs.known("study", self._plan.study)
        return {} if parent is None else {PARENT_TAG: parent.run_id}

    def sum_up(self, runs: MirroredRuns) -> bool:
        """Bring every cell's run up to its confirm trials; whether one had to be made anew, without its trials."""
        anew = False
        for cell in self._plan.cells:
            run, rows = runs.find("cell", cell.id), self._summary_of(cell.id)
            if run is None or SummaryState.of(run.tags) == SummaryState.after(rows):
                continue
            if SummaryState.of(run.tags).denied_by(rows) or runs.hold_others(run, rows, _FIRST_METRICS):
                runs.delete("cell", cell.id)
                run, anew = self._open_cell(runs, cell), True
            there = SummaryState.of(run.tags).count
            tags = {STATE_TAG: str(SummaryState.after(rows))}
            runs.write(run, metrics=[row for row in rows if row.step > there], tags=tags, parameters={})
            run.found = False
        return anew

    def _summary_of(self, cell: str) -> list[MetricRow]:
        """The cell's summary, worked out anew only where a trial of it has come or gone.

        A pass comes every few seconds, and its time grows with the square of the number of trials.
        """
        if cell not in self._summaries:
            self._summaries[cell] = summary_metrics(self._confirmed.get(cell, {}).values())
        return self._summaries[cell]

    def mark(self, runs: MirroredRuns, status: str, ended_cells: Collection[str]) -> None:
        """Set the status of the study and its cells; ``ended_cells`` are FINISHED all the same.

        A cell that the plan has no more, since the study was edited, is not RUNNING.
        """
        last = max([self._plan_file.stat().st_mtime, *self._ends.values()])
        planned = {cell.id for cell in self._plan.cells}
        for cell in runs.identities("cell"):
            run = runs.find("cell", cell)
            if run is None or (cell not in planned and run.status != "RUNNING"):
                continue
            of_cell = status if cell in planned else "KILLED"
            if cell in ended_cells:
                of_cell = "FINISHED"
            runs.set_status(run, of_cell, milliseconds(self._ends.get(cell, last)))
        study = runs.find("study", self._plan.study)
        if study is not None:
            runs.set_status(study, status, milliseconds(last))

    def _first_start(self) -> float:
        """When the study began: nothing says it, but it was not after its plan or its first trial."""
        if self._started is None:
            self._started = min([self._plan_file.stat().st_mtime, *self._changes.starts()])
        return self._started


def _delete_with_others(runs: MirroredRuns, cell: PlannedCell) -> bool:
    """Delete the run of the cell if it holds other parameters, of which MLflow can alter none; whether it did."""
    run = runs.find("cell", cell.id)
    if run is None or all(run.parameters.get(name, value) == value for name, value in cell_parameters(cell).items()):
        return False
    runs.delete("cell", cell.id)
    return True
