"""The rungs of a search with pruning: what each trial had reached there, who went on, and who was stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from reports.pictures.material import DrawnCell, DrawnTrial, Material
from reports.pictures.picture import Drawn, in_pictures, left_out
from reports.pictures.style import (
    BILATERAL,
    MANY_POINTS,
    PRUNED,
    legend,
    metric_label,
    opacity,
    panels,
    readable_ticks,
)
from reports.words.units import scale_of

KIND = "rungs"
CAPTION = (
    "Validation metric of the search trials at the rungs of their cell and at their last epoch (logarithmic axis): "
    "finished (blue, solid, a dot at the end), stopped at a rung (grey, dashed, a cross), or diverged or failed (grey, "
    "dashed, no mark). Under each rung: its epoch, how many trials reached it, and how many were trained beyond it."
)
Points = list[tuple[float, float]]


def rungs(material: Material) -> Drawn:
    """A panel for each cell that was searched with pruning."""
    pruning = [cell for cell in material.cells if cell.search_plan.rungs and cell.search]
    drawn = [cell for cell in pruning if any(rung_points(trial, cell.search_plan.rungs) for trial in cell.search)]

    def draw(part: Sequence[DrawnCell]) -> Figure:
        figure, axes = panels([cell.name for cell in part], height=2.15)
        for cell, panel in zip(part, axes, strict=True):
            _draw_rungs(panel, cell)
        legend(figure, axes)
        return figure

    none = f"{KIND}: no cell was searched with pruning, or the plan is of an older version: start the study again"
    return Drawn(
        pictures=in_pictures("rungs", "Rungs of the search", CAPTION, drawn, draw),
        skipped=left_out(KIND, [cell.name for cell in pruning if cell not in drawn], "no trial has reached one")
        if pruning
        else (none,),
    )


def rung_points(trial: DrawnTrial, rungs: Sequence[int]) -> Points:
    """Epoch and fraction at each of ``rungs`` that the trial reached, and at its last epoch; empty before the first."""
    epochs, values = trial.curves["epoch"], trial.curves["val_metric"]
    if not len(epochs) or epochs[-1] < min(rungs):
        return []
    shown = np.isin(epochs, [*rungs, epochs[-1]]) & np.isfinite(values)
    return list(zip(epochs[shown].tolist(), values[shown].tolist(), strict=True))


def rung_counts(cell: DrawnCell) -> dict[int, tuple[int, int]]:
    """For each rung that a trial reached: how many did, and how many of them were trained beyond it."""
    lengths = [trial.num_epochs for trial in cell.search]
    counts = {
        rung: (sum(n >= rung for n in lengths), sum(n > rung for n in lengths)) for rung in cell.search_plan.rungs
    }
    return {rung: count for rung, count in counts.items() if count[0]}


def _draw_rungs(axes: Axes, cell: DrawnCell) -> None:
    scale = scale_of(cell.cell.metric)
    lines: dict[str, list[Points]] = {"finished": [], "pruned": [], "other": []}
    for trial in cell.search:
        points = [(epoch, scale * value) for epoch, value in rung_points(trial, cell.search_plan.rungs)]
        if points:
            lines[trial.status if trial.status in lines else "other"].append(points)
    many = len(cell.search) > MANY_POINTS
    other = (*lines["pruned"], *lines["other"])
    shared: Any = {"alpha": opacity(len(cell.search)), "rasterized": many}
    axes.add_collection(LineCollection(other, colors=PRUNED, linestyles="--", linewidths=0.5, **shared))
    axes.add_collection(LineCollection(lines["finished"], colors=BILATERAL[0], linewidths=0.6, **shared))
    ends = (("finished", "o", BILATERAL[0], "finished"), ("pruned", "x", PRUNED, "stopped at a rung"))
    for status, marker, colour, name in ends:
        if lines[status]:
            at, values = zip(*(points[-1] for points in lines[status]), strict=True)
            axes.plot(at, values, color=colour, marker=marker, linestyle="none", label=name, **shared)
    _mark_rungs(axes, cell)
    axes.set_ylabel(metric_label(cell.cell.metric, cell.cell.direction, "Validation"))


def _mark_rungs(axes: Axes, cell: DrawnCell) -> None:
    counts = rung_counts(cell)
    axes.set_xscale("log")
    for rung in counts:
        axes.axvline(rung, color="black", linewidth=0.4, linestyle=":", zorder=0)
    ticks = {rung: f"{rung}\n{reached}\n{beyond}" for rung, (reached, beyond) in counts.items()}
    # The first says what the numbers are; of rungs that stand close, words at each would touch.
    first, (reached, beyond) = next(iter(counts.items()))
    ticks[first] = f"epoch {first}\n{reached} trials\n{beyond} went on"
    last = max(trial.num_epochs for trial in cell.search)
    if last > max(counts) and readable_ticks([min(counts), max(counts), last])[-2:] == [max(counts), last]:
        ticks[last] = f"{last}\nend"
    axes.xaxis.set_major_locator(FixedLocator(list(ticks)))
    axes.xaxis.set_major_formatter(FixedFormatter(list(ticks.values())))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("Rung")
    axes.autoscale_view()
