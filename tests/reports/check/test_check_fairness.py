"""Findings about arms that face each other without the same means."""

from dataclasses import replace
from pathlib import Path

import pytest
from made_studies import SEEDS, trial, write_study
from one_fault import Change, is_first_run, is_gated, is_gated_confirm, is_gated_search, keys, only
from searched_study import GATED, VANILLA, changed, clean_study, curve, search_trial

from reports.check import check
from study.records import TrialRecord


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
    more = [search_trial(VANILLA, 8 + place, 4e-4 + place / 1e5, [0.99], "pruned") for place in range(9)]
    half = clean_study(tmp_path / "half", lambda trials: [*trials, *more[:8]])
    assert only(check(half), "unequal-search", "warns").found.startswith("8 search trials, against 16 of")
    less = clean_study(tmp_path / "less", lambda trials: [*trials, *more])
    found = only(check(less), "unequal-search", "forbids")
    assert found.found == "8 search trials, against 17 of ZINC GCN 100k L4, which it faces"


def test_a_baseline_with_nothing_to_search_warns(tmp_path: Path) -> None:
    cells = [{**VANILLA, "trials": 0}, GATED]

    def change(trials: list[TrialRecord]) -> list[TrialRecord]:
        fixed = [replace(record, chosen_from=None) if not is_gated(record) else record for record in trials]
        return [record for record in fixed if is_gated(record) or record.phase == "confirm"]

    found = only(check(clean_study(tmp_path, change, cells)), "unequal-search", "warns")
    assert found.found.startswith("8 search trials, against 0 of")


def test_a_search_that_was_planned_and_is_lost_forbids(tmp_path: Path) -> None:
    change: Change = lambda trials: [record for record in trials if is_gated(record) or record.phase == "confirm"]  # noqa: E731
    findings = check(clean_study(tmp_path, change))
    (found,) = (finding for finding in findings if finding.kind == "unequal-search")
    assert (found.severity, found.found) == (
        "forbids",
        "8 search trials, against 0 of ZINC GCN 100k L4, which it faces",
    )


def test_unequal_epochs_of_searches(tmp_path: Path) -> None:
    # The vanilla search trained for 6 * 6 + 2 * 2 = 40 epochs.
    longer = curve([0.9, 0.9, *[0.7] * 20])

    def change(trials: list[TrialRecord]) -> list[TrialRecord]:
        return [
            replace(record, epochs=longer) if is_gated_search(record) and record.number == 7 else record
            for record in trials
        ]

    assert check(clean_study(tmp_path / "less", change)) == ()  # 38 + 22 = 60 epochs, not over 60
    longer = curve([0.9, 0.9, *[0.7] * 21])
    found = only(check(clean_study(tmp_path / "more", change)), "unequal-epochs", "warns")
    assert found.found == "its search trained for 61 epochs, against 40 of ZINC GCN 100k L4"


def test_unequal_epochs_of_runs(tmp_path: Path) -> None:
    found = only(check(clean_study(tmp_path, changed(is_gated_confirm, max_epochs=2000))), "unequal-epochs", "warns")
    assert found.found == "its runs may train for 2000 epochs, against 1000 of ZINC GCN 100k L4"


@pytest.mark.parametrize(
    ("params", "budget", "is_told"), [(105_001, None, True), (105_000, None, False), (105_001, 1, False)]
)
def test_unequal_size(tmp_path: Path, params: int, budget: int | None, is_told: bool) -> None:
    """5% above 100,000 are 105,000."""
    cells = [{**cell, "budget": budget and 200_000, "hidden_dim": None if budget else 145} for cell in (VANILLA, GATED)]
    records = [
        trial(cell, seed, 0.4 + seed / 1000, params=size)
        for cell, size in zip(cells, (100_000, params), strict=True)
        for seed in SEEDS
    ]
    found = [one for one in check(write_study(tmp_path, cells, records)) if one.kind == "unequal-size"]
    assert bool(found) is is_told
    if found:
        name = "ZINC GCN h145 L4"
        assert found[0].found == f"105001 parameters, against 100000 of {name}, which it faces, without a budget"
        assert (found[0].severity, found[0].cell) == ("warns", GATED["id"])


def test_facing_arms_with_other_settings(tmp_path: Path) -> None:
    def study(name: str, ours: dict[str, object], theirs: dict[str, object]) -> Path:
        return clean_study(
            tmp_path / name, cells=[{**VANILLA, "other_settings": theirs}, {**GATED, "other_settings": ours}]
        )

    alike: dict[str, object] = {"batch_size": 128, "precision": "float32", "max_epochs": 1000}
    assert check(study("alike", alike, alike)) == ()
    # What one arm alone has is its gate's, and of epochs another finding tells.
    assert check(study("epochs", {**alike, "gate_epsilon": 1e-3, "max_epochs": 500}, alike)) == ()
    other = {**alike, "batch_size": 64, "precision": "bfloat16"}
    found = only(check(study("other", other, alike)), "unequal-settings", "warns")
    assert found.found == (
        "batch_size 64, against 128; precision bfloat16, against float32 of ZINC GCN 100k L4, which it faces"
    )


def test_a_setting_that_one_arm_was_given_and_the_other_searched(tmp_path: Path) -> None:
    not_searched = {"sigma_m": {"log_uniform": [0.1, 10.0]}}
    ours = {**GATED, "other_settings": {"learning_rate": 1e-3}, "searched": not_searched}
    given = clean_study(tmp_path / "given", cells=[VANILLA, ours])
    found = only(check(given), "unequal-settings", "warns")
    assert found.found == "learning_rate 0.001, against a searched one of ZINC GCN 100k L4, which it faces"
    theirs = {**VANILLA, "other_settings": {"learning_rate": 1e-3}, "searched": {}}
    searched = clean_study(tmp_path / "searched", cells=[theirs, GATED])
    found = only(check(searched), "unequal-settings", "warns")
    assert found.found == "learning_rate a searched one, against 0.001 of ZINC GCN 100k L4, which it faces"
