"""Findings about how configurations were chosen."""

import json
from pathlib import Path

import pytest
from one_fault import is_first_run, is_gated_confirm, is_gated_search, keys, only
from searched_study import BEST, GATED, VANILLA, changed, clean_study, trials_of

from reports.check import check
from reports.records.search_plan import load_search_plans


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
    assert found.found.startswith("1 confirm trial repeats no search trial, expected")


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
        # At the very bounds of what counts as the edge: 0.0015 / 0.03 = 0.05, and just beyond.
        ({"uniform": [0.0, 0.03]}, True),
        ({"uniform": [0.0, 0.0299]}, False),
        ({"uniform": [-0.0004, 0.0016]}, True),
        ({"uniform": [-0.0004, 0.00161]}, False),
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


def test_a_value_that_was_not_sampled_lies_at_no_edge(tmp_path: Path) -> None:
    """The trials are boosted, the rate is searched elsewhere alone: 0.0015 is what all of them have by default."""
    rate = {"uniform": [0.0015, 0.01], "when": {"placement": ["dense"]}}
    cells = [VANILLA, {**GATED, "searched": {"placement": {"choice": ["boosting", "dense"]}, "learning_rate": rate}}]
    assert check(clean_study(tmp_path, cells=cells)) == ()


def test_a_plan_of_an_older_version_says_no_ranges(tmp_path: Path) -> None:
    old = [{key: value for key, value in cell.items() if key not in ("searched", "rungs")} for cell in (VANILLA, GATED)]
    assert check(clean_study(tmp_path, cells=old)) == ()
    assert load_search_plans(tmp_path)[GATED["id"]].ranges is None
