"""How a study stands, from its results folder alone: while it runs, from another machine, after it died."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

from study.journal import Journal
from study.progress import CellGoal, CellTally, StudyView, study_view
from study.records import read_record, read_records
from study.results import ResultsFolder


class StatusError(ValueError):
    """A folder without a study; says what is missing."""


def study_status(results: Path) -> tuple[StudyView, list[str]]:
    """The view of the study in ``results``, and a line for every trial that diverged or failed.

    "Running" are trials with a live record: under way, or left unfinished by a study that stopped.

    Raises:
        StatusError: there is no study in ``results``. RecordError: a record cannot be read.
    """
    folder = ResultsFolder(results)
    if not folder.plan_file.exists():
        raise StatusError(f"{results}: no study here (plan.json is missing); give the folder that run named")
    document = json.loads(folder.plan_file.read_text())
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
    tallies: dict[str, CellTally] = defaultdict(CellTally)
    troubles = []
    for record in read_records(folder.records):
        tallies[record.cell].add(record, goals[record.cell].direction)
        if record.status in ("diverged", "failed"):
            troubles.append(
                f"{record.key} {record.cell} {record.phase} seed {record.seed}: {record.status}, {record.reason}"
            )
    running = Counter(read_record(path).cell for path in folder.live.glob("*/record.parquet"))
    keys: dict[str, list[str]] = defaultdict(list)
    for entry in Journal(folder.journal_file).entries():
        keys[entry.cell].append(entry.key)
    repeated = {cell: len(asked) - len(set(asked)) for cell, asked in keys.items()}
    return study_view(document["study"], goals.values(), tallies, running, repeated, None), troubles
