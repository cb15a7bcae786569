"""Over-smoothing by layer: means, spreads and tests worked out by hand, the caption's facts, and the files."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from aggregate_command import WITHOUT, aggregate, aggregate_process
from made_studies import trial, write_study
from measured_study import BI_GCN, GCN, measured, measured_study
from scipy.stats import t as student

from reports.compare.smoothing import compare_smoothing
from reports.pictures import draw_pictures
from reports.pictures.oversmoothing import caption, draw, oversmoothing
from reports.records.plan import ResultsError
from study.records import RecordError


def test_a_curve_averages_runs_first_then_graphs(tmp_path: Path) -> None:
    """Layer 1 of GCN: graphs at 2, 3, 4: mean 3, population variance 2/3; the embedded inputs (9.0) do not enter."""
    (comparison,) = compare_smoothing(measured_study(tmp_path), "information_gain_kde")
    assert comparison.vanilla is not None
    assert comparison.vanilla.values.tolist() == [[2.0, 0.1], [3.0, 0.2], [4.0, pytest.approx(0.3)]]
    assert comparison.vanilla.mean.tolist() == pytest.approx([3.0, 0.2])
    assert comparison.vanilla.std[0] == pytest.approx(math.sqrt(2 / 3))
    assert [(curve.name, curve.seeds) for curve in comparison.curves] == [
        *(("GCN", (41, 95)), ("bi-GCN", (41, 95)), ("uniform-GCN", (41,)))
    ]


def test_a_curve_is_of_the_runs_behind_the_number_of_the_table(tmp_path: Path) -> None:
    """Of two configurations on record the one begun last stands in the table (0.7), so its graphs are drawn."""
    current = [trial(GCN, seed, 0.7, learning_rate=4e-3, started_at=1000.0) for seed in (41, 95)]
    rates = (2e-3, 3e-3, 5e-3)
    earlier = [trial(GCN, seed, 0.5, learning_rate=rate, started_at=1.0) for rate in rates for seed in (41, 95)]
    results = write_study(tmp_path, [GCN], [*current, *earlier])
    for record in current:
        measured(results, record, {7: [9.0, 5.0, 6.0], 8: [9.0, 5.0, 8.0]})
    for record in earlier:
        measured(results, record, {7: [9.0, 1.0, 1.0], 8: [9.0, 1.0, 1.0]})
    (comparison,) = compare_smoothing(results, "information_gain_kde")
    assert comparison.curves[0].mean.tolist() == [5.0, 7.0]


def test_welch_tests_by_hand_times_their_number(tmp_path: Path) -> None:
    """Layer 1 against bi-GCN: means 3 and 13, both variances 1 with n = 3: t = 10 / sqrt(2/3), 4 degrees of freedom."""
    (comparison,) = compare_smoothing(measured_study(tmp_path), "information_gain_kde")
    raw = 2 * student.sf(10 / math.sqrt(2 / 3), 4)
    assert comparison.p_values is not None
    assert comparison.p_values[0].tolist() == pytest.approx([4 * raw, 1.0])
    assert comparison.p_values[1].tolist() == pytest.approx([1.0, 1.0])


def test_the_caption_states_graphs_seeds_data_and_whose_run_it_is(tmp_path: Path) -> None:
    (comparison,) = compare_smoothing(measured_study(tmp_path), "information_gain_kde")
    words = caption(comparison)
    assert "in bits (kernel density estimate) by layer of GCN and bi-GCN and uniform-GCN on CLUSTER" in words
    assert "over 3 test graphs, each the mean over seeds 41, 95 (uniform-GCN: 1 of 2 trials)" in words
    assert "p < 0.05 after Bonferroni correction for 4 tests" in words
    assert words.endswith("A run of our own (study made), not the paper's.")


def test_values_that_do_not_exist_are_left_out_and_counted(tmp_path: Path) -> None:
    record = trial(GCN, 41, 0.5)
    results = write_study(tmp_path, [GCN], [record])
    measured(results, record, {7: [9.0, 1.0, math.inf], 8: [9.0, 3.0, 4.0]})
    (comparison,) = compare_smoothing(results, "information_gain_kde")
    assert comparison.p_values is None
    assert comparison.curves[0].mean.tolist() == [2.0, 4.0]
    assert "Left out: 1 value that does not exist or is infinite." in caption(comparison)
    assert "(GCN: 1 of 2 trials)" in caption(comparison)


@pytest.mark.filterwarnings("error")
def test_a_layer_without_any_value_is_a_gap_and_no_warning(tmp_path: Path) -> None:
    record = trial(GCN, 41, 0.5)
    results = write_study(tmp_path, [GCN], [record])
    measured(results, record, {7: [9.0, 1.0, math.inf, 4.0], 8: [9.0, 3.0, math.inf, 4.0]})
    (comparison,) = compare_smoothing(results, "information_gain_kde")
    assert comparison.curves[0].mean.tolist() == [2.0, pytest.approx(math.nan, nan_ok=True), 4.0]
    assert comparison.curves[0].std.tolist() == [1.0, pytest.approx(math.nan, nan_ok=True), 0.0]
    draw(comparison)


def test_a_layer_is_tested_where_two_graphs_a_side_have_values_and_any_varies(tmp_path: Path) -> None:
    """Layer 1: means 2 and 6, both variances 2 with n = 2: t = sqrt(8), 2 degrees: p = 1 - sqrt(8 / (8 + 2)).

    In layer 2 nothing varies, in layer 3 one graph has a value; one has none behind any layer, and counts as left out.
    """
    records = [trial(cell, 41, 0.5) for cell in (GCN, BI_GCN)]
    results = write_study(tmp_path, [GCN, BI_GCN], records)
    none = [9.0, math.inf, math.inf, math.inf]
    measured(results, records[0], {7: [9.0, 1.0, 1.0, 1.0], 8: [9.0, 3.0, 1.0, 2.0], 9: none})
    measured(results, records[1], {7: [9.0, 5.0, 2.0, 1.0], 8: [9.0, 7.0, 2.0, math.inf], 9: none})
    (comparison,) = compare_smoothing(results, "information_gain_kde")
    assert [curve.graphs for curve in comparison.curves] == [3, 3]
    assert "over 3 test graphs" in caption(comparison)
    assert "Left out: 7 values that do not exist or are infinite." in caption(comparison)
    assert comparison.p_values is not None
    assert comparison.p_values[0].tolist() == pytest.approx([1 - math.sqrt(0.8), math.nan, math.nan], nan_ok=True)


def test_the_figure_comes_in_three_formats_and_the_same_bytes_twice(tmp_path: Path) -> None:
    results = measured_study(tmp_path / "results")
    (first,) = oversmoothing(results)
    (second,) = oversmoothing(results)
    pdf, svg, png, text, latex = first.write(tmp_path / "first")
    assert pdf.name == "information_gain_kde-cluster-gcn-none-L2-100000.pdf"
    assert pdf.read_bytes().startswith(b"%PDF")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in svg.read_text(encoding="utf-8")
    again = second.write(tmp_path / "second")
    assert [path.read_bytes() for path in (pdf, svg, png, text, latex)] == [path.read_bytes() for path in again]
    assert text.read_text(encoding="utf-8").strip() == first.caption
    odd = replace(first, caption="a\ud800b").write(tmp_path / "odd")
    assert odd[3].read_bytes() == b"a?b\n"
    size = r"width=\ifdim\linewidth<5.4in\linewidth\else5.4in\fi"
    assert rf"\includegraphics[{size}]{{{pdf.name}}}" in latex.read_text(encoding="ascii")


def test_bars_stand_at_significant_layers_alone(tmp_path: Path) -> None:
    (comparison,) = compare_smoothing(measured_study(tmp_path), "information_gain_kde")
    (axes,) = draw(comparison).axes
    bars = [collection for collection in axes.collections if type(collection).__name__ == "LineCollection"]
    assert [[segment[0][0] for segment in bar.get_segments()] for bar in bars] == [[1.0], []]
    assert axes.get_ylabel() == "Instance information gain (bits)"
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [3.0, 0.2])


def test_the_command_loads_no_torch(tmp_path: Path) -> None:
    results = measured_study(tmp_path)
    done = aggregate_process("figures", results, "--out", tmp_path / "out", code=WITHOUT)
    assert done.returncode == 0
    assert "over-smoothing" not in done.stderr
    assert f"{tmp_path / 'out'}/information_gain_kde-cluster-gcn-none-L2-100000.png\n" in done.stdout


@pytest.mark.parametrize("lacking", ["the measure", "trials that count"])
def test_without_a_value_the_other_pictures_are_drawn_all_the_same(tmp_path: Path, lacking: str) -> None:
    """A task may lack the measure, and what was measured may be of trials that another configuration superseded."""
    results, measure = measured_study(tmp_path), "information_gain_kde"
    if lacking == "the measure":
        measure = "group_distance_ratio"
    else:
        for path in sorted((results / "smoothing").glob("*.parquet")):
            path.rename(path.with_name(f"superseded-{path.name}"))
    assert compare_smoothing(results, measure) == ()
    drawn = draw_pictures(results, measure)
    assert [picture.name for picture in drawn.pictures] == ["learning-curves"]
    assert drawn.skipped[-1].startswith(f"over-smoothing: no value of {measure} on record; `run_study.py smoothing ")


def test_errors_say_what_to_do_in_one_line(tmp_path: Path) -> None:
    results = measured_study(tmp_path)
    with pytest.raises(ResultsError, match="found 'gain', expected one of information_gain_kde, "):
        compare_smoothing(results, "gain")
    path = next((results / "smoothing").glob("*.parquet"))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(RecordError, match=f"{path}: not a readable Parquet file"):
        compare_smoothing(results, "information_gain_kde")
    done = aggregate("figures", results)
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1


def test_a_file_of_another_trial_is_refused(tmp_path: Path) -> None:
    results = measured_study(tmp_path)
    one, other, *_ = sorted((results / "smoothing").glob("*.parquet"))
    other.write_bytes(one.read_bytes())
    with pytest.raises(RecordError, match=f"not the values of trial {other.stem}"):
        compare_smoothing(results, "information_gain_kde")
