"""Each kind of finding in a study that has that fault alone, and none in one that has no fault."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_studies import SEEDS, trial, worked_study, write_study
from searched_study import (
    BEST,
    GATED,
    LEARNING_RATES,
    RUNG,
    TESTS,
    VANILLA,
    changed,
    clean_study,
    confirm_trial,
    curve,
    search_trial,
    trials_of,
)

from reports.check import Finding, check, check_together
from reports.check.rendering import finding_lines, summary_line
from reports.records.plan import ResultsError
from reports.records.search_plan import SearchedRange, load_search_plans
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
    return tuple(sorted(record.key for record in [*trials_of(VANILLA), *trials_of(GATED)] if which(record)))


def only(findings: tuple[Finding, ...], kind: str, severity: str, cell: str | None = GATED["id"]) -> Finding:
    assert [(finding.kind, finding.severity, finding.cell) for finding in findings] == [(kind, severity, cell)]
    return findings[0]


def test_nothing_is_found_where_nothing_is_wrong(tmp_path: Path) -> None:
    assert check(clean_study(tmp_path)) == ()


# ---- runs


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
        return [*trials, *(replace(record, key="f" * 20) for record in trials if is_first_run(record))]

    found = only(check(clean_study(tmp_path, double)), "doubled-run", "forbids")
    assert found.found == "more than one confirm trial of a run: seed 41 has 2"
    assert found.keys == (*keys(is_first_run), "f" * 20)


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
    change: Change = lambda trials: [*trials, confirm_trial(GATED, 7, 0.4, best)]  # noqa: E731
    found = only(check(clean_study(tmp_path, change)), "unasked-run", "warns")
    assert found.found == "confirm trials that the plan does not ask for: seed 7"
    assert found.keys == (confirm_trial(GATED, 7, 0.4, best).key,)


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


@pytest.mark.parametrize("status", ["diverged", "failed", "running"])
def test_search_unfinished(tmp_path: Path, status: str) -> None:
    change = changed(lambda record: is_gated_search(record) and record.number == 7, status=status)
    found = only(check(clean_study(tmp_path, change)), "search-unfinished", "warns")
    assert found.found == f"1 of 8 search trials {status}"
    assert found.keys == keys(lambda record: is_gated_search(record) and record.number == 7)


# ---- provenance


def test_mixed_code_within_a_cell(tmp_path: Path) -> None:
    found = only(check(clean_study(tmp_path, changed(is_first_run, git_commit="bb22"))), "mixed-code", "forbids")
    assert found.found == "runs of aa11 (3 trials) and bb22 (1 trial)"


def test_mixed_code_between_cells_that_are_compared(tmp_path: Path) -> None:
    found = only(check(clean_study(tmp_path, changed(is_gated, git_commit="bb22"))), "mixed-code", "forbids", None)
    assert (found.where, found.found) == (
        "ZINC",
        "cells that are compared are of aa11 (4 trials) and bb22 (4 trials)",
    )


def test_search_of_other_code(tmp_path: Path) -> None:
    found = only(
        check(clean_study(tmp_path, changed(is_gated_search, git_commit="bb22"))), "search-of-other-code", "warns"
    )
    assert found.found == "8 search trials of bb22 (8 trials)"


def test_changed_code(tmp_path: Path) -> None:
    found = only(check(clean_study(tmp_path, changed(is_first_run, git_dirty=True))), "changed-code", "forbids", None)
    assert (found.found, found.keys) == (
        "1 of the 8 runs behind the table with changed files",
        keys(is_first_run),
    )


def test_unknown_code(tmp_path: Path) -> None:
    change = changed(lambda record: True, git_commit=None, git_dirty=None)
    found = only(check(clean_study(tmp_path, change)), "unknown-code", "warns", None)
    assert found.found == "8 of the 8 runs behind the table of a code state that is not known"


def test_mixed_data_within_a_cell(tmp_path: Path) -> None:
    change = changed(lambda record: is_gated_search(record) and record.number == 0, data_fingerprint="ee")
    found = only(check(clean_study(tmp_path, change)), "mixed-data", "forbids")
    assert found.found == "trials on data 0f (11 trials) and ee (1 trial)"


def test_mixed_data_between_cells_that_are_compared(tmp_path: Path) -> None:
    found = only(check(clean_study(tmp_path, changed(is_gated, data_fingerprint="ee"))), "mixed-data", "forbids", None)
    assert found.found == "cells that are compared are of data 0f (4 trials) and ee (4 trials)"


def test_mixed_libraries(tmp_path: Path) -> None:
    newer = '{"torch": "2.10.0", "python": "3.11.7", "ray": "3"}'
    found = only(
        check(clean_study(tmp_path, changed(is_first_run, versions_json=newer))), "mixed-libraries", "warns", None
    )
    assert found.found == (
        "runs with different libraries: ray 3 (1 run), none (7 runs); torch 2.10.0 (1 run), 2.9.0 (7 runs)"
    )


def test_outside_plan(tmp_path: Path) -> None:
    stranger = trial({**VANILLA, "id": "gone"}, 41, 0.4)
    found = only(check(clean_study(tmp_path, lambda trials: [*trials, stranger])), "outside-plan", "warns", None)
    assert (found.where, found.found, found.keys) == (
        "cell gone",
        "1 trial of a cell that the plan does not name",
        (stranger.key,),
    )


def test_other_study(tmp_path: Path) -> None:
    found = only(check(clean_study(tmp_path, changed(is_first_run, study="copied"))), "other-study", "forbids")
    assert found.found == "1 trial of the study copied, not made"


def test_studies_of_one_table_are_compared(tmp_path: Path) -> None:
    first = clean_study(tmp_path / "first")
    second = clean_study(tmp_path / "second", changed(lambda record: True, data_fingerprint="ee"))
    assert check(second) == ()
    found = only(check_together([first, second]), "mixed-data", "forbids", None)
    assert found.found == "the studies made, made are of 0f (8 trials) and ee (8 trials)"


# ---- fairness


def test_over_budget(tmp_path: Path) -> None:
    assert check(clean_study(tmp_path / "equal", changed(is_gated_confirm, params=100_000))) == ()
    found = only(check(clean_study(tmp_path / "over", changed(is_first_run, params=100_001))), "over-budget", "forbids")
    assert (found.found, found.keys) == ("100001 parameters for a budget of 100000", keys(is_first_run))


def without_search_trial(number: int) -> Change:
    return lambda trials: [record for record in trials if not (is_gated_search(record) and record.number == number)]


def test_unequal_search(tmp_path: Path) -> None:
    found = only(check(clean_study(tmp_path, without_search_trial(7))), "unequal-search", "warns")
    assert found.found == "7 search trials, against 8 of ZINC GCN 100k L4, which it faces"


def test_less_than_half_of_the_other_arms_search_forbids(tmp_path: Path) -> None:
    def change(trials: list[TrialRecord]) -> list[TrialRecord]:
        more = [search_trial(VANILLA, 8 + place, 4e-4 + place / 1e5, [0.99], "pruned") for place in range(9)]
        return [*trials, *more]

    found = only(check(clean_study(tmp_path, change)), "unequal-search", "forbids")
    assert found.found == "8 search trials, against 17 of ZINC GCN 100k L4, which it faces"


def test_a_baseline_with_nothing_to_search_warns(tmp_path: Path) -> None:
    cells = [{**VANILLA, "trials": 0}, GATED]

    def change(trials: list[TrialRecord]) -> list[TrialRecord]:
        fixed = [replace(record, chosen_from=None) if not is_gated(record) else record for record in trials]
        return [record for record in fixed if is_gated(record) or record.phase == "confirm"]

    found = only(check(clean_study(tmp_path, change, cells)), "unequal-search", "warns")
    assert found.found.startswith("8 search trials, against 0 of")


def test_unequal_epochs_of_searches(tmp_path: Path) -> None:
    # The vanilla search trained for 6 * 6 + 2 * 2 = 40 epochs.
    longer = curve([0.9, 0.9, *[0.7] * 18])

    def change(trials: list[TrialRecord]) -> list[TrialRecord]:
        return [
            replace(record, epochs=longer) if is_gated_search(record) and record.number == 7 else record
            for record in trials
        ]

    assert check(clean_study(tmp_path / "less", change)) == ()  # 38 + 20 = 58 epochs, not over 60
    longer = curve([0.9, 0.9, *[0.7] * 21])
    found = only(check(clean_study(tmp_path / "more", change)), "unequal-epochs", "warns")
    assert found.found == "its search trained for 61 epochs, against 40 of ZINC GCN 100k L4"


def test_unequal_epochs_of_runs(tmp_path: Path) -> None:
    found = only(check(clean_study(tmp_path, changed(is_gated_confirm, max_epochs=2000))), "unequal-epochs", "warns")
    assert found.found == "its runs may train for 2000 epochs, against 1000 of ZINC GCN 100k L4"


# ---- choice


@pytest.mark.parametrize("column", ["test_metric", "test_loss"])
def test_test_in_search(tmp_path: Path, column: str) -> None:
    which = lambda record: is_gated_search(record) and record.number == 3  # noqa: E731
    found = only(check(clean_study(tmp_path, changed(which, **{column: 0.3}))), "test-in-search", "forbids")
    assert (found.found, found.keys) == ("1 of 8 search trials read the test split", keys(which))


def test_not_the_best(tmp_path: Path) -> None:
    best, second = trials_of(GATED)[5].key, trials_of(GATED)[4].key
    found = only(check(clean_study(tmp_path, changed(is_gated_confirm, chosen_from=second))), "not-the-best", "forbids")
    assert found.found.startswith(f"4 confirm trials repeat {second}, expected {best} (")
    assert found.keys == keys(is_gated_confirm)


def test_chosen_from_no_search_trial(tmp_path: Path) -> None:
    found = only(check(clean_study(tmp_path, changed(is_first_run, chosen_from=None))), "not-the-best", "forbids")
    assert found.found.startswith("1 confirm trial repeat no search trial, expected")


def test_confirm_trials_of_another_configuration(tmp_path: Path) -> None:
    which = lambda record: is_gated_search(record) and record.number == 5  # noqa: E731
    other = json.dumps({"dataset": "zinc", "seed": 41, "fold": None, "train": {"learning_rate": 0.5}})
    found = only(check(clean_study(tmp_path, changed(which, config_json=other))), "not-the-best", "forbids")
    assert found.found.startswith("the confirm trials differ from the configuration of")


def test_a_trial_pruned_at_the_last_rung_can_be_the_best(tmp_path: Path) -> None:
    which = lambda record: is_gated_search(record) and record.number == 6  # noqa: E731
    best = trials_of(GATED)[6].key
    # Its last metric is now the best of all; with the rung at epoch 2, its 2 epochs were all the way.
    found = only(check(clean_study(tmp_path, changed(which, val_metric=0.1))), "not-the-best", "forbids")
    assert f"expected {best}" in found.found


@pytest.mark.parametrize(
    ("searched", "at_the_edge"),
    [
        # 0.0015 lies at log(0.0015 / 0.0014) / log(0.01 / 0.0014) = 0.069 / 1.966 = 0.035
        ({"log_uniform": [0.0014, 0.01]}, True),
        # ... and here at 0.223 / 2.120 = 0.105
        ({"log_uniform": [0.0012, 0.01]}, False),
        # By itself at (0.0015 - 0.0012) / (0.01 - 0.0012) = 0.034
        ({"uniform": [0.0012, 0.01]}, True),
        ({"uniform": [0.0001, 0.0015]}, True),
        ({"choice": [0.0015, 0.01, 0.1]}, True),
        ({"choice": [0.1, 0.0001, 0.0015]}, False),
        ({"choice": [0.0015, 0.01]}, False),
    ],
)
def test_edge_of_range(tmp_path: Path, searched: dict[str, list[float]], at_the_edge: bool) -> None:
    cells = [VANILLA, {**GATED, "searched": {"learning_rate": searched}}]
    findings = check(clean_study(tmp_path, cells=cells))
    if at_the_edge:
        ((kind, values),) = searched.items()
        assert only(findings, "edge-of-range", "warns").found == (
            f"learning_rate = {BEST} was chosen at the edge of {kind} {values}"
        )
    else:
        assert findings == ()


@pytest.mark.parametrize(
    ("kind", "values", "value", "place"),
    [
        ("log_uniform", (0.1, 10.0), 1.0, 0.5),
        ("log_int", (1, 16), 4, 0.5),
        ("int", (2, 16), 2, 0.0),
        ("int", (2, 16), 9, 0.5),
        ("int", (2, 3), 2, None),
        ("uniform", (-1.0, 3.0), 0.0, 0.25),
        ("choice", (16, 2, 8), 8, 0.5),
        ("choice", (16, 2, 8), 16, 1.0),
        ("choice", (True, False), True, None),
        ("choice", ("mean", "sum", "max"), "sum", None),
        ("choice", ([2, 4], "dense", "none"), "2,4", None),
        ("choice", (1, 2, 3), None, None),
    ],
)
def test_place_in_a_range(kind: str, values: tuple[object, ...], value: object, place: float | None) -> None:
    found = SearchedRange(name="x", kind=kind, values=values).place(value)
    assert found == (None if place is None else pytest.approx(place))


@given(
    st.sampled_from(["uniform", "log_uniform", "int", "log_int"]),
    st.lists(st.integers(1, 10**6), min_size=4, max_size=4, unique=True).map(sorted),
)
def test_places_are_ordered_and_within_the_range(kind: str, numbers: list[int]) -> None:
    low, first, second, high = numbers
    searched = SearchedRange(name="x", kind=kind, values=(low, high))
    places = [searched.place(value) for value in (low, first, second, high)]
    assert places[0] == 0.0
    assert places[3] == pytest.approx(1.0)
    assert places == sorted(place for place in places if place is not None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("searched", [1]),
        ("searched", {"sigma_m": {"uniform": [1, 0]}}),
        ("searched", {"sigma_m": {"log_uniform": [0, 1]}}),
        ("searched", {"sigma_m": {"uniform": [0, 1], "choice": [1]}}),
        ("searched", {"sigma_m": 3}),
        ("rungs", 3),
        ("rungs", ["3"]),
        ("trials", "8"),
    ],
)
def test_a_plan_that_is_no_plan(tmp_path: Path, key: str, value: object) -> None:
    results = write_study(tmp_path, [{**GATED, key: value}], [])
    with pytest.raises(ResultsError, match=rf"plan.json: cells\[0\].{key}.*: found .* expected"):
        load_search_plans(results)


def test_a_plan_of_an_older_version_says_no_ranges(tmp_path: Path) -> None:
    old = [{key: value for key, value in cell.items() if key not in ("searched", "rungs")} for cell in (VANILLA, GATED)]
    assert check(clean_study(tmp_path, cells=old)) == ()
    assert load_search_plans(tmp_path)[GATED["id"]].ranges is None


# ---- training


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
    late = (*curve([0.5], gate_std=0.0), *curve([0.5, 0.4], gate_std=0.01)[1:])
    assert check(clean_study(tmp_path, changed(is_gated_confirm, epochs=late))) == ()


# ---- bad input


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


def test_order_of_records_changes_nothing(tmp_path: Path) -> None:
    first = check(worked_study(tmp_path / "first"))
    assert first
    assert first == check(worked_study(tmp_path / "second"))


# ---- words


def test_a_line_a_finding(tmp_path: Path) -> None:
    findings = check(clean_study(tmp_path, changed(is_gated_confirm, test_metric=0.3, git_dirty=True)))
    lines = finding_lines(findings)
    a, b, c, d = keys(is_gated_confirm)
    assert lines[0] == (
        "forbids changed-code: made: 4 of the 8 runs behind the table with changed files; files differed from the "
        "commit, so nobody can get back the code that made these numbers; to mend: commit, and run the study again in "
        f"a new results folder [trials: {a}, {b}, {c}, {d}]"
    )
    assert lines[1].startswith("warns zero-spread: made: ZINC bi-GCN 100k L4: all 4 runs have")
    assert len(lines) == 2
    assert summary_line(findings, 1) == "1 finding that forbids publishing, 1 warning in 1 study: do not publish yet"
    assert summary_line((), 2) == "nothing found in 2 studies"


def test_names_cannot_break_a_line(tmp_path: Path) -> None:
    odd = {**VANILLA, "dataset_title": "R&D_100%\n\x1b[31m{ü}"}
    (line,) = finding_lines(check(write_study(tmp_path, [odd], [])))
    assert line.isprintable()
    assert "R&D_100% [31m{ü} GCN" in line


def test_the_made_study_is_what_it_says() -> None:
    assert len(TESTS["none"]) == len(SEEDS)
    assert LEARNING_RATES[-1] == BEST


# ---- what the numbers can be


@pytest.mark.parametrize(
    ("metric", "column", "value", "expected"),
    [
        ("mae", "test_metric", -0.4, "0 or more"),
        ("accuracy", "test_metric", 1.2, "0 to 1"),
        ("accuracy", "train_metric", -0.1, "0 to 1"),
        ("balanced_accuracy", "val_metric", 97.0, "0 to 1"),
        ("f1", "test_metric", 1.5, "0 to 1"),
    ],
)
def test_impossible_value(tmp_path: Path, metric: str, column: str, value: float, expected: str) -> None:
    cell = {**VANILLA, "metric": metric, "direction": "min" if metric == "mae" else "max"}
    records = [trial(cell, seed, 0.5 + seed / 1000) for seed in SEEDS]
    records[0] = replace(records[0], **{column: value})  # type: ignore[arg-type]
    findings = [found for found in check(write_study(tmp_path, [cell], records)) if found.severity == "forbids"]
    found = only(tuple(findings), "impossible-value", "forbids", cell["id"])
    assert found.found == f"records/{records[0].key}.parquet: {column} {value!r}, expected {expected} of {metric}"
    assert found.keys == (records[0].key,)


def test_ends_of_the_range_are_possible(tmp_path: Path) -> None:
    cell = {**VANILLA, "metric": "accuracy", "direction": "max"}
    records = [trial(cell, seed, test) for seed, test in zip(SEEDS, (0.0, 1.0, 0.5, 0.6), strict=True)]
    assert "impossible-value" not in {found.kind for found in check(write_study(tmp_path, [cell], records))}


def test_other_metric(tmp_path: Path) -> None:
    results = clean_study(tmp_path, changed(is_first_run, metric="f1"))
    (key,) = keys(is_first_run)
    found = only(check(results), "other-metric", "forbids")
    assert (found.found, found.keys) == (f"records/{key}.parquet: metric f1, expected mae", (key,))


@pytest.mark.parametrize(
    ("params", "budget", "is_told"), [(125_651, None, True), (108_230, None, False), (125_651, 1, False)]
)
def test_unequal_size(tmp_path: Path, params: int, budget: int | None, is_told: bool) -> None:
    """5% above 103,077 are 108,230.85."""
    cells = [{**cell, "budget": budget and 200_000, "hidden_dim": None if budget else 145} for cell in (VANILLA, GATED)]
    records = [
        trial(cell, seed, 0.4 + seed / 1000, params=size)
        for cell, size in zip(cells, (103_077, params), strict=True)
        for seed in SEEDS
    ]
    found = [one for one in check(write_study(tmp_path, cells, records)) if one.kind == "unequal-size"]
    assert bool(found) is is_told
    if found:
        name = "ZINC GCN h145 L4"
        assert found[0].found == f"125651 parameters, against 103077 of {name}, which it faces, without a budget"
        assert (found[0].severity, found[0].cell) == ("warns", GATED["id"])


def test_one_trial_with_other_numbers_in_two_studies(tmp_path: Path) -> None:
    first = clean_study(tmp_path / "a")
    second = clean_study(tmp_path / "b", changed(is_first_run, test_metric=0.123))
    (key,) = keys(is_first_run)
    found = only(check_together([first, second]), "other-numbers", "forbids", None)
    assert found.keys == (key,)
    assert found.found.endswith(f"the first records/{key}.parquet: test metrics {TESTS['boosting'][0]} and 0.123")
    (tmp_path / "c").mkdir()
    assert check_together([first, clean_study(tmp_path / "c")]) == ()
