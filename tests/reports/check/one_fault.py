"""Which trials of the study in which nothing is wrong get a fault, and the one thing that is then found."""

from collections.abc import Callable

from made_studies import SEEDS
from searched_study import GATED, VANILLA, trials_of

from reports.check import Finding
from study.records import TrialRecord

Change = Callable[[list[TrialRecord]], list[TrialRecord]]


def is_gated(record: TrialRecord) -> bool:
    return bool(record.cell == GATED["id"])


def is_gated_search(record: TrialRecord) -> bool:
    return is_gated(record) and record.phase == "search"


def is_gated_confirm(record: TrialRecord) -> bool:
    return is_gated(record) and record.phase == "confirm"


def is_first_run(record: TrialRecord) -> bool:
    return is_gated_confirm(record) and record.seed == SEEDS[0]


def keys(which: Callable[[TrialRecord], bool]) -> tuple[str, ...]:
    """Of the trials for which ``which`` holds, sorted."""
    return tuple(sorted(record.key for record in [*trials_of(VANILLA), *trials_of(GATED)] if which(record)))


def only(findings: tuple[Finding, ...], kind: str, severity: str, cell: str | None = GATED["id"]) -> Finding:
    """The one finding, after a look that it is alone and of this kind."""
    assert [(finding.kind, finding.severity, finding.cell) for finding in findings] == [(kind, severity, cell)]
    return findings[0]
