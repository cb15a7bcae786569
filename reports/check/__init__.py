"""What a careful reader would look for before trusting a study's table, looked for in its records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from reports.check.choice import choices, edges, tests_in_search
from reports.check.fairness import budgets, other_settings, parameters, trained_epochs, tuning_efforts
from reports.check.finding import Check, Finding, Severity
from reports.check.provenance import (
    between_studies,
    code_states,
    data_fingerprints,
    data_sizes,
    library_versions,
    strangers,
)
from reports.check.runs import cut_short, doubled_and_unasked_runs, missing_runs, search_ends, spreads
from reports.check.training import rung_orders, still_gates
from reports.check.values import impossible_values, other_metrics
from reports.evidence.study_facts import StudyFacts, gather
from reports.records.load import given_once

__all__ = ["CHECKS", "Finding", "Severity", "check", "check_together", "findings_of"]

CHECKS: tuple[Check, ...] = (
    missing_runs,
    doubled_and_unasked_runs,
    strangers,
    data_fingerprints,
    data_sizes,
    code_states,
    library_versions,
    budgets,
    parameters,
    tuning_efforts,
    trained_epochs,
    other_settings,
    tests_in_search,
    choices,
    edges,
    rung_orders,
    still_gates,
    cut_short,
    search_ends,
    spreads,
    impossible_values,
    other_metrics,
)
"""Everything that is looked for; each yields its findings cell by cell."""


def check(results_folder: Path) -> tuple[Finding, ...]:
    """The findings of the study in ``results_folder``: those that forbid publishing first, then by kind.

    Raises:
        ResultsError, study.records.RecordError: as :func:`reports.evidence.study_facts.gather`.
    """
    return check_together((results_folder,))


def check_together(results_folders: Iterable[Path]) -> tuple[Finding, ...]:
    """The findings of several studies whose cells stand in one table, and what differs between them.

    Raises:
        ResultsError: a folder is given twice. ResultsError, study.records.RecordError: as
            :func:`reports.evidence.study_facts.gather`.
    """
    results_folders = tuple(results_folders)
    given_once(results_folders)
    return findings_of([gather(folder) for folder in results_folders])


def findings_of(studies: Sequence[StudyFacts]) -> tuple[Finding, ...]:
    """The findings of studies whose facts are known."""
    found = [finding for facts in studies for look in CHECKS for finding in look(facts)]
    found += between_studies(studies)
    return tuple(sorted(found, key=lambda finding: finding.severity != "forbids"))
