"""Learning curves and the gate's spread over the confirm runs, read off the axes and worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_studies import SEEDS, gated, runs, vanilla, write_study
from read_pictures import legend_of, line, picture, skipped, titles
from searched_study import GATED, VANILLA, clean_study, curve, trials_of

from reports.pictures.curves import mean_curve
from reports.pictures.material import load_material
from study.records import TrialRecord


def band(axes: object, place: int) -> tuple[list[float], list[float]]:
    """Lower and upper edge of a band, from left to right."""
    points = axes.collections[place].get_paths()[0].vertices  # type: ignore[attr-defined]
    by_place: dict[float, list[float]] = {}
    for x, y in points:
        by_place.setdefault(float(x), []).append(float(y))
    return [min(found) for found in by_place.values()], [max(found) for found in by_place.values()]


def two_runs() -> list[TrialRecord]:
    first, second, *_ = runs(VANILLA, (0.4,) * 4)
    return [replace(first, epochs=curve([0.6, 0.4])), replace(second, epochs=curve([0.4, 0.2, 0.1]))]


def test_learning_curves_end_where_the_first_run_does(tmp_path: Path) -> None:
    results = write_study(tmp_path, [VANILLA], two_runs())
    (cell,) = load_material(results).cells
    epochs, mean, std = mean_curve(cell.confirm, "val_metric")
    np.testing.assert_allclose(epochs, [1, 2])
    np.testing.assert_allclose(mean, [0.5, 0.3])
    np.testing.assert_allclose(std, [0.1, 0.1])
    (axes,) = picture(results, "learning-curves").figure.axes
    assert line(axes, "GCN") == ([1.0, 2.0], pytest.approx([0.5, 0.3]))
    low, high = band(axes, 0)
    assert low == pytest.approx([0.4, 0.2])
    assert high == pytest.approx([0.6, 0.4])


def test_an_epoch_without_a_number_in_one_run_is_a_gap(tmp_path: Path) -> None:
    first, second, *_ = runs(VANILLA, (0.4,) * 4)
    whole = replace(first, epochs=curve([0.6, 0.4, 0.2]))
    gap = replace(second, epochs=curve([0.4, float("nan"), 0.1]))
    (axes,) = picture(write_study(tmp_path, [VANILLA], [whole, gap]), "learning-curves").figure.axes
    np.testing.assert_allclose(line(axes, "GCN")[1], [0.5, np.nan, 0.15])


@pytest.mark.parametrize("values", [[float("nan")] * 2, [0.5], [0.5, float("nan")]])
def test_less_than_a_curve_is_told_and_not_drawn(tmp_path: Path, values: list[float]) -> None:
    records = [replace(record, epochs=curve(values)) for record in runs(VANILLA, (0.4,) * 4)]
    results = write_study(tmp_path, [VANILLA], records)
    assert skipped(results, "learning curves") == ["ZINC GCN 100k L4: fewer than two epochs have a metric of all runs"]
    assert skipped(results, "spread of the gate") == ["no confirm run of a bilateral gate has finished"]


def test_arms_are_named_alike_in_the_panels_of_several_backbones(tmp_path: Path) -> None:
    cells = [make("zinc", backbone) for backbone in ("gcn", "gat") for make in (vanilla, gated)]
    trials = [record for cell in cells for record in runs(cell, (0.4,) * 4)]
    found = picture(write_study(tmp_path, cells, trials), "learning-curves")
    assert titles(found) == [
        "ZINC GCN backbone 100k L4",
        "ZINC GAT backbone 100k L4",
    ]
    assert legend_of(found) == ["vanilla", "bi"]
    colours = [[str(drawn.get_color()) for drawn in axes.lines] for axes in found.figure.axes]
    assert colours[0] == colours[1]


def test_arms_that_differ_in_k_alone_keep_it_in_their_names(tmp_path: Path) -> None:
    cells = [gated("zinc", "gcn", num_clusters=k, id=f"k{k}") for k in (4, 8)]
    trials = [record for cell in cells for record in runs(cell, (0.4,) * 4)]
    found = picture(write_study(tmp_path, cells, trials), "learning-curves")
    assert legend_of(found) == ["bi-GCN (K=4)", "bi-GCN (K=8)"]
    (axes,) = found.figure.axes
    assert len({str(drawn.get_color()) for drawn in axes.lines}) == 2


def test_what_a_search_chose_stands_in_no_title(tmp_path: Path) -> None:
    cell = gated("zinc", "gcn", num_clusters=None, sigma_m=None)
    (named,) = load_material(write_study(tmp_path, [cell], runs(cell, (0.4,) * 4, num_clusters=9, sigma_m=0.37))).cells
    assert (named.name, named.names.label, named.names.arm) == ("ZINC bi-GCN 100k L4", "bi-GCN", "bi")


def spiked(values: list[float], spike: float) -> list[float]:
    """Twenty epochs: the first is ``spike``, the others go through ``values`` again and again."""
    return [spike, *(values * 20)[:19]]


@pytest.mark.parametrize(
    ("dataset", "values", "spike", "limits"),
    [
        # Margin: 0.05 x (0.5 - 0.4) on either side; the first tenth is two epochs.
        ("zinc", [0.5, 0.4], 9.0, (0.395, 0.505)),
        # Per cent, and the worse side is the lower one: 0.05 x (60 - 40).
        ("digits", [0.6, 0.4], -9.0, (39.0, 61.0)),
    ],
)
def test_an_early_spike_does_not_set_the_axis_and_the_caption_says_so(
    tmp_path: Path, dataset: str, values: list[float], spike: float, limits: tuple[float, float]
) -> None:
    cell = vanilla(dataset, "gcn")
    records = [replace(record, epochs=curve(spiked(values, spike))) for record in runs(cell, (0.4,) * 4)]
    found = picture(write_study(tmp_path, [cell], records), "learning-curves")
    (axes,) = found.figure.axes
    assert axes.get_ylim() == pytest.approx(limits)
    assert "The axis is cut to what the curves hold after their first tenth of epochs" in found.caption


def test_curves_without_a_spike_are_shown_whole(tmp_path: Path) -> None:
    records = [replace(record, epochs=curve(spiked([0.5, 0.4], 0.52))) for record in runs(VANILLA, (0.4,) * 4)]
    found = picture(write_study(tmp_path, [VANILLA], records), "learning-curves")
    low, high = found.figure.axes[0].get_ylim()
    assert low < 0.4
    assert high > 0.52
    assert "cut" not in found.caption


def test_a_single_run_has_no_band_and_the_caption_promises_none(tmp_path: Path) -> None:
    cell = vanilla("zinc", "gcn", seeds=[41])
    record = replace(runs(cell, (0.4,))[0], epochs=curve([0.6, 0.4]))
    found = picture(write_study(tmp_path, [cell], [record]), "learning-curves")
    (axes,) = found.figure.axes
    assert not axes.collections
    assert "bands" not in found.caption
    assert "a single run of each model" in found.caption


def test_the_gates_spread_is_drawn_about_a_uniform_gate(tmp_path: Path) -> None:
    made = runs(GATED, (0.4,) * 4)
    epochs = tuple(replace(epoch, gate_min=0.9, gate_max=1.2, gate_std=0.05) for epoch in made[0].epochs)
    wider = tuple(replace(epoch, gate_min=0.7, gate_max=1.4, gate_std=0.15) for epoch in made[0].epochs)
    records = [replace(record, epochs=wider if place == 0 else epochs) for place, record in enumerate(made)]
    (axes,) = picture(write_study(tmp_path, [GATED], records), "gate-spread").figure.axes
    assert band(axes, 0) == (pytest.approx([-0.15] * 3), pytest.approx([0.25] * 3))
    assert band(axes, 1) == (pytest.approx([-0.075] * 3), pytest.approx([0.075] * 3))
    assert line(axes, "uniform gate")[1] == [0.0, 0.0]


def test_a_record_without_values_of_the_gate_is_told(tmp_path: Path) -> None:
    results = write_study(tmp_path, [GATED], runs(GATED, (0.4,) * 4))
    reason = "ZINC bi-GCN 100k L4: fewer than two epochs have values of the gate of all runs"
    assert skipped(results, "spread of the gate") == [reason]


def test_every_confirm_run_of_the_clean_study_is_drawn(tmp_path: Path) -> None:
    cells = load_material(clean_study(tmp_path)).cells
    assert [len(cell.confirm) for cell in cells] == [len(SEEDS)] * 2
    assert [len(cell.search) for cell in cells] == [len(trials_of(VANILLA)) - 4] * 2


def test_a_trial_of_a_cell_that_the_plan_lacks_is_left_alone(tmp_path: Path) -> None:
    records = [*runs(VANILLA, (0.4,) * 4), *runs(GATED, (0.4,) * 4)]
    (cell,) = load_material(write_study(tmp_path, [VANILLA], records)).cells
    assert len(cell.confirm) == 4
