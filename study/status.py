"""How a study stands, from its results folder alone: while it runs, from another machine, after it died."""

from __future__ import annotations

import shlex
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Set
from dataclasses import dataclass, fields
from pathlib import Path

import pyarrow.compute as pc

from bimp.tasks import Direction
from study.found_study import require_study
from study.journal import Journal
from study.presence import Presence, who_works_here
from study.progress import StudyView, study_view
from study.records import BEGUN_AGAIN, RecordError, TrialRecord, read_record, record_tables
from study.results import ResultsFolder
from study.signs_of_life import SignsOfLife, work_lines
from study.tally import CellGoal, CellTally, under_way_by_cell
from study.typed_json import TypedJsonError, typed_json
from study.whole_files import found_files


class StatusError(ValueError):
    """A study that cannot be told of; says which file of it is not what it should be."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _SealedTrial:
    """What the view needs of a record; fields as in :class:`study.records.TrialRecord`."""

    key: str
    study: str
    cell: str
    phase: str
    status: str
    reason: str | None
    seed: int
    seconds: float
    ended_at: float | None
    val_metric: float | None
    record_file: str
    num_epochs: int


_COLUMNS = [entry.name for entry in fields(_SealedTrial) if entry.name != "num_epochs"]


@dataclass(frozen=True, kw_only=True)
class StudyStatus:
    """How a study stands.

    Attributes:
        view: its cells and trials. "Running" are those with a live record.
        presence: whether a run works on it now.
        signs: when it was last heard of.
        troubles: a line for every trial that diverged or failed.
        left_out: a line for every cell with records that the study has no more.
    """

    view: StudyView
    presence: Presence
    signs: SignsOfLife
    troubles: tuple[str, ...]
    left_out: tuple[str, ...]


def study_status(results: Path) -> StudyStatus:
    """How the study in ``results`` stands.

    Raises:
        NoStudyError, StoreAccessError: there is no study in ``results``.
        StatusError: its plan cannot be read, or a record is of another study.
        RecordError, JournalError: a record or the journal cannot be read.
    """
    folder = ResultsFolder(results)
    require_study(results)
    # Before the records: a run that ends while they are read is better taken for one that works than the other way.
    presence = who_works_here(folder)
    study, goals = _planned(folder.plan_file)
    tallies: dict[str, CellTally] = defaultdict(CellTally)
    dropped: Counter[str] = Counter()
    troubled: list[_SealedTrial] = []
    signs, epochs_s = [], []
    ended = set()
    for record in _sealed_trials(folder):
        if record.status not in BEGUN_AGAIN:
            ended.add(record.key)
        if record.cell not in goals and record.study == study:
            dropped[record.cell] += 1
            continue
        if record.cell not in goals:
            raise StatusError(
                f"{folder.records / record.record_file}: found trial {record.key} of study {record.study}, expected "
                f"trials of {study}; move foreign records out of the folder"
            )
        if record.ended_at is not None:
            signs.append(record.ended_at)
        if record.num_epochs:
            epochs_s.append(record.seconds / record.num_epochs)
        if record.status == "superseded":  # by trials that are counted in its place
            continue
        if record.status in ("diverged", "failed"):
            troubled.append(record)
        if record.status != "failed":
            tallies[record.cell].add(record, goals[record.cell])
    failed = {record.key for record in troubled if record.status == "failed"}
    # A run that died as it sealed a trial, or does so now, has left the live record beside the other.
    live = [record for record in _live_trials(folder, failed) if record.key not in ended]
    again = {record.key for record in live} & failed
    troubled = [record for record in troubled if record.key not in again]
    for record in troubled:
        if record.status == "failed":
            tallies[record.cell].add(record, goals[record.cell])
    signs += (record.epochs[-1].ended_at if record.epochs else record.started_at for record in live)
    epochs_s += (epoch.seconds for record in live for epoch in record.epochs)
    keys: dict[str, list[str]] = defaultdict(list)
    for entry in Journal(folder.journal).entries():
        keys[entry.cell].append(entry.key)
    repeated = {cell: len(asked) - len(set(asked)) for cell, asked in keys.items()}
    running = under_way_by_cell((record.cell, record.num_epochs, False) for record in live)
    view = study_view(study, goals.values(), tallies, running, repeated, None, at_work=presence.works)
    return StudyStatus(
        view=view,
        presence=presence,
        signs=SignsOfLife(
            driver=presence.last_sign,
            trained=max(signs, default=None),
            longest_epoch_s=max(epochs_s, default=None),
        ),
        troubles=tuple(
            f"{record.key} {record.cell} {record.phase} seed {record.seed}: {record.status}, {record.reason}"
            for record in troubled
        ),
        left_out=tuple(
            f"{cell}: no longer in the study; {count} on record, left out" for cell, count in dropped.items()
        ),
    )


def how_to_go_on(status: StudyStatus, results: Path, now: float | None = None) -> Iterator[str]:
    """Whether a run works on the study, since when there is no sign of one, and what to do then; a line each.

    ``now``: Unix seconds; None: of this machine's clock.
    """
    view = status.view
    now = time.time() if now is None else now
    if status.presence.works:
        yield from work_lines(status.presence, status.signs, now)
        return
    failed = sum(line.failed for line in view.cells)
    if all(line.ended for line in view.cells) and not failed:
        yield "it has ended, and no run works on it"
        return
    ago = status.signs.last_ago(now)
    yield "no run works on it" + ("" if ago is None else f"; the last sign of life was {ago}")
    if view.running:
        yield f"{view.running} unfinished {'trial goes' if view.running == 1 else 'trials go'} on from the last epoch"
    if failed:
        yield f"{failed} failed {'trial is' if failed == 1 else 'trials are'} tried again"
    file, folder = shlex.quote(str(results / "study.yaml")), shlex.quote(str(results))
    yield f"to go on: python run_study.py run {file} --results {folder} (and the options that it had)"


def _sealed_trials(folder: ResultsFolder) -> Iterator[_SealedTrial]:
    """Column by column: a study of a hundred thousand trials has a million epochs, of which only the number counts."""
    for table in record_tables(folder.records, (*_COLUMNS, "epochs.list.element.epoch")):
        lengths = pc.list_value_length(table.column("epochs")).to_pylist()
        columns = (table.column(name).to_pylist() for name in _COLUMNS)
        for *values, num_epochs in zip(*columns, lengths, strict=True):
            yield _SealedTrial(**dict(zip(_COLUMNS, values, strict=True)), num_epochs=num_epochs)


@dataclass(frozen=True)
class _PlannedCell:
    """What the view needs of a cell of ``plan.json``; ``rungs`` are missing in plans of an older version."""

    id: str
    metric: str
    direction: Direction
    trials: int
    confirm_trials: int
    max_epochs: int
    rungs: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Planned:
    study: str
    cells: tuple[_PlannedCell, ...]


def _planned(path: Path) -> tuple[str, dict[str, CellGoal]]:
    """The study's name and the goal of every cell, from ``plan.json``."""
    try:
        planned = typed_json(_Planned, path.read_bytes())
    except (OSError, TypedJsonError) as error:
        raise StatusError(f"{path}: not the plan of a study ({error}); run the study again, which writes it") from error
    goals = {
        cell.id: CellGoal(
            cell=cell.id,
            metric=cell.metric,
            direction=cell.direction,
            trials=cell.trials,
            confirm_trials=cell.confirm_trials,
            max_epochs=cell.max_epochs,
            last_rung=max(cell.rungs, default=None),
        )
        for cell in planned.cells
    }
    return planned.study, goals


def _live_trials(folder: ResultsFolder, failed: Set[str]) -> Iterator[TrialRecord]:
    """The records of trials under way, or left unfinished; of ``failed`` trials those that are tried again."""
    files = folder.live_records()
    # What a failed trial left for its next try lies there from before its end was written.
    ends = {file.path.stem: file.modified for file in found_files(folder.records)} if failed & files.keys() else {}
    for key, file in files.items():
        if key in failed and key in ends and file.modified <= ends[key]:
            continue
        try:
            record = read_record(file.path)
        except RecordError:
            if file.path.exists():  # else it was sealed since it was listed
                raise
        else:
            if record.status != "failed":  # that one waits for the next start
                yield record
