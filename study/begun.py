"""What a results folder holds of each cell: what an edit of the study must not alter."""

from __future__ import annotations

from collections import Counter, defaultdict

from study.attempts import newest_record
from study.journal import Journal
from study.plan import BegunCell
from study.records import read_columns
from study.results import ResultsFolder

_COLUMNS = ("cell", "phase", "status", "seed", "fold")


def begun_cells(folder: ResultsFolder) -> dict[str, BegunCell]:
    """By cell id, every cell that has a trial in the journal, on record or under way.

    Raises:
        JournalError: the journal cannot be read. RecordError: nor can a record.
    """
    asked = Counter(entry.cell for entry in Journal(folder.journal).entries())
    records: Counter[str] = Counter()
    confirmed: defaultdict[str, set[tuple[int, int | None]]] = defaultdict(set)
    for row in read_columns(folder.records, _COLUMNS).to_pylist():
        records[row["cell"]] += 1
        if row["phase"] == "confirm" and row["status"] != "superseded":
            confirmed[row["cell"]].add((row["seed"], row["fold"]))
    for key in folder.live_keys():
        record = newest_record(folder, key)
        if record is not None and record.phase == "confirm":
            confirmed[record.cell].add((record.seed, record.fold))
    return {
        cell: BegunCell(asked=asked[cell], confirmed=frozenset(confirmed[cell]), records=records[cell])
        for cell in sorted({*asked, *records, *confirmed})
    }
