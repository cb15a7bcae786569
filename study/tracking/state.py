"""How much of a record is in MLflow: kept on the run itself, so that any later mirror can tell."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from study.records import EpochRecord, TrialRecord
from study.tracking.content import MetricRow, final_metrics

STATE_TAG = "mirror_state"
"""The tag that holds it; written after everything that it speaks of."""

_NONE = "-"


@dataclass(frozen=True)
class MirrorState:
    """What of a record is in MLflow, where no point can be taken back or altered.

    Attributes:
        epochs: that many epochs, from the first.
        history: hash of these epochs, clocks included: those that a resumed trial trains again have other times.
        finals: hash of the final values; ``-`` where there are none.
        record: hash of the whole record as it was then; ``-`` where nothing was mirrored.
    """

    epochs: int
    history: str
    finals: str
    record: str

    @classmethod
    def of(cls, tags: Mapping[str, str]) -> MirrorState:
        """The state that a run's tags hold; that of an empty run where they hold none."""
        parts = tags.get(STATE_TAG, "").split(" ")
        if len(parts) == 4 and parts[0].isdecimal():
            return cls(int(parts[0]), *parts[1:])
        return cls(0, hash_of_history(()), _NONE, _NONE)

    @classmethod
    def after(cls, record: TrialRecord) -> MirrorState:
        """The state once all of ``record`` is mirrored."""
        return cls(record.num_epochs, hash_of_history(record.epochs), hash_of_finals(record), hash_of(record))

    def denied_by(self, record: TrialRecord) -> bool:
        """Whether MLflow holds points that are not the record's.

        So it is where a trial was taken up at an earlier checkpoint, where epochs after its rung were dropped, and
        where one that had failed is tried again.
        """
        if self.finals not in (_NONE, hash_of_finals(record)):
            return True
        return self.history != hash_of_history(record.epochs[: self.epochs])

    def __str__(self) -> str:
        return f"{self.epochs} {self.history} {self.finals} {self.record}"


@dataclass(frozen=True)
class SummaryState:
    """What of a cell's summary is in MLflow: the summaries of the first ``count`` confirm trials, and their hash."""

    count: int
    rows: str

    @classmethod
    def of(cls, tags: Mapping[str, str]) -> SummaryState:
        """The state that a run's tags hold; that of an empty run where they hold none."""
        count, _, rows = tags.get(STATE_TAG, "").partition(" ")
        return cls(int(count), rows) if count.isdecimal() else cls.after(())

    @classmethod
    def after(cls, rows: Iterable[MetricRow]) -> SummaryState:
        """The state once all ``rows`` are mirrored."""
        rows = tuple(rows)
        return cls(max((row.step for row in rows), default=0), hash_of(rows))

    def denied_by(self, rows: Iterable[MetricRow]) -> bool:
        """Whether MLflow holds others: a trial that was in the summary is superseded, or another one ended before."""
        return self != SummaryState.after(row for row in rows if row.step <= self.count)

    def __str__(self) -> str:
        return f"{self.count} {self.rows}"


def hash_of(content: object) -> str:
    """A short hash of ``content``'s representation: equal for equal records or rows."""
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


def hash_of_history(epochs: Iterable[EpochRecord]) -> str:
    """A hash of all that is known of these epochs."""
    return hash_of(tuple(epochs))


def hash_of_finals(record: TrialRecord) -> str:
    """A hash of the record's final values; ``-`` while it runs."""
    finals = final_metrics(record)
    return hash_of(finals) if finals else _NONE
