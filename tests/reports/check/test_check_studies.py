"""Whole studies: one in which nothing is wrong, and some that can hardly be checked."""

from dataclasses import replace
from pathlib import Path

import pytest
from made_studies import SEEDS, worked_study, write_study
from one_fault import Change, is_first_run
from searched_study import BEST, GATED, LEARNING_RATES, TESTS, VANILLA, changed, clean_study

from reports.check import check
from reports.records.plan import ResultsError


def test_nothing_is_found_where_nothing_is_wrong(tmp_path: Path) -> None:
    assert check(clean_study(tmp_path)) == ()


def test_an_empty_study_misses_every_run(tmp_path: Path) -> None:
    findings = check(write_study(tmp_path, [VANILLA, GATED], []))
    assert [(finding.kind, finding.cell) for finding in findings] == [
        ("missing-run", VANILLA["id"]),
        ("missing-run", GATED["id"]),
    ]


def test_only_pruned_trials(tmp_path: Path) -> None:
    change: Change = lambda trials: [record for record in trials if record.status == "pruned"]  # noqa: E731
    findings = check(clean_study(tmp_path, change))
    assert {finding.kind for finding in findings} == {"missing-run", "rung-order-unknown"}


def test_unreadable_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"trial \w+: versions_json: not readable as JSON"):
        check(clean_study(tmp_path, changed(is_first_run, versions_json="{")))


def test_what_forbids_comes_first(tmp_path: Path) -> None:
    # That a run was cut short is looked for before impossible values are.
    change: Change = lambda trials: [  # noqa: E731
        replace(record, reason="time_limit", test_metric=-0.4) if is_first_run(record) else record for record in trials
    ]
    severities = [finding.severity for finding in check(clean_study(tmp_path, change))]
    assert severities == ["forbids", "warns"]


def test_order_of_records_changes_nothing(tmp_path: Path) -> None:
    first = check(worked_study(tmp_path / "first"))
    assert first
    assert first == check(worked_study(tmp_path / "second"))


def test_the_made_study_is_what_it_says() -> None:
    assert len(TESTS["none"]) == len(SEEDS)
    assert LEARNING_RATES[-1] == BEST
