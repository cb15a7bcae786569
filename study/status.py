"""How a study stands, from its results folder alone: while it runs, from another machine, after it died."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from study.journal import Journal
from study.progress import CellGoal, CellTally, StudyView, study_view
from study.records import RecordError, read_record, read_records
from study.results import ResultsFolder


class StatusError(ValueError):
    """A folder without a study; says what is missing."""


def study_status(results: Path) -> tuple[StudyView, list[str]]:
    """The view of the study in ``results``, and a line for every trial that diverged or failed.

    "Running" are trials with a live record: under way, or left unfinished by a study that stopped.

    Raises:
        StatusError: there is no study in ``results``, or its plan cannot be read. RecordError: nor can a record.
    """
    folder = ResultsFolder(results)
    if not folder.plan_file.exists():
        raise StatusError(f"{results}: no study here (plan.json is missing); give the folder that run named")
    study, goals = _planned(folder.plan_file)
    tallies: dict[str, CellTally] = defaultdict(CellTally)
    troubles = []
    for record in read_records(folder.records):
        if record.cell not in goals:
            raise StatusError(
                f"{folder.record(record.key)}: found a trial of cell {record.cell}, which is not in "
                f"{folder.plan_file}; run the study again, or give the folder that run named"
            )
        tallies[record.cell].add(record, goals[record.cell].direction)
        if record.status in ("diverged", "failed"):
            troubles.append(
                f"{record.key} {record.cell} {record.phase} seed {record.seed}: {record.status}, {record.reason}"
            )
    running = Counter(_cells_of_live_trials(folder))
    keys: dict[str, list[str]] = defaultdict(list)
    for entry in Journal(folder.journal_file).entries():
        keys[entry.cell].append(entry.key)
    repeated = {cell: len(asked) - len(set(asked)) for cell, asked in keys.items()}
    return study_view(study, goals.values(), tallies, running, repeated, None), troubles


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
            )
            for cell in document["cells"]
        }
        return document["study"], goals
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StatusError(
            f"{path}: not the plan of a study ({error!r}); run the study again, which writes it"
        ) from error


def _cells_of_live_trials(folder: ResultsFolder) -> Iterator[str]:
    for path in folder.live.glob("*/record.parquet"):
        try:
            record = read_record(path)
        except RecordError:
            if path.exists():  # else it was sealed since it was listed
                raise
        else:
            if record.status != "failed":  # that one waits for the next start
                yield record.cell
