"""Findings in the curves: rungs that rank otherwise than the end, gates that stand still."""

import math
from dataclasses import replace
from pathlib import Path

from one_fault import Change, is_gated_confirm, is_gated_search, only
from searched_study import GATED, RUNG, VANILLA, changed, clean_study, curve

from reports.check import check
from study.records import TrialRecord


def with_rung_values(values: list[float]) -> Change:
    def change(trials: list[TrialRecord]) -> list[TrialRecord]:
        return [
            replace(record, epochs=curve([0.9, values[record.number], 0.7, 0.7, 0.7, record.val_metric]))
            if is_gated_search(record)
            and record.number is not None
            and record.number < 6
            and record.val_metric is not None
            else record
            for record in trials
        ]

    return change


def test_rung_order(tmp_path: Path) -> None:
    # At the end trial 5 is the best, then 4, ...; ranks at the rung are 3 5 1 6 2 4 of 6 against 6 5 4 3 2 1:
    # d = 3 0 3 3 0 3, so rho = 1 - 6 * 36 / (6 * 35) = -0.03
    found = only(
        check(clean_study(tmp_path, with_rung_values([0.63, 0.65, 0.61, 0.66, 0.62, 0.64]))), "rung-order", "warns"
    )
    assert found.found == "rank correlation of the validation metric with that at the end: -0.03 at epoch 2 (6 trials)"


def test_a_rung_that_ranks_nearly_as_the_end_is_fine(tmp_path: Path) -> None:
    # Two neighbours swapped: rho = 1 - 6 * 2 / (6 * 35) = 0.94
    assert check(clean_study(tmp_path, with_rung_values([0.65, 0.66, 0.64, 0.63, 0.62, 0.61]))) == ()


def test_too_few_trials_to_judge_the_rungs(tmp_path: Path) -> None:
    def change(trials: list[TrialRecord]) -> list[TrialRecord]:
        early = [record for record in trials if is_gated_search(record) and record.number in (0, 1)]
        return [
            replace(record, status="pruned", epochs=record.epochs[:RUNG]) if record in early else record
            for record in trials
        ]

    found = only(check(clean_study(tmp_path, change)), "rung-order-unknown", "warns")
    assert "at epoch 2 (4 trials)" in found.found


def test_values_that_are_no_numbers_are_not_ranked(tmp_path: Path) -> None:
    # Without trial 5, ranks at the rung are 3 5 1 4 2 of 5 against 5 4 3 2 1: d = 2 1 2 2 1, rho = 1 - 6 * 14 / 120.
    values = [0.63, 0.65, 0.61, 0.64, 0.62, math.nan]
    found = only(check(clean_study(tmp_path, with_rung_values(values))), "rung-order", "warns")
    assert found.found.endswith("0.30 at epoch 2 (5 trials)")


def test_a_trial_that_ended_at_the_rung_has_no_later_value(tmp_path: Path) -> None:
    # It is the best at the rung and at the end: counted, it would raise the correlation of the other five.
    worse = with_rung_values([0.63, 0.65, 0.61, 0.64, 0.62, 0.1])
    change: Change = lambda trials: [  # noqa: E731
        replace(record, epochs=curve([0.9, 0.1]), val_metric=0.1)
        if is_gated_search(record) and record.number == 5
        else record
        for record in worse(trials)
    ]
    found = only(check(clean_study(tmp_path, change)), "rung-order", "warns")
    assert found.found.endswith("0.30 at epoch 2 (5 trials)")


def test_equal_values_at_a_rung_have_no_order(tmp_path: Path) -> None:
    found = only(check(clean_study(tmp_path, with_rung_values([0.6] * 6))), "rung-order-unknown", "warns")
    assert "expected 5 of different values" in found.found


def test_the_rung_of_the_last_epoch_prunes_nothing(tmp_path: Path) -> None:
    cells = [{**cell, "rungs": [RUNG, 1000]} for cell in (VANILLA, GATED)]
    assert check(clean_study(tmp_path, cells=cells)) == ()


def test_still_gate(tmp_path: Path) -> None:
    change = changed(is_gated_confirm, epochs=curve([0.5, 0.4, 0.3], gate_std=1.4e-7))
    found = only(check(clean_study(tmp_path, change)), "still-gate", "warns")
    assert found.found == (
        "in 4 of 4 runs the gate's spread over the edges stayed below 0.0001 in every epoch (at most 1.4e-07)"
    )


def test_a_gate_that_moved_late_is_not_still(tmp_path: Path) -> None:
    late = (*curve([0.5], gate_std=0.0), *curve([0.5, 0.4], gate_std=1e-4)[1:])
    assert check(clean_study(tmp_path, changed(is_gated_confirm, epochs=late))) == ()
