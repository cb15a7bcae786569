"""How much of a record is in MLflow: kept on the run itself, so that any later mirror can tell."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from study.records import EpochRecord, TrialRecord

STATE_TAG = "mirror_state"
"""The tag that holds it; written after everything that it speaks of."""


@dataclass(frozen=True)
class MirrorState:
    """What of a record is in MLflow.

    Attributes:
        epochs: that many epochs, from the first.
        history: hash of what these epochs measured.
        record: hash of the whole record as it was then; empty where nothing was mirrored.
    """

    epochs: int
    history: str
    record: str

    @classmethod
    def of(cls, tags: Mapping[str, str]) -> MirrorState:
        """The state that a run's tags hold; that of an empty run where they hold none."""
        epochs, _, rest = tags.get(STATE_TAG, "").partition(" ")
        history, _, record = rest.partition(" ")
        return cls(int(epochs), history, record) if epochs.isdecimal() and record else cls(0, hash_of_history(()), "")

    def after(self, record: TrialRecord) -> MirrorState:
        """The state once ``record`` was mirrored on top of this one."""
        if record.num_epochs < self.epochs:
            return MirrorState(self.epochs, self.history, hash_of(record))
        return MirrorState(record.num_epochs, hash_of_history(record.epochs), hash_of(record))

    def denied_by(self, record: TrialRecord) -> bool:
        """Whether MLflow holds epochs that are not the record's: they cannot be taken back there.

        A running trial that was taken up at an earlier checkpoint has fewer epochs than MLflow for a while and
        will repeat them; a sealed one with fewer lost them (its pruning dropped what came after the rung).
        """
        if record.num_epochs < self.epochs:
            return record.status != "running"
        return self.history != hash_of_history(record.epochs[: self.epochs])

    def __str__(self) -> str:
        return f"{self.epochs} {self.history} {self.record}"


def hash_of(content: object) -> str:
    """A short hash of ``content``'s representation: equal for equal records or rows."""
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


def hash_of_history(epochs: Iterable[EpochRecord]) -> str:
    """A hash of what the epochs measured, without when they ran: a resumed trial repeats them to the bit."""
    return hash_of([{**asdict(epoch), "seconds": None, "ended_at": None} for epoch in epochs])
