"""What a run keeps of the trials that have ended: a few numbers each, where a record has a thousand epochs."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from study.records import Status, TrialRecord, record_tables

_COLUMNS = ("key", "cell", "phase", "status", "reason", "seconds", "val_metric")


@dataclass(frozen=True, kw_only=True)
class EndedTrial:
    """A sealed record, as far as its cell's rungs, sampler, choice and tally need it.

    Attributes:
        key, cell, phase, status, reason, seconds, val_metric: as in :class:`study.records.TrialRecord`.
        num_epochs: completed epochs.
        val_metrics: of a search trial, after each of its epochs, which the rungs of a run that takes it up hear again.
    """

    key: str
    cell: str
    phase: str
    status: Status
    reason: str | None
    seconds: float
    val_metric: float | None
    num_epochs: int
    val_metrics: Sequence[float] = ()

    @classmethod
    def of(cls, record: TrialRecord) -> EndedTrial:
        """What is kept of a record that was just sealed; the rungs have heard of its epochs."""
        kept = {name: getattr(record, name) for name in _COLUMNS}
        return cls(**kept, num_epochs=record.num_epochs)


def ended_trials(records: Path) -> Iterator[EndedTrial]:
    """Every sealed record of a folder, ordered by key.

    All columns are read, so that a file that nobody could make a table of is named before anything runs.

    Raises:
        RecordError: as :func:`study.records.read_records`.
    """
    for table in record_tables(records):
        for batch in table.to_batches():
            epochs = batch.column("epochs")
            val_metrics = array("d", epochs.flatten().field("val_metric").to_numpy())
            columns = (batch.column(name).to_pylist() for name in _COLUMNS)
            start = 0
            for *values, num_epochs in zip(*columns, epochs.value_lengths().to_pylist(), strict=True):
                kept = dict(zip(_COLUMNS, values, strict=True))
                own = val_metrics[start : start + num_epochs] if kept["phase"] == "search" else ()
                start += num_epochs
                yield EndedTrial(**kept, num_epochs=num_epochs, val_metrics=own)
