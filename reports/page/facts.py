"""What a study's records say of the study as a whole: how many trials ended how, when it ran, on which code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from reports.evidence.cell_evidence import code_state

PHASES = ("search", "confirm")
STATUSES = ("finished", "pruned", "diverged", "failed", "running", "superseded")
_COLUMNS = (
    "cell",
    "phase",
    "status",
    "started_at",
    "ended_at",
    "git_commit",
    "git_dirty",
    "device",
    "data_fingerprint",
)


@dataclass(frozen=True, kw_only=True)
class Share:
    """One of the values that a study's trials have, in words, and how many have it."""

    words: str
    trials: int


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the head of the page says of a study.

    Attributes:
        trials: how many trials of a phase ended with a status, by (phase, status); what did not occur is not in it.
        by_cell: the same by (cell, phase, status).
        began, ended: of the first and the last trial, in UTC to the minute; None where no trial is on record.
        code_states: what the trials ran on, the commonest first.
        devices: where the trials ran.
    """

    trials: Mapping[tuple[str, str], int]
    by_cell: Mapping[tuple[str, str, str], int]
    began: str | None
    ended: str | None
    code_states: tuple[Share, ...]
    devices: tuple[Share, ...]

    @property
    def statuses(self) -> tuple[str, ...]:
        """The statuses that occur, in the order in which they are told."""
        found = {status for _, status in self.trials}
        return (*(status for status in STATUSES if status in found), *sorted(found - set(STATUSES)))

    def count(self, phase: str, status: str) -> int:
        """Number of trials of ``phase`` that ended as ``status``."""
        return self.trials.get((phase, status), 0)

    def count_in_cell(self, cell: str, phase: str, *statuses: str) -> int:
        """Number of trials of ``phase`` in ``cell`` with one of ``statuses``; with none given, with any."""
        return sum(self.by_cell.get((cell, phase, status), 0) for status in statuses or self.statuses)


def facts_of(records: pa.Table) -> Facts:
    """The facts of a study of these ``records``, which have all columns but the epochs."""
    columns = records.select(list(_COLUMNS)).to_pydict()
    by_cell = Counter(zip(columns["cell"], columns["phase"], columns["status"], strict=True))
    trials: Counter[tuple[str, str]] = Counter()
    for (_, phase, status), count in by_cell.items():
        trials[phase, status] += count
    ends = [ended for ended in (*columns["ended_at"], *columns["started_at"]) if ended is not None]
    return Facts(
        trials=dict(sorted(trials.items())),
        by_cell=dict(sorted(by_cell.items())),
        began=_minute(min(columns["started_at"])) if ends else None,
        ended=_minute(max(ends)) if ends else None,
        code_states=_shares(map(code_state, columns["git_commit"], columns["git_dirty"])),
        devices=_shares(columns["device"]),
    )


def _shares(values: Iterable[str]) -> tuple[Share, ...]:
    counted = sorted(Counter(values).items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple(Share(words=words, trials=trials) for words, trials in counted)


def _minute(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
