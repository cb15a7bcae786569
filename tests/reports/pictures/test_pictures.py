"""How the metric answers to the gate's settings, read off the axes: within a search, and between cells."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from made_studies import gated, runs, trial, vanilla, write_study
from read_pictures import gate_search, legend_of, line, names_of_lines, picture, searched, skipped, titles

from study.records import TrialRecord


def test_response_to_sigma_m_sets_comparable_values_apart_from_stopped_trials(tmp_path: Path) -> None:
    trials = [
        searched(0, 0.5, 4, 0.40, "finished"),
        searched(1, 2.0, 8, 0.30, "finished"),
        searched(2, 5.0, 8, 0.90, "pruned"),
        searched(3, 6.0, 8, None, "failed"),
        searched(4, 7.0, 8, float("nan"), "diverged"),
        searched(5, 8.0, 8, float("nan"), "finished"),
    ]
    found = picture(write_study(tmp_path, [gate_search()], trials), "response-sigma_m")
    (axes,) = found.figure.axes
    assert line(axes, "last value") == ([0.5, 2.0], [0.40, 0.30])
    assert line(axes, "stopped") == ([5.0], [0.04])
    assert line(axes, "diverged") == ([7.0], [0.1])
    for name in ("stopped", "diverged"):  # a share of the height, no metric
        (drawn,) = [artist for artist in axes.lines if artist.get_label() == name]
        assert drawn.get_transform() == axes.get_xaxis_transform()
    assert axes.get_xscale() == "log"
    assert axes.get_ylabel() == "Validation MAE\nlower is better"
    assert titles(found) == ["ZINC bi-GCN 100k L4"]


def test_a_trial_that_was_stopped_at_the_last_rung_is_comparable(tmp_path: Path) -> None:
    """The study may choose it, so that its value counts: three epochs, and the last rung after the third."""
    trials = [searched(0, 0.5, 4, 0.40, "finished"), searched(1, 2.0, 8, 0.30, "pruned")]
    (axes,) = picture(write_study(tmp_path, [gate_search(rungs=[1, 3])], trials), "response-sigma_m").figure.axes
    assert line(axes, "last value") == ([0.5, 2.0], [0.40, 0.30])
    assert names_of_lines(axes) == ["last value"]


def test_the_best_uniform_and_vanilla_trials_are_lines(tmp_path: Path) -> None:
    control = gate_search(gate="uniform", searched={}, id="uniform")
    plain = vanilla("zinc", "gcn", searched={}, id="vanilla")
    levels = ((control, {"num_clusters": 4}, (0.35, 0.45)), (plain, {}, (0.50, 0.48)))
    trials: list[TrialRecord] = [searched(0, 0.5, 4, 0.40, "finished"), searched(1, 2.0, 8, 0.30, "finished")]
    for cell, chosen, values in levels:
        for number, value in enumerate(values):
            made = trial(cell, 41, phase="search", learning_rate=1e-3 + number / 1e6, **chosen)
            trials.append(replace(made, number=number, val_metric=value))
    axes = picture(write_study(tmp_path, [gate_search(), control, plain], trials), "response-sigma_m").figure.axes[0]
    assert line(axes, "uniform gate")[1] == [0.35, 0.35]
    assert line(axes, "vanilla")[1] == [0.48, 0.48]


def test_response_to_the_place_counts_the_stopped_beside_each_word(tmp_path: Path) -> None:
    choice = {"placement": {"choice": ["dense", "boosting", "2,4"]}}
    cell = gated("zinc", "gcn", None, searched=choice, id="places")
    places = ["dense", "boosting", "2,4", "boosting"]
    statuses = ["finished", "finished", "pruned", "pruned"]
    trials = [
        replace(
            trial(cell, 41, phase="search", placement=place, learning_rate=1e-3 + number / 1e6),
            number=number,
            status=status,
            val_metric=0.1 * (number + 1),
        )
        for number, (place, status) in enumerate(zip(places, statuses, strict=True))
    ]
    (axes,) = picture(write_study(tmp_path, [cell], trials), "response-placement").figure.axes  # type: ignore[list-item]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["boosting (1)", "dense", "2,4 (1)"]
    assert line(axes, "last value") == ([1.0, 0.0], [0.1, 0.2])


def test_a_response_is_to_what_was_sampled(tmp_path: Path) -> None:
    """Dense trials have a sigma_m of 1 by default, and are far better: no answer to sigma_m."""
    space = {
        "placement": {"choice": ["boosting", "dense"]},
        "sigma_m": {"log_uniform": [0.1, 10], "when": {"placement": ["boosting"]}},
    }
    boosted = [searched(0, 0.2, 4, 0.5, "finished"), searched(1, 5.0, 4, 0.4, "finished")]
    others = [searched(2, 1.0, 4, 0.1, "finished"), searched(3, 1.0, 4, 0.2, "pruned")]
    trials = [*boosted, *(replace(record, placement="dense") for record in others)]
    cell = gate_search(id=gate_search()["id"], placement=None, searched=space)
    results = write_study(tmp_path, [cell], trials)
    (axes,) = picture(results, "response-sigma_m").figure.axes
    assert line(axes, "last value") == ([0.2, 5.0], [0.5, 0.4])
    assert "stopped" not in names_of_lines(axes)


def test_a_plan_that_does_not_say_what_was_searched_is_read_off_its_trials(tmp_path: Path) -> None:
    cell = gated("zinc", "gcn", num_clusters=None, sigma_m=None)
    trials = [searched(0, 0.5, 4, 0.40, "finished"), searched(1, 2.0, 4, 0.30, "finished")]
    moved = [replace(record, cell=cell["id"]) for record in trials]
    results = write_study(tmp_path, [cell], moved)
    (axes,) = picture(results, "response-sigma_m").figure.axes
    assert line(axes, "last value")[0] == [0.5, 2.0]
    assert skipped(results, "response to K within a search") == ["no cell searched it"]


@pytest.mark.parametrize("status", ["pruned", "failed", "diverged", "running"])
def test_a_search_without_a_comparable_trial_is_told_and_not_drawn(tmp_path: Path, status: str) -> None:
    value = float("nan") if status == "diverged" else 0.5
    trials = [searched(place, 0.5 + place, 4 + place, value, status) for place in range(3)]
    results = write_study(tmp_path, [gate_search(rungs=[50])], trials)
    reason = "ZINC bi-GCN 100k L4: no two search trials with different values finished or reached the last rung"
    assert skipped(results, "response to sigma_m") == skipped(results, "response to K") == [reason]


def test_response_between_cells_has_test_means_in_per_cent(tmp_path: Path) -> None:
    many, few = (gated("digits", "gcn", num_clusters=k, id=f"k{k}") for k in (16, 4))
    trials = [*runs(few, (0.90, 0.92, 0.90, 0.92)), *runs(many, (0.95, 0.97, 0.95, 0.97))[:2]]
    found = picture(write_study(tmp_path, [many, few], trials), "response-num_clusters-between-cells")
    (axes,) = found.figure.axes
    (bars,) = axes.containers
    means, _, (stds,) = bars.lines  # type: ignore[attr-defined]
    assert list(means.get_xdata()) == [4.0, 16.0]
    assert list(means.get_ydata()) == pytest.approx([91.0, 96.0])
    assert [(low, high) for (_, low), (_, high) in stds.get_segments()] == [
        pytest.approx((90.0, 92.0)),
        pytest.approx((95.0, 97.0)),
    ]
    (hollow,) = [artist for artist in axes.lines if artist.get_markerfacecolor() == "white"]
    assert list(map(float, hollow.get_xdata())) == [16.0]  # type: ignore[arg-type]
    assert axes.get_ylabel() == "Test ACC (%)\nhigher is better"
    assert titles(found) == ["Digits bi-GCN 100k L4"]


def test_cells_that_differ_in_two_settings_are_parted(tmp_path: Path) -> None:
    cells = [gated("zinc", "gcn", num_clusters=k, sigma_m=s, id=f"{k}-{s}") for k in (4, 8) for s in (0.1, 1.0)]
    results = write_study(tmp_path, cells, [record for cell in cells for record in runs(cell, (0.4,) * 4)])
    found = picture(results, "response-sigma_m-between-cells")
    assert titles(found) == [
        "ZINC bi-GCN (K=4) 100k L4",
        "ZINC bi-GCN (K=8) 100k L4",
    ]


def test_cells_that_differ_in_another_setting_too_are_no_series(tmp_path: Path) -> None:
    cells = [
        gated("zinc", "gcn", sigma_m=s, id=f"{s}-{readout}", other_settings={"readout": readout})
        for s, readout in ((0.1, "mean"), (1.0, "mean"), (10.0, "sum"))
    ]
    results = write_study(tmp_path, cells, [record for cell in cells for record in runs(cell, (0.4,) * 4)])
    (axes,) = picture(results, "response-sigma_m-between-cells").figure.axes
    (bars,) = axes.containers
    assert list(bars.lines[0].get_xdata()) == [0.1, 1.0]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("key", "values"), [("semantics", ("paper", "released")), ("pos_enc_dim", (None, 8))])
def test_cells_of_another_reading_or_other_encodings_are_no_series_and_no_control(
    tmp_path: Path, key: str, values: tuple[object, object]
) -> None:
    cells, trials, levels = [], [], {values[0]: 0.2, values[1]: 0.4}
    for value in values:
        control = gated("zinc", "gcn", gate="uniform", sigma_m=None, id=f"uniform-{value}", **{key: value})
        trials += runs(control, (levels[value],) * 4)
        cells += [control, *(gated("zinc", "gcn", sigma_m=s, id=f"{s}-{value}", **{key: value}) for s in (0.1, 1.0))]
        trials += [record for cell in cells[-2:] for record in runs(cell, (0.3,) * 4)]
    axes = picture(write_study(tmp_path, cells, trials), "response-sigma_m-between-cells").figure.axes
    assert [list(panel.containers[0].lines[0].get_xdata()) for panel in axes] == [[0.1, 1.0]] * 2  # type: ignore[attr-defined]
    assert [line(panel, "uniform gate")[1][0] for panel in axes] == [0.2, 0.4]


@pytest.mark.parametrize(("key", "values"), [("num_clusters", (4, 8)), ("placement", ("boosting", "dense"))])
def test_a_uniform_gate_that_differs_alike_stands_at_each_value(
    tmp_path: Path, key: str, values: tuple[object]
) -> None:
    """A line at the first one's value had said that the second bilateral cell is better than its control."""
    cells = [
        gated("zinc", "gcn", gate=gate, id=f"{gate}-{value}", **{key: value})
        for gate in ("bilateral", "uniform")
        for value in values
    ]
    tests = (0.30, 0.31, 0.35, 0.20)
    trials = [record for cell, test in zip(cells, tests, strict=True) for record in runs(cell, (test,) * 4)]
    found = picture(write_study(tmp_path / "both", cells, trials), f"response-{key}-between-cells")
    (axes,) = found.figure.axes
    drawn = {str(bars.get_label()): list(bars.lines[0].get_ydata()) for bars in axes.containers}  # type: ignore[attr-defined]
    assert drawn == {"mean ± std": pytest.approx([0.30, 0.31]), "uniform gate": pytest.approx([0.35, 0.20])}
    assert "the uniform gate is drawn as the bilateral cells are" in found.caption
    # One control alone is that of its own value, not of all.
    found = picture(write_study(tmp_path / "one", cells[:3], trials), f"response-{key}-between-cells")
    (axes,) = found.figure.axes
    assert list(axes.containers[1].lines[0].get_ydata()) == pytest.approx([0.35])  # type: ignore[attr-defined]


def batches(layers: int) -> dict[str, object]:
    return {"batch_size": 128 if layers == 4 else 64, "precision": "float32"}


def test_the_budget_has_a_line_for_each_model_whatever_their_depth(tmp_path: Path) -> None:
    sizes = ((100_000, 4), (500_000, 16))
    # As in the paper's protocols, the batches of the deeper models are smaller.
    plain = [vanilla("zinc", "gcn", layers, budget, other_settings=batches(layers)) for budget, layers in sizes]
    bilateral = [
        gated("zinc", "gcn", layers=layers, budget=budget, other_settings=batches(layers)) for budget, layers in sizes
    ]
    tests = {100_000: 0.40, 500_000: 0.30}
    trials = [r for c in plain for r in runs(c, (tests[c["budget"]] + 0.05,) * 4)]
    trials += [r for c in bilateral for r in runs(c, (tests[c["budget"]],) * 4)]
    found = picture(write_study(tmp_path, [*plain, *bilateral], trials), "response-budget-between-cells")
    (axes,) = found.figure.axes
    drawn = {str(bars.get_label()): bars.lines[0] for bars in axes.containers}  # type: ignore[attr-defined]
    assert {name: list(map(float, means.get_ydata())) for name, means in drawn.items()} == {
        "GCN": pytest.approx([0.45, 0.35]),
        "bi-GCN": pytest.approx([0.40, 0.30]),
    }
    assert [text.get_text() for text in axes.get_xticklabels()] == ["100k", "500k"]
    assert titles(found) == ["ZINC GCN"]
    assert legend_of(found) == ["GCN", "bi-GCN"]


def test_models_of_one_budget_stand_in_lines_of_their_own(tmp_path: Path) -> None:
    """K and depth are arms here beside the budget, and do not go with it: a line of two models is of neither."""
    places = [(4, 100_000), (4, 500_000), (8, 100_000), (8, 500_000)]
    tests = dict(zip(places, (0.5, 0.4, 0.3, 0.2), strict=True))
    by_k = {at: gated("zinc", "gcn", num_clusters=at[0], budget=at[1], id=f"k{at}") for at in places}
    by_depth = {at: vanilla("zinc", "gat", *at) for at in places}
    lines = {}
    for name, cells in (("k", by_k), ("depth", by_depth)):
        trials = [record for at, cell in cells.items() for record in runs(cell, (tests[at],) * 4)]
        found = picture(write_study(tmp_path / name, list(cells.values()), trials), "response-budget-between-cells")
        for axes, title in zip(found.figure.axes, titles(found), strict=True):
            for bars in axes.containers:
                means = bars.lines[0]  # type: ignore[attr-defined]
                lines[title, bars.get_label()] = [(x, round(float(y), 3)) for x, y in means.get_xydata()]
    assert lines == {
        ("ZINC GCN L4", "bi-GCN (K=4)"): [(100_000, 0.5), (500_000, 0.4)],
        ("ZINC GCN L4", "bi-GCN (K=8)"): [(100_000, 0.3), (500_000, 0.2)],
        ("ZINC GAT L4", "GAT"): [(100_000, 0.5), (500_000, 0.4)],
        ("ZINC GAT L8", "GAT"): [(100_000, 0.3), (500_000, 0.2)],
    }


def test_a_cell_without_a_number_is_missing_from_a_response_with_its_name(tmp_path: Path) -> None:
    cells = [gated("zinc", "gcn", num_clusters=k, id=f"k{k}") for k in (4, 8, 16)]
    trials = [record for cell in cells[:2] for record in runs(cell, (0.4,) * 4)]
    results = write_study(tmp_path, cells, trials)
    (axes,) = picture(results, "response-num_clusters-between-cells").figure.axes
    assert list(axes.containers[0].lines[0].get_xdata()) == [4.0, 8.0]  # type: ignore[attr-defined]
    assert skipped(results, "response to K between cells") == [
        "ZINC bi-GCN (K=16) 100k L4: no confirm run has a test metric"
    ]


@pytest.mark.parametrize(
    ("sampled", "told"),
    [
        # Given values stand on the axis, sampled ones beside round numbers: their many digits would touch.
        ([0.1, 1.0, 10.0], ["0.1", "1", "10"]),
        ([0.13402301, 0.32080412, 1.5799213, 4.1872729], ["0.2", "0.5", "1", "2"]),
        ([0.020187, 0.31415926, 9.87654321], ["0.1", "1", "10"]),
        # Between these are no two round numbers.
        ([0.2134567, 0.3456789, 0.4999999], ["0.213", "0.5"]),
    ],
)
def test_ticks_of_sampled_values_do_not_touch(tmp_path: Path, sampled: list[float], told: list[str]) -> None:
    trials = [searched(place, value, 4 + place, 0.5, "finished") for place, value in enumerate(sampled)]
    found = picture(write_study(tmp_path, [gate_search(rungs=[50])], trials), "response-sigma_m")
    (axes,) = found.figure.axes
    low, high = axes.get_xlim()
    ticks = [label for label in axes.get_xticklabels() if low <= label.get_position()[0] <= high]
    assert [label.get_text() for label in ticks] == told
    found.figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ticks]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
