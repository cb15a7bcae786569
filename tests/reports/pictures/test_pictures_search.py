"""Pictures of a search: effort, importance and rungs, read off the axes and worked out by hand."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_studies import gated, runs, trial, vanilla, write_study
from matplotlib.collections import LineCollection
from read_pictures import gate_search, legend_of, line, picture, searched, skipped, titles
from searched_study import clean_study, curve

from reports.pictures.effort import best_so_far
from reports.pictures.importance import comparable, importance
from reports.pictures.material import load_material
from reports.pictures.rungs import rung_counts, rung_points
from study.records import TrialRecord


def test_the_best_so_far_counts_stopped_trials_as_tried(tmp_path: Path) -> None:
    trials = [
        searched(0, 0.5, 4, 0.10, "pruned"),
        searched(1, 2.0, 8, 0.50, "finished"),
        searched(2, 5.0, 8, 0.60, "finished"),
        searched(3, 6.0, 8, 0.40, "finished"),
    ]
    results = write_study(tmp_path, [gate_search()], trials)
    (cell,) = load_material(results).cells
    np.testing.assert_array_equal(best_so_far(cell), [np.nan, 0.5, 0.5, 0.4])
    (axes,) = picture(results, "best-by-trials").figure.axes
    places, values = line(axes, "bi-GCN")
    assert places == [1, 2, 3, 4]
    np.testing.assert_array_equal(values, [np.nan, 0.5, 0.5, 0.4])


def test_a_larger_metric_is_the_best_where_it_is_better(tmp_path: Path) -> None:
    cell = vanilla("digits", "gcn", searched={})
    values = (0.5, 0.7, 0.6)
    trials = [
        replace(trial(cell, 41, phase="search", learning_rate=1e-3 + n / 1e6), number=n, val_metric=value)
        for n, value in enumerate(values)
    ]
    (axes,) = picture(write_study(tmp_path, [cell], trials), "best-by-trials").figure.axes
    assert line(axes, "GCN")[1] == pytest.approx([50.0, 70.0, 70.0])


def test_arms_of_unequal_effort_are_parted_where_the_shorter_search_ends(tmp_path: Path) -> None:
    other = vanilla("zinc", "gcn", searched={})
    trials = [searched(n, 0.5 + n, 4, 0.4, "finished") for n in range(5)]
    trials += [
        replace(trial(other, 41, phase="search", learning_rate=1e-3 + n / 1e6), number=n, val_metric=0.5)
        for n in range(3)
    ]
    found = picture(write_study(tmp_path, [other, gate_search()], trials), "best-by-trials")
    (axes,) = found.figure.axes
    assert titles(found) == ["ZINC GCN backbone 100k L4"]
    assert legend_of(found) == ["GCN", "bi-GCN"]
    (end,) = [drawn for drawn in axes.lines if list(drawn.get_xdata()) == [3, 3]]  # type: ignore[arg-type]
    assert str(end.get_label()).startswith("_")


def test_rungs_count_who_reached_them_and_who_went_on(tmp_path: Path) -> None:
    """Of each cell six finish after six epochs, and two are stopped at the rung, which is after the second."""
    results = clean_study(tmp_path)
    cell, _ = load_material(results).cells
    assert rung_counts(cell) == {2: (8, 6)}
    axes = picture(results, "rungs").figure.axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["epoch 2\n8 trials\n6 went on", "6\nend"]
    assert line(axes, "stopped at a rung") == ([2.0, 2.0], [0.9, 0.9])
    ends, values = line(axes, "finished")
    assert ends == [6.0] * 6
    assert values == pytest.approx([0.50, 0.49, 0.48, 0.47, 0.46, 0.45])
    (_, finished) = [found for found in axes.collections if isinstance(found, LineCollection)]
    assert [len(segment) for segment in finished.get_segments()] == [2] * 6
    np.testing.assert_allclose(finished.get_segments()[1], [(2, 0.79), (6, 0.49)])


def test_a_trial_is_shown_at_the_rungs_that_it_reached_and_where_it_ended(tmp_path: Path) -> None:
    values = (0.9, 0.8, 0.7, float("nan"), 0.5)
    made = replace(searched(0, 0.5, 4, 0.5, "diverged"), epochs=curve(values))
    (cell,) = load_material(write_study(tmp_path, [gate_search(rungs=[2, 4])], [made])).cells
    assert rung_points(cell.search[0], [2, 4]) == [(2.0, 0.8), (5.0, 0.5)]
    assert rung_points(cell.search[0], [9]) == []


def test_a_cell_in_which_no_trial_reached_a_rung_is_told(tmp_path: Path) -> None:
    results = write_study(tmp_path, [gate_search(rungs=[50])], [searched(0, 0.5, 4, 0.4, "failed")])
    assert skipped(results, "rungs") == ["ZINC bi-GCN 100k L4: no trial has reached one"]


def sigma_alone(count: int) -> list[tuple[float, int, float]]:
    """Values of sigma_m and K, and a metric that is sigma_m / 10 whatever K is."""
    return [(0.1 + 9.9 * place / 11, 2 + (5 * place) % 15, (0.1 + 9.9 * place / 11) / 10) for place in range(count)]


def test_importance_finds_what_the_metric_hangs_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trials = [searched(place, s, k, value, "finished") for place, (s, k, value) in enumerate(sigma_alone(12))]
    results = write_study(tmp_path, [gate_search()], trials)
    (cell,) = load_material(results).cells
    found = importance(cell)
    assert found is not None
    assert found.trials == 12
    for shares in (found.fanova, found.impurity):
        assert sum(shares.values()) == pytest.approx(1.0)
        assert shares["sigma_m"] > 0.8
    with caplog.at_level(logging.INFO):
        (axes,) = picture(results, "importance").figure.axes
    assert not caplog.records
    assert [text.get_text() for text in axes.get_yticklabels()] == ["num_clusters", "sigma_m"]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx(  # type: ignore[attr-defined]
        [found.fanova["num_clusters"], found.fanova["sigma_m"]]
    )
    assert line(axes, "mean decrease of impurity")[0] == pytest.approx(
        [found.impurity["num_clusters"], found.impurity["sigma_m"]]
    )


def test_too_few_trials_have_no_importance_and_are_told(tmp_path: Path) -> None:
    trials = [searched(place, s, k, value, "finished") for place, (s, k, value) in enumerate(sigma_alone(7))]
    trials += [searched(20 + place, 1.0 + place, 4, 0.3, "pruned") for place in range(5)]
    results = write_study(tmp_path, [gate_search()], trials)
    (cell,) = load_material(results).cells
    assert importance(cell) is None
    reason = (
        "ZINC bi-GCN 100k L4: fewer than 8 search trials in which all was sampled finished or reached the last rung"
    )
    assert skipped(results, "importance") == [reason]


def test_equal_values_have_no_importance_and_are_told(tmp_path: Path) -> None:
    trials = [searched(place, s, k, 0.5, "finished") for place, (s, k, _) in enumerate(sigma_alone(9))]
    results = write_study(tmp_path, [gate_search()], trials)
    assert skipped(results, "importance") == ["ZINC bi-GCN 100k L4: all its trials ended alike"]


def test_importance_bears_values_outside_the_ranges_of_the_plan(tmp_path: Path) -> None:
    """A search that was extended with other ranges, and a choice of whole numbers for a real hyperparameter."""
    narrow = {"sigma_m": {"choice": [1, 2]}, "num_clusters": {"int": [2, 4]}}
    trials = [searched(n, float(1 + n % 3), 2 + n, 0.1 * n, "finished") for n in range(9)]
    (cell,) = load_material(write_study(tmp_path, [gate_search(searched=narrow)], trials)).cells
    found = importance(cell)
    assert found is not None
    assert set(found.fanova) == {"sigma_m", "num_clusters"}


def test_importance_is_of_the_trials_in_which_all_hyperparameters_exist(tmp_path: Path) -> None:
    gated_trials = [searched(n, s, k, value, "finished") for n, (s, k, value) in enumerate(sigma_alone(10))]
    without = [replace(searched(20 + n, 1.0, 4, 0.9, "finished"), sigma_m=None, num_clusters=None) for n in range(5)]
    (cell,) = load_material(write_study(tmp_path, [gate_search()], [*gated_trials, *without])).cells
    found = importance(cell)
    assert found is not None
    assert found.trials == 10


def conditional(count: int) -> list[TrialRecord]:
    """As many boosted trials that hang on sigma_m, as many dense ones, all far better, for which K was not sampled."""
    boosted = [searched(n, s, k, 1 + value, "finished") for n, (s, k, value) in enumerate(sigma_alone(count))]
    dense = [searched(50 + n, s, 8, value, "finished") for n, (s, _, value) in enumerate(sigma_alone(count))]
    return [*boosted, *(replace(record, placement="dense") for record in dense)]


def test_a_hyperparameter_is_given_nothing_of_trials_in_which_it_was_not_sampled(tmp_path: Path) -> None:
    """K does nothing, but where it has its default all trials are better: the place explains that.

    Of the trials that count all are boosted, of which the place explains nothing, and has no bar.
    """
    space = {
        "placement": {"choice": ["boosting", "dense"]},
        "sigma_m": {"log_uniform": [0.1, 10]},
        "num_clusters": {"int": [2, 16], "when": {"placement": ["boosting"]}},
    }
    cell = gate_search(id=gate_search()["id"], placement=None, searched=space)
    results = write_study(tmp_path, [cell], conditional(12))
    found = importance(load_material(results).cells[0])
    assert found is not None
    assert found.trials == 12
    assert found.fanova["sigma_m"] > 0.8
    assert set(found.fanova) == {"sigma_m", "num_clusters"}


def test_one_hyperparameter_that_differs_has_no_importance_and_that_is_told(tmp_path: Path) -> None:
    space = {
        "placement": {"choice": ["boosting", "dense"]},
        "sigma_m": {"log_uniform": [0.1, 10], "when": {"placement": ["boosting"]}},
    }
    cell = gate_search(id=gate_search()["id"], placement=None, searched=space)
    results = write_study(tmp_path, [cell], conditional(9))
    (reason,) = skipped(results, "importance")
    assert reason.endswith(": of what it searched fewer than two differ among the trials in which all were sampled")


def test_of_many_trials_the_importance_takes_some_evenly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reports.pictures.importance.MOST_TRIALS", 10)
    trials = [searched(n, 0.1 + n / 10, 2 + (4 * n) % 15, n / 10, "finished") for n in range(30)]
    (cell,) = load_material(write_study(tmp_path, [gate_search()], trials)).cells
    found = importance(cell)
    assert found is not None
    assert found.trials == 10
    assert [trial.number for trial in comparable(cell)] == list(range(0, 30, 3))


def test_a_study_without_a_search_says_so(tmp_path: Path) -> None:
    cell = gated("zinc", "gcn")
    results = write_study(tmp_path, [cell], runs(cell, (0.4,) * 4))
    assert skipped(results, "importance") == ["no cell searched two hyperparameters"]
    assert skipped(results, "best value against trials") == ["no cell was searched"]
    assert skipped(results, "rungs")[0].startswith("no cell was searched with pruning")
