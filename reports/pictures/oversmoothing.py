"""The paper's figure of over-smoothing: a measure by layer, vanilla against gated, as PDF, SVG and PNG."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reports.compare.smoothing import ALPHA, Comparison, Curve, compare_smoothing
from reports.pictures.picture import Picture
from reports.pictures.style import STYLES, file_name, legend, settled, styled
from reports.records.plan import ResultsError
from study.counted import counted
from study.smoothing_records import MEASURES, SMOOTHING_FOLDER

DEFAULT_MEASURE = "information_gain_kde"
AXES: Mapping[str, str] = {
    "information_gain_kde": "Instance information gain (bits)",
    "information_gain_gaussian": "Instance information gain (bits)",
    "group_distance_ratio": "Group distance ratio (between / within)",
    "dirichlet_energy": "Dirichlet energy (squared units of the rows)",
    "mean_average_distance": "Mean average distance (1 - cosine)",
}
MEANINGS: Mapping[str, str] = {
    "information_gain_kde": "Instance information gain in bits (kernel density estimate)",
    "information_gain_gaussian": "Instance information gain in bits (joint Gaussian with shrinkage)",
    "group_distance_ratio": "Group distance ratio",
    "dirichlet_energy": "Dirichlet energy",
    "mean_average_distance": "Mean average distance",
}
VANILLA_STYLE, *GATED_STYLES = STYLES
BAR_HEIGHT = 0.035
"""Of a significance bar, as a share of the height of the axes."""


def oversmoothing(results: Path, measure: str = DEFAULT_MEASURE) -> tuple[Picture, ...]:
    """``measure`` of every vanilla cell of a study with the gated cells that face it; empty without a value of it.

    Raises:
        ResultsError: no such measure, or not the results folder of a study.
        study.records.RecordError: a file cannot be read.
    """
    if measure not in MEASURES:
        raise ResultsError(f"measure: found {measure!r}, expected one of {', '.join(MEASURES)}")
    if not any((results / SMOOTHING_FOLDER).glob("*.parquet")):
        return ()
    return tuple(_picture(comparison) for comparison in compare_smoothing(results, measure))


def _picture(comparison: Comparison) -> Picture:
    names = " and ".join(curve.name for curve in comparison.curves)
    return Picture(
        name=file_name(comparison.measure, comparison.curves[0].cell),
        title=f"Over-smoothing by layer: {names} on {comparison.dataset}",
        caption=caption(comparison),
        figure=settled(draw(comparison)),
    )


def draw(comparison: Comparison) -> Figure:
    """Lines are means over the test graphs, bands one standard deviation, short bars significant layers."""
    with styled():
        figure = Figure(figsize=(5.4, 3.6), layout="constrained")
        axes = figure.add_subplot()
    if comparison.vanilla is not None:
        _draw_curve(axes, comparison.vanilla, VANILLA_STYLE)
    for place, curve in enumerate(comparison.gated):
        _draw_curve(axes, curve, GATED_STYLES[place % len(GATED_STYLES)])
    _draw_bars(axes, comparison)
    axes.set_xlabel("Layer")
    axes.set_ylabel(AXES[comparison.measure])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend(figure, [axes])
    return figure


def caption(comparison: Comparison) -> str:
    """What the figure shows, over what, by which tests, and that the numbers are not the paper's."""
    names = " and ".join(curve.name for curve in comparison.curves)
    graphs = {curve.graphs for curve in comparison.curves}
    sentences = [
        f"{MEANINGS[comparison.measure]} by layer of {names} on {comparison.dataset}: "
        f"mean (lines) and standard deviation (bands) over {' or '.join(f'{count:,}' for count in sorted(graphs))} "
        f"test graphs, {_runs(comparison)}."
    ]
    if comparison.p_values is not None:
        tests = int(np.count_nonzero(~np.isnan(comparison.p_values)))
        sentences.append(
            "Short vertical bars: the gated and the vanilla network differ in this layer (two-sided Welch t-test over "
            f"the test graphs, p < {ALPHA} after Bonferroni correction for {tests} tests)."
        )
    undefined = sum(int(np.isnan(curve.values).sum()) for curve in comparison.curves)
    if undefined:
        which = "that does not exist or is infinite" if undefined == 1 else "that do not exist or are infinite"
        sentences.append(f"Left out: {counted(undefined, 'value')} {which}.")
    sentences.append(f"A run of our own (study {comparison.study}), not the paper's.")
    if comparison.about and comparison.about.strip():
        sentences.append(" ".join(comparison.about.split()))
    return " ".join(sentences)


def _runs(comparison: Comparison) -> str:
    missing = [f"{c.name}: {c.trials} of {c.asked} trials" for c in comparison.curves if c.trials != c.asked]
    seeds = sorted({seed for curve in comparison.curves for seed in curve.seeds})
    listed = f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
    folds = any(curve.folds for curve in comparison.curves)
    words = f"those of every fold, {listed}" if folds else f"each the mean over {listed}" if seeds[1:] else listed
    return words + (f" ({'; '.join(missing)})" if missing else "")


def _draw_curve(axes: Axes, curve: Curve, style: tuple[str, object, str]) -> None:
    colour, line, marker = style
    layers = np.arange(1, curve.layers + 1)
    axes.plot(layers, curve.mean, color=colour, linestyle=line, marker=marker, markersize=3.5, label=curve.name)
    axes.fill_between(layers, curve.mean - curve.std, curve.mean + curve.std, color=colour, alpha=0.18, linewidth=0)


def _draw_bars(axes: Axes, comparison: Comparison) -> None:
    """A row of bars for each gated curve, in its colour, above everything else."""
    if comparison.p_values is None:
        return
    rows = len(comparison.gated)
    low, high = axes.get_ylim()
    headroom = rows * 1.6 * BAR_HEIGHT + 0.02
    axes.set_ylim(low, low + (high - low) / (1 - headroom))
    for place, p_values in enumerate(comparison.p_values):
        top = 0.99 - place * 1.6 * BAR_HEIGHT
        axes.vlines(
            np.flatnonzero(p_values < ALPHA) + 1,
            top - BAR_HEIGHT,
            top,
            transform=axes.get_xaxis_transform(),
            color=GATED_STYLES[place % len(GATED_STYLES)][0],
            linewidth=1.8,
        )
