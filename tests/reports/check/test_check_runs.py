"""Findings about the runs behind a number, in a study that has that fault alone."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from one_fault import Change, is_first_run, is_gated_confirm, is_gated_search, keys, only
from searched_study import GATED, VANILLA, changed, clean_study, confirm_trial, curve, trials_of

from reports.check import check
from study.records import TrialRecord


def test_missing_run(tmp_path: Path) -> None:
    found = only(
        check(clean_study(tmp_path, lambda trials: [record for record in trials if not is_first_run(record)])),
        "missing-run",
        "forbids",
    )
    assert (found.study, found.where, found.keys) == ("made", "ZINC bi-GCN 100k L4", ())
    assert found.found == "3 of 4 runs gave a number; seed 41: never started (search: 6 finished, 2 pruned)"


@pytest.mark.parametrize("status", ["diverged", "failed", "running"])
def test_unfinished_run(tmp_path: Path, status: str) -> None:
    change = changed(is_first_run, status=status, reason="train loss is NaN", test_metric=None)
    found = only(check(clean_study(tmp_path, change)), "unfinished-run", "forbids")
    assert found.found == f"3 of 4 runs gave a number; seed 41: {status}: train loss is NaN"
    assert found.keys == keys(is_first_run)


def test_a_nan_is_a_run_without_a_number(tmp_path: Path) -> None:
    found = only(
        check(clean_study(tmp_path, changed(is_first_run, test_metric=float("nan")))), "run-without-number", "forbids"
    )
    assert found.mend.startswith("move its record out of records/ and start the study again")
    assert "finished without a number: test metric nan" in found.found
    assert found.keys == keys(is_first_run)


def test_doubled_run(tmp_path: Path) -> None:
    def double(trials: list[TrialRecord]) -> list[TrialRecord]:
        again = [replace(record, key=f"{record.seed:f>20}") for record in trials if is_gated_confirm(record)]
        return [*trials, *again, *(replace(record, key="f" * 20) for record in trials if is_first_run(record))]

    found = only(check(clean_study(tmp_path, double)), "doubled-run", "forbids")
    told = "seed 12 has 2, seed 35 has 2, seed 41 has 3, seed 95 has 2"
    assert found.found == f"more than one confirm trial of a run: {told}"
    assert len(found.keys) == 9
    assert {*keys(is_gated_confirm), "f" * 20} < set(found.keys)


def test_a_superseded_trial_doubles_nothing(tmp_path: Path) -> None:
    def supersede(trials: list[TrialRecord]) -> list[TrialRecord]:
        old = [record for record in trials if is_first_run(record)]
        other = json.dumps({"dataset": "zinc", "seed": 41, "fold": None})
        return [
            *trials,
            *(replace(record, key="f" * 20, status="superseded", config_json=other, started_at=1.0) for record in old),
        ]

    assert check(clean_study(tmp_path, supersede)) == ()


def test_unasked_run(tmp_path: Path) -> None:
    best = trials_of(GATED)[5]
    more = [confirm_trial(GATED, seed, 0.4, best) for seed in (2, 3, 5, 10)]
    found = only(check(clean_study(tmp_path, lambda trials: [*trials, *more])), "unasked-run", "warns")
    assert found.found == "confirm trials that the plan does not ask for: seed 2, seed 3, seed 5, seed 10"
    assert found.keys == tuple(sorted(record.key for record in more))


def test_one_run(tmp_path: Path) -> None:
    cells = [{**cell, "seeds": [41]} for cell in (VANILLA, GATED)]
    change: Change = lambda trials: [record for record in trials if record.seed == 41]  # noqa: E731
    found = check(clean_study(tmp_path, change, cells))
    assert [(finding.kind, finding.severity, finding.cell) for finding in found] == [
        ("one-run", "warns", VANILLA["id"]),
        ("one-run", "warns", GATED["id"]),
    ]


def test_zero_spread(tmp_path: Path) -> None:
    found = only(check(clean_study(tmp_path, changed(is_gated_confirm, test_metric=0.3))), "zero-spread", "warns")
    assert found.found == "all 4 runs have the test metric 0.3"
    assert found.keys == keys(is_gated_confirm)


@pytest.mark.parametrize("limit", ["max_epochs", "time_limit"])
def test_cut_short(tmp_path: Path, limit: str) -> None:
    found = only(check(clean_study(tmp_path, changed(is_first_run, reason=limit))), "cut-short", "warns")
    assert found.found == f"1 of 4 runs ended by {limit}, after 3 epochs"
    assert found.keys == keys(is_first_run)
    first, *rest = keys(is_gated_confirm)
    change = changed(lambda record: record.key in rest, reason=limit)
    shorter = changed(lambda record: record.key == first, reason=limit, epochs=curve([0.5], gate_std=0.02))
    found = only(check(clean_study(tmp_path / "all", lambda trials: shorter(change(trials)))), "cut-short", "warns")
    assert found.found == f"4 of 4 runs ended by {limit}, after 1 to 3 epochs"


@pytest.mark.parametrize("status", ["diverged", "failed", "running"])
def test_search_unfinished(tmp_path: Path, status: str) -> None:
    change = changed(lambda record: is_gated_search(record) and record.number == 7, status=status)
    found = only(check(clean_study(tmp_path, change)), "search-unfinished", "warns")
    assert found.found == f"1 of 8 search trials {status}"
    assert found.keys == keys(lambda record: is_gated_search(record) and record.number == 7)
