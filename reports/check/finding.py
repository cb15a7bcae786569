"""One thing found in a study's records that a reader of its table should know before trusting it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from reports.evidence.study_facts import CellFacts, StudyFacts
from reports.records.details import TrialDetails

Severity = Literal["forbids", "warns"]
"""Whether a finding forbids publishing the table as it is, or must be known to its readers."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found, what it may do to the table and how to mend it, each a sentence without its full stop.

    Attributes:
        kind: one word for what is wrong, the same for all findings of a kind.
        study: the study's name.
        cell: id of the cell; None for what concerns several.
        where: the cell as people name it, or the study.
        keys: of the trials that it was found in, ordered.
    """

    kind: str
    severity: Severity
    study: str
    cell: str | None
    where: str
    found: str
    keys: tuple[str, ...]
    effect: str
    mend: str


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What all findings of a kind share."""

    name: str
    severity: Severity
    effect: str
    mend: str

    def in_cell(
        self,
        facts: StudyFacts,
        cell: CellFacts,
        found: str,
        trials: Iterable[TrialDetails],
        severity: Severity | None = None,
    ) -> Finding:
        """A finding in ``cell``; ``severity`` where it is not that of the kind."""
        return self._finding(facts, cell.id, cell.name, found, trials, severity or self.severity)

    def in_study(self, facts: StudyFacts, where: str, found: str, trials: Iterable[TrialDetails]) -> Finding:
        """A finding in no single cell of the plan."""
        return self._finding(facts, None, where, found, trials, self.severity)

    def _finding(
        self,
        facts: StudyFacts,
        cell: str | None,
        where: str,
        found: str,
        trials: Iterable[TrialDetails],
        severity: Severity,
    ) -> Finding:
        return Finding(
            kind=self.name,
            severity=severity,
            study=facts.study,
            cell=cell,
            where=where,
            found=found,
            keys=tuple(sorted(trial.key for trial in trials)),
            effect=self.effect,
            mend=self.mend,
        )


Check = Callable[[StudyFacts], Iterable[Finding]]
