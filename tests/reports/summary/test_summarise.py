"""Means, spreads and gaps against numbers worked by hand."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_studies import Cell, gated, runs, trial, vanilla, write_study

from reports.records.load import load_results
from reports.records.plan import ResultsError
from reports.summary.summarise import CellSummary, Gap, Spread, spread, summarise, trials_outside_plan
from study.records import TrialRecord


def summary_of(folder: Path, cell: Cell, trials: list[TrialRecord]) -> CellSummary:
    (summary,) = summarise(load_results(write_study(folder, [cell], trials)))
    return summary


def test_the_order_of_the_keys_of_a_configuration_means_nothing(tmp_path: Path) -> None:
    cell = vanilla("digits", "gcn")
    first, *others = (trial(cell, seed, float(seed)) for seed in (41, 95, 12, 35))
    turned = dict(reversed(json.loads(first.config_json).items()))
    summary = summary_of(tmp_path, cell, [replace(first, config_json=json.dumps(turned)), *others])
    assert summary.test == Spread(
        mean=45.75, std=pytest.approx(math.sqrt((4.75**2 + 49.25**2 + 33.75**2 + 10.75**2) / 4))
    )


def test_mean_and_population_std_of_four_seeds(tmp_path: Path) -> None:
    cell = vanilla("digits", "gcn")
    trials = [
        trial(cell, seed, test, train_metric=train, num_epochs=epochs, params=777)
        for seed, test, train, epochs in [
            (41, 1.0, 0.5, 10),
            (95, 2.0, 0.5, 20),
            (12, 3.0, 0.5, 30),
            (35, 6.0, 0.5, 41),
        ]
    ]
    summary = summary_of(tmp_path, cell, trials)
    # Deviations from 3 are -2, -1, 0, 3: their squares sum to 14, over 4 (not 3) runs.
    assert summary.test == Spread(mean=3.0, std=math.sqrt(3.5))
    assert summary.train == Spread(mean=0.5, std=0.0)
    # Last indices 9, 19, 29, 40.
    assert summary.last_epoch == 24.25
    assert (summary.finished, summary.asked, summary.complete, summary.gaps) == (4, 4, True, ())
    assert summary.chosen.params == 777


def test_other_settings_are_the_plans_and_what_its_search_chose(tmp_path: Path) -> None:
    searched = {
        "learning_rate": {"log_uniform": [1e-4, 1e-2]},
        "sigma_m": {"choice": [1]},
        "readout": {"choice": ["sum"]},
    }
    cell = gated("digits", "gcn", sigma_m=None, other_settings={"batch_size": 20}, searched=searched)
    (before,) = summarise(load_results(write_study(tmp_path / "before", [cell], [])))
    assert before.chosen.other_settings == (("batch_size", "20"),)
    # sigma_m has a field of its own; the readout that was chosen is a departure.
    model = {"readout": "sum"}
    departing = [
        replace(
            record,
            departures=json.dumps(model),
            config_json=json.dumps({**json.loads(record.config_json), "model": model}),
        )
        for record in runs(cell, [0.1, 0.2, 0.3, 0.4], sigma_m=1.0, learning_rate=0.002)
    ]
    chosen = summary_of(tmp_path / "after", cell, departing).chosen
    assert chosen.other_settings == (("batch_size", "20"), ("learning_rate", "0.002"))
    assert chosen.departures == (("readout", "sum"),)


def test_one_seed_has_no_spread(tmp_path: Path) -> None:
    cell = vanilla("digits", "gcn", seeds=[41])
    assert summary_of(tmp_path, cell, runs(cell, [0.9])).test == Spread(mean=0.9, std=None)


def test_equal_values_have_exactly_their_mean_and_no_spread() -> None:
    assert spread([0.1] * 3) == spread([0.1] * 4) == Spread(mean=0.1, std=0.0)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=12), st.randoms())
def test_the_order_of_runs_does_not_matter(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert spread(values) == spread(shuffled)
    found = spread(values)
    mean = sum(values) / len(values)
    assert found.mean == pytest.approx(mean)
    variance = sum((value - mean) ** 2 for value in values) / len(values)
    assert found.std == (None if len(values) == 1 else pytest.approx(math.sqrt(variance), abs=1e-9))


def test_every_gap_has_its_reason_and_enters_no_mean(tmp_path: Path) -> None:
    cell = vanilla("digits", "gcn", seeds=[1, 2, 3, 4, 5, 6, 7])
    trials = [
        trial(cell, 1, 0.75),
        trial(cell, 2, 0.1, status="diverged", reason="loss\n  is NaN"),
        trial(cell, 3, 0.1, status="failed", reason="x" * 161),
        trial(cell, 4, 0.1, status="running", reason=None),
        trial(cell, 5, 0.1, status="pruned", reason="x" * 160),
        trial(cell, 6, math.nan),
    ]
    summary = summary_of(tmp_path, cell, trials)
    assert (summary.finished, summary.asked) == (1, 7)
    assert summary.test == Spread(mean=0.75, std=None)
    assert summary.gaps == (
        Gap(seed=2, fold=None, reason="diverged: loss is NaN"),
        Gap(seed=3, fold=None, reason="failed: " + "x" * 157 + "..."),
        Gap(seed=4, fold=None, reason="running"),
        Gap(seed=5, fold=None, reason="pruned: " + "x" * 160),
        Gap(seed=6, fold=None, reason="finished without a number: test metric nan after 3 epochs"),
        Gap(seed=7, fold=None, reason="never started"),
    )


@pytest.mark.parametrize("value", [None, math.inf, -math.inf, math.nan])
def test_a_train_metric_that_is_no_number_leaves_the_test_metric_alone(tmp_path: Path, value: float | None) -> None:
    cell = vanilla("digits", "gcn", seeds=[1, 2])
    first = trial(cell, 1, 0.5, train_metric=0.5)
    second = TrialRecord(**{**vars(trial(cell, 2, 0.5)), "train_metric": value})
    summary = summary_of(tmp_path, cell, [first, second])
    assert summary.test == Spread(mean=0.5, std=0.0)
    assert summary.train is None


def test_a_cell_without_confirm_trials_says_how_its_search_stands(tmp_path: Path) -> None:
    cell = vanilla("digits", "gcn", seeds=[41])
    trials = [
        trial(cell, 41, status=status, phase="search", learning_rate=rate)
        for status, rate in [("pruned", 0.1), ("pruned", 0.2), ("diverged", 0.3)]
    ]
    summary = summary_of(tmp_path, cell, trials)
    assert summary.gaps == (Gap(seed=41, fold=None, reason="never started (search: 1 diverged, 2 pruned)"),)
    assert (summary.test, summary.train, summary.last_epoch, summary.chosen.params) == (None, None, None, None)


def test_folds_are_counted_for_each_seed(tmp_path: Path) -> None:
    cell = vanilla("enzymes", "gcn", seeds=[41], folds=[0, 1, 2])
    summary = summary_of(tmp_path, cell, [trial(cell, 41, 0.2, fold=0), trial(cell, 41, 0.4, fold=2)])
    assert summary.test == Spread(mean=pytest.approx(0.3), std=pytest.approx(0.1))
    assert summary.gaps == (Gap(seed=41, fold=1, reason="never started"),)


def test_two_configurations_are_never_averaged(tmp_path: Path) -> None:
    cell = vanilla("digits", "gcn", seeds=[1, 2])
    old = runs(cell, [0.9, 0.9], learning_rate=0.1, started_at=100.0)
    new = [trial(cell, 2, 0.5, learning_rate=0.2, started_at=200.0)]
    summary = summary_of(tmp_path, cell, [*old, *new])
    assert (summary.finished, summary.set_aside) == (1, 2)
    assert summary.test == Spread(mean=0.5, std=None)
    (gap,) = summary.gaps
    assert (gap.seed, gap.fold) == (1, None)
    assert gap.reason.startswith(f"its record {old[0].key} is of another configuration or of other data (fingerprint ")


def test_seeds_and_cells_that_the_plan_does_not_ask_for_are_left_out(tmp_path: Path) -> None:
    cell = vanilla("digits", "gcn", seeds=[1])
    other = vanilla("digits", "gat", seeds=[1])
    trials = [trial(cell, 1, 0.5), trial(cell, 9, 0.9), trial(other, 1, 0.9), trial(other, 2, phase="search")]
    results = load_results(write_study(tmp_path, [cell], trials))
    (summary,) = summarise(results)
    assert (summary.test, summary.set_aside) == (Spread(mean=0.5, std=None), 1)
    assert trials_outside_plan(results) == 1


def test_what_was_searched_is_what_the_confirm_trials_have(tmp_path: Path) -> None:
    cell = gated("digits", "gcn", None, seeds=[1], id="c", num_clusters=None, sigma_m=None, layers=None, budget=None)
    chosen = {"placement": "dense", "num_clusters": 12, "sigma_m": 0.25, "layers": 6, "budget": 50_000}
    summary = summary_of(tmp_path, cell, [trial(cell, 1, 0.5, **chosen)])
    assert summary.searched == ("placement", "layers", "budget", "num_clusters", "sigma_m")
    assert {key: getattr(summary.chosen, key) for key in chosen} == chosen


def test_a_vanilla_cell_searches_no_gate(tmp_path: Path) -> None:
    cell = vanilla("digits", "gcn", seeds=[1])
    assert summary_of(tmp_path, cell, runs(cell, [0.5])).searched == ()


def test_a_record_without_configuration_is_named(tmp_path: Path) -> None:
    cell = vanilla("digits", "gcn", seeds=[1])
    record = TrialRecord(**{**vars(trial(cell, 1, 0.5)), "config_json": "{"})
    with pytest.raises(ResultsError, match=f"trial {record.key}: config_json: not readable as JSON"):
        summary_of(tmp_path, cell, [record])


def test_gaps_of_many_seeds_are_found_without_looking_through_all_trials_for_each(tmp_path: Path) -> None:
    cell = vanilla("digits", "gcn", seeds=list(range(4_000)))
    study = load_results(write_study(tmp_path, [cell], [trial(cell, 0, 0.5), trial(cell, 0, phase="search")]))
    run, searched = sorted(study.trials, key=lambda one: one.phase)
    trials = (run, *(replace(searched, key=f"s{number}") for number in range(20_000)))
    (summary,) = summarise(replace(study, trials=trials))  # takes minutes where each seed looks at every trial
    assert (summary.finished, len(summary.gaps)) == (1, 3_999)
    assert {gap.reason for gap in summary.gaps} == {"never started (search: 20000 finished)"}
