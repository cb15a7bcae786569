"""What pictures show, read off their axes and worked out by hand; which there are, and why the others are not."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_studies import SEEDS, Cell, gated, runs, trial, vanilla, worked_study, write_study
from matplotlib.axes import Axes
from searched_study import GATED, VANILLA, clean_study, curve, trials_of
from test_aggregate import WITHOUT, aggregate

from reports.pictures import Picture, draw_pictures
from reports.pictures.curves import mean_curve, rung_counts
from reports.pictures.effort import best_so_far
from reports.pictures.importance import importance
from reports.pictures.material import load_material
from reports.pictures.style import drawable, wrapped
from study.records import TrialRecord

SPACE = {"sigma_m": {"log_uniform": [0.1, 10]}, "num_clusters": {"int": [2, 16]}}


def picture(results: Path, name: str) -> Picture:
    (found,) = [picture for picture in draw_pictures(results).pictures if picture.name == name]
    return found


def line(axes: Axes, label: str) -> tuple[list[float], list[float]]:
    (found,) = [line for line in axes.lines if line.get_label() == label]
    return list(map(float, found.get_xdata())), list(map(float, found.get_ydata()))  # type: ignore[arg-type]


def searched(number: int, sigma_m: float, num_clusters: int, value: float | None, status: str) -> TrialRecord:
    cell = sigma_cell()
    made = trial(
        cell, 41, phase="search", sigma_m=sigma_m, num_clusters=num_clusters, learning_rate=1e-3 + number / 1e6
    )
    return replace(made, number=number, val_metric=value, status=status)  # type: ignore[arg-type]


def sigma_cell(**changes: object) -> Cell:
    return gated("zinc", "gcn", num_clusters=None, sigma_m=None, searched=SPACE, rungs=[2], trials=12, **changes)  # type: ignore[arg-type]


def test_response_to_sigma_m_tells_finished_from_stopped(tmp_path: Path) -> None:
    trials = [
        searched(0, 0.5, 4, 0.40, "finished"),
        searched(1, 2.0, 8, 0.30, "finished"),
        searched(2, 5.0, 8, 0.90, "pruned"),
        searched(3, 6.0, 8, None, "failed"),
    ]
    (axes,) = picture(write_study(tmp_path, [sigma_cell()], trials), "response-sigma_m").figure.axes
    assert line(axes, "to the end") == ([0.5, 2.0], [0.40, 0.30])
    assert line(axes, "stopped early") == ([5.0], [0.90])
    assert axes.get_xscale() == "log"
    assert axes.get_ylabel() == "Validation MAE (lower is better)"


def test_the_uniform_gate_is_a_line(tmp_path: Path) -> None:
    control = gated("zinc", "gcn", num_clusters=None, sigma_m=None, gate="uniform", searched={}, id="uniform")
    best, worse = (
        replace(trial(control, 41, phase="search", num_clusters=4, learning_rate=rate), number=place, val_metric=value)
        for place, (rate, value) in enumerate([(1e-3, 0.35), (2e-3, 0.45)])
    )
    trials = [searched(0, 0.5, 4, 0.40, "finished"), searched(1, 2.0, 8, 0.30, "finished"), best, worse]
    axes = picture(write_study(tmp_path, [sigma_cell(), control], trials), "response-sigma_m").figure.axes[0]
    assert line(axes, "uniform gate")[1] == [0.35, 0.35]


def test_response_between_cells_has_test_means_in_per_cent(tmp_path: Path) -> None:
    few, many = (gated("digits", "gcn", num_clusters=k, id=f"k{k}") for k in (4, 16))
    trials = [*runs(few, (0.90, 0.92, 0.90, 0.92)), *runs(many, (0.95, 0.95, 0.95, 0.95))]
    (axes,) = picture(write_study(tmp_path, [few, many], trials), "response-num_clusters-between-cells").figure.axes
    (bars,) = axes.containers
    assert [list(map(float, bars.lines[0].get_xdata()))] == [[4.0, 16.0]]  # type: ignore[attr-defined]
    assert list(map(float, bars.lines[0].get_ydata())) == pytest.approx([91.0, 95.0])  # type: ignore[attr-defined]
    assert axes.get_ylabel() == "Test ACC (%, higher is better)"


def test_the_best_so_far_counts_stopped_trials_as_tried(tmp_path: Path) -> None:
    trials = [
        searched(0, 0.5, 4, 0.10, "pruned"),
        searched(1, 2.0, 8, 0.50, "finished"),
        searched(2, 5.0, 8, 0.60, "finished"),
        searched(3, 6.0, 8, 0.40, "finished"),
    ]
    (cell,) = load_material(write_study(tmp_path, [sigma_cell()], trials)).cells
    np.testing.assert_array_equal(best_so_far(cell), [np.nan, 0.5, 0.5, 0.4])


def test_rungs_count_who_reached_them_and_who_went_on(tmp_path: Path) -> None:
    results = clean_study(tmp_path)
    cell, _ = load_material(results).cells
    assert rung_counts(cell) == {2: (8, 6)}
    axes = picture(results, "rungs").figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["8→6"]
    assert sum(line.get_label() == "trained to the end" for line in axes.lines) == 6
    assert sum(line.get_marker() == "x" for line in axes.lines) == 2


def test_learning_curves_end_where_the_first_run_does(tmp_path: Path) -> None:
    first, second, *_ = runs(VANILLA, (0.4,) * 4)
    short, long = replace(first, epochs=curve([0.6, 0.4])), replace(second, epochs=curve([0.4, 0.2, 0.1]))
    (cell,) = load_material(write_study(tmp_path, [VANILLA], [short, long])).cells
    epochs, mean, std = mean_curve(cell.confirm, "val_metric")
    np.testing.assert_allclose(epochs, [1, 2])
    np.testing.assert_allclose(mean, [0.5, 0.3])
    np.testing.assert_allclose(std, [0.1, 0.1])


def test_the_gates_spread_is_drawn_about_one(tmp_path: Path) -> None:
    made = runs(GATED, (0.4,) * 4)
    epochs = tuple(replace(epoch, gate_min=0.9, gate_max=1.2, gate_std=0.05) for epoch in made[0].epochs)
    results = write_study(tmp_path, [GATED], [replace(record, epochs=epochs) for record in made])
    (axes,) = picture(results, "gate-spread").figure.axes
    extents = [collection.get_paths()[0].get_extents() for collection in axes.collections]
    assert [(box.y0, box.y1) for box in extents] == [pytest.approx((0.9, 1.2)), pytest.approx((0.95, 1.05))]


def test_importance_finds_what_the_metric_hangs_on(tmp_path: Path) -> None:
    """The metric is sigma_m / 10 whatever K is."""
    values = [(0.1 + 9.9 * place / 11, 2 + (5 * place) % 15) for place in range(12)]
    trials = [searched(place, sigma, k, sigma / 10, "finished") for place, (sigma, k) in enumerate(values)]
    (cell,) = load_material(write_study(tmp_path / "many", [sigma_cell()], trials)).cells
    found = importance(cell)
    assert sum(found.values()) == pytest.approx(1.0)
    assert found["sigma_m"] > 0.8
    (few,) = load_material(write_study(tmp_path / "few", [sigma_cell()], trials[:7])).cells
    assert importance(few) == {}


def test_what_the_records_do_not_allow_is_skipped_with_its_reason(tmp_path: Path) -> None:
    drawn = draw_pictures(write_study(tmp_path, [vanilla("zinc", "gcn")], []))
    assert drawn.pictures == ()
    kinds = [line.partition(":")[0] for line in drawn.skipped]
    assert kinds == [
        *("response", "importance", "best value against trials", "rungs", "learning curves"),
        *("spread of the gate", "over-smoothing"),
    ]


@pytest.mark.parametrize("status", ["pruned", "failed", "diverged"])
def test_a_search_without_a_finished_trial_draws_no_number(tmp_path: Path, status: str) -> None:
    value = float("nan") if status == "diverged" else 0.5
    trials = [searched(place, 0.5 + place, 4, value, status) for place in range(3)]
    names = [found.name for found in draw_pictures(write_study(tmp_path, [sigma_cell()], trials)).pictures]
    assert names == ["rungs"]


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    results = clean_study(tmp_path)
    first, second = draw_pictures(results).pictures, draw_pictures(results).pictures
    assert len(first) >= 3
    for one, other in zip(first, second, strict=True):
        assert [one.content(kind) for kind in ("pdf", "svg", "png")] == [
            other.content(kind) for kind in ("pdf", "svg", "png")
        ]


def test_many_cells_become_several_pictures(tmp_path: Path) -> None:
    cells = [gated("zinc", "gcn", id=f"c{place}", num_clusters=place + 2, sigma_m=0.1 * place) for place in range(13)]
    trials = [record for cell in cells for record in runs(cell, (0.4,) * 4)]
    moved = [
        replace(record, epochs=tuple(replace(e, gate_min=0.9, gate_max=1.1, gate_std=0.1) for e in record.epochs))
        for record in trials
    ]
    drawn = draw_pictures(write_study(tmp_path, cells, moved)).pictures
    gates = [found for found in drawn if found.name.startswith("gate-spread")]
    assert [(found.name, len(found.figure.axes)) for found in gates] == [("gate-spread-1", 12), ("gate-spread-2", 1)]


def test_names_of_any_kind_are_drawn_without_a_warning(tmp_path: Path) -> None:
    odd = {**VANILLA, "dataset_title": r"R&D_100%~^\{ü}$x$ 日本"}
    results = write_study(tmp_path, [odd], [replace(r, epochs=curve([0.4, 0.3])) for r in runs(odd, (0.4,) * 4)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for found in draw_pictures(results).pictures:
            found.content("png")


def test_text_that_the_font_lacks_is_told_by_its_code_point() -> None:
    assert drawable("a$b 日") == r"a\$b [U+65E5]"
    assert wrapped("one two three", width=7) == "one two\nthree"


def test_the_command_draws_without_torch(tmp_path: Path) -> None:
    results = worked_study(tmp_path)
    done = aggregate("figures", results, code=WITHOUT)
    assert done.returncode == 0
    assert f"{results}/figures/learning-curves.pdf\n" in done.stdout
    assert (results / "figures" / "learning-curves.tex").read_text(encoding="ascii").startswith("% Needs")


def test_every_confirm_run_of_the_clean_study_is_drawn(tmp_path: Path) -> None:
    results = clean_study(tmp_path)
    cells = load_material(results).cells
    assert [len(cell.confirm) for cell in cells] == [len(SEEDS)] * 2
    assert [len(cell.search) for cell in cells] == [len(trials_of(VANILLA)) - 4] * 2
