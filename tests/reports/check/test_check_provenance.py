"""Findings about where numbers come from: code, data, libraries, studies."""

from pathlib import Path

from made_studies import trial, write_study, write_used_data
from one_fault import is_first_run, is_gated, is_gated_confirm, is_gated_search, keys, only
from searched_study import GATED, VANILLA, changed, clean_study, trials_of

from reports.check import check, check_together


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
    strangers = [trial({**VANILLA, "id": name}, seed, 0.4) for name in "abcd" for seed in (1, 2)]
    found = check(clean_study(tmp_path, lambda trials: [*trials, *strangers]))
    assert [(finding.kind, finding.severity, finding.where, finding.found, finding.keys) for finding in found] == [
        (
            *("outside-plan", "warns", f"cell {name}", "2 trials of a cell that the plan does not name"),
            tuple(sorted(record.key for record in strangers if record.cell == name)),
        )
        for name in "abcd"
    ]


def test_other_study(tmp_path: Path) -> None:
    found = only(check(clean_study(tmp_path, changed(is_first_run, study="copied"))), "other-study", "forbids")
    assert found.found == "1 trial of the study copied, not made"


def test_studies_of_one_table_are_compared(tmp_path: Path) -> None:
    first = clean_study(tmp_path / "first")
    second = clean_study(tmp_path / "second", changed(lambda record: True, data_fingerprint="ee"))
    assert check(second) == ()
    found = only(check_together([first, second]), "mixed-data", "forbids", None)
    assert found.found == "the studies made, made are of 0f (8 trials) and ee (8 trials)"
    # A study without any run yet is of no data.
    empty = write_study(tmp_path / "empty", [VANILLA, GATED], [])
    assert {finding.kind for finding in check_together([first, empty])} == {"missing-run"}


def test_one_trial_with_other_numbers_in_two_studies(tmp_path: Path) -> None:
    first = clean_study(tmp_path / "a")
    second = clean_study(
        tmp_path / "b", changed(lambda record: is_gated_confirm(record) and record.seed in (41, 95), test_metric=0.123)
    )
    printed = {
        record.key: record.test_metric
        for record in trials_of(GATED)
        if record.phase == "confirm" and record.seed in (41, 95)
    }
    found = only(check_together([first, second]), "other-numbers", "forbids", None)
    assert found.keys == tuple(sorted(printed))
    key = found.keys[0]
    assert found.found == (
        f"2 trials of made with other numbers than in a study before, the first records/{key}.parquet: "
        f"test metrics {printed[key]} and 0.123"
    )
    (tmp_path / "c").mkdir()
    assert check_together([first, clean_study(tmp_path / "c")]) == ()


def test_data_of_another_size_than_the_papers(tmp_path: Path) -> None:
    assert check(write_used_data(clean_study(tmp_path / "whole"), "ZINC", train=10_000, val=1_000, test=1_000)) == ()
    part = write_used_data(clean_study(tmp_path / "part"), "ZINC", train=500, val=50, test=50)
    found = only(check(part), "other-size", "warns", None)
    assert (found.where, found.found) == (
        "ZINC",
        "runs on 600 graphs (train 500, val 50, test 50), where the paper has 12,000",
    )
    assert len(found.keys) == 8
