"""Findings about numbers that cannot be what they are said to be."""

from dataclasses import replace
from pathlib import Path

import pytest
from made_studies import SEEDS, trial, write_study
from one_fault import is_first_run, is_gated_confirm, keys, only
from searched_study import VANILLA, changed, clean_study

from reports.check import check


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


def test_impossible_values_of_a_cell_are_counted(tmp_path: Path) -> None:
    findings = check(clean_study(tmp_path, changed(is_gated_confirm, train_metric=-0.25)))
    found = only(findings, "impossible-value", "forbids")
    first, *_ = keys(is_gated_confirm)
    assert found.found == f"records/{first}.parquet and 3 more: train_metric -0.25, expected 0 or more of mae"
    assert found.keys == keys(is_gated_confirm)


def test_ends_of_the_range_are_possible(tmp_path: Path) -> None:
    cell = {**VANILLA, "metric": "accuracy", "direction": "max"}
    records = [trial(cell, seed, test) for seed, test in zip(SEEDS, (0.0, 1.0, 0.5, 0.6), strict=True)]
    assert "impossible-value" not in {found.kind for found in check(write_study(tmp_path, [cell], records))}


def test_other_metric(tmp_path: Path) -> None:
    results = clean_study(tmp_path, changed(is_first_run, metric="f1"))
    (key,) = keys(is_first_run)
    found = only(check(results), "other-metric", "forbids")
    assert (found.found, found.keys) == (f"records/{key}.parquet: metric f1, expected mae", (key,))
    key, *_ = keys(is_gated_confirm)
    found = only(
        check(clean_study(tmp_path / "all", changed(is_gated_confirm, metric="f1"))), "other-metric", "forbids"
    )
    assert found.found == f"records/{key}.parquet and 3 more: metric f1, expected mae"
