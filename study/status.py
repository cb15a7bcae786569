"""How a study stands, from its results folder alone: while it runs, from another machine, after it died."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import pyarrow.compute as pc

from study.journal import Journal
from study.progress import CellGoal, CellTally, StudyView, study_view
from study.records import RecordError, read_record, record_tables
from study.results import ResultsFolder


class StatusError(ValueError):
    """A folder without a study; says what is missing."""


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
    val_metric: float | None
    record_file: str
    num_epochs: int


_COLUMNS = [entry.name for entry in fields(_SealedTrial) if entry.name != "num_epochs"]


def study_status(results: Path) -> tuple[StudyView, list[str]]:
    """The view of the study in ``results``, and a line for every trial that diverged or failed.

    So there is for every cell with records that the study has no more.

    "Running" are trials with a live record: under way, or left unfinished by a study that stopped.

    Raises:
        StatusError: there is no study in ``results``, or its plan cannot be read. RecordError: nor can a record.
    """
    folder = ResultsFolder(results)
    if not folder.plan_file.exists():
        raise StatusError(f"{results}: no study here (plan.json is missing); give the folder that run named")
    study, goals = _planned(folder.plan_file)
    tallies: dict[str, CellTally] = defaultdict(CellTally)
    dropped: Counter[str] = Counter()
    troubles = []
    for record in _sealed_trials(folder):
        if record.cell not in goals and record.study == study:
            dropped[record.cell] += 1
            continue
        if record.cell not in goals:
            raise StatusError(
                f"{folder.records / record.record_file}: found trial {record.key} of study {record.study}, expected "
                f"trials of {study}; move foreign records out of the folder"
            )
        if record.status == "superseded":  # by trials that are counted in its place
            continue
        tallies[record.cell].add(record, goals[record.cell].direction)
        if record.status in ("diverged", "failed"):
            troubles.append(
                f"{record.key} {record.cell} {record.phase} seed {record.seed}: {record.status}, {record.reason}"
            )
    running = Counter(_cells_of_live_trials(folder))
    keys: dict[str, list[str]] = defaultdict(list)
    for entry in Journal(folder.journal).entries():
        keys[entry.cell].append(entry.key)
    repeated = {cell: len(asked) - len(set(asked)) for cell, asked in keys.items()}
    troubles += [f"{cell}: no longer in the study; {count} on record, left out" for cell, count in dropped.items()]
    return study_view(study, goals.values(), tallies, running, repeated, None), troubles


def _sealed_trials(folder: ResultsFolder) -> Iterator[_SealedTrial]:
    """Column by column: a study of a hundred thousand trials has a million epochs, of which only the number counts."""
    for table in record_tables(folder.records, (*_COLUMNS, "epochs.list.element.epoch")):
        lengths = pc.list_value_length(table.column("epochs")).to_pylist()
        columns = (table.column(name).to_pylist() for name in _COLUMNS)
        for *values, num_epochs in zip(*columns, lengths, strict=True):
            yield _SealedTrial(**dict(zip(_COLUMNS, values, strict=True)), num_epochs=num_epochs)


def _planned(path: Path) -> tuple[str, dict[str, CellGoal]]:
    """The study's name and the goal of every cell, from ``plan.json``."""
    try:
        document = json.loads(path.read_text())
        goals = {
            cell["id"]: CellGoal(
                cell=cell["id"],
                metric=cell["metric"],
                direction=cell["direction"],
                trials=cell["trials"],
                confirm_trials=cell["confirm_trials"],
                max_epochs=cell["max_epochs"],
                last_rung=max(cell.get("rungs", []), default=None),
            )
            for cell in document["cells"]
        }
        return document["study"], goals
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StatusError(
            f"{path}: not the plan of a study ({error!r}); run the study again, which writes it"
        ) from error


def _cells_of_live_trials(folder: ResultsFolder) -> Iterator[str]:
    for file in folder.live_records():
        try:
            record = read_record(file.path)
        except RecordError:
            if file.path.exists():  # else it was sealed since it was listed
                raise
        else:
            if record.status != "failed":  # that one waits for the next start
                yield record.cell
