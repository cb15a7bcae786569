"""Learning curves of the confirm runs, the gate's spread over their epochs, and the search's rungs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reports.pictures.material import DrawnCell, DrawnTrial, Material
from reports.pictures.style import (
    MOST_PANELS,
    PRUNED,
    STYLES,
    Picture,
    in_parts,
    in_units,
    legend,
    metric_label,
    panels,
)

Group = tuple[str, Sequence[DrawnCell]]
"""A panel's title and its cells."""

CURVES_CAPTION = (
    "Validation metric after each epoch of the confirm runs: mean over the runs (lines) and one population standard "
    "deviation (bands), up to the epoch that all runs of the model reached."
)
GATE_CAPTION = (
    "The factor deg x beta_hat over the edges of the validation split: smallest to largest (light band), and a"
    " standard deviation about 1 (dark band); means over the runs, up to the last epoch of all. A uniform gate is 1."
)
RUNGS_CAPTION = (
    "Validation metric of every search trial after each epoch: trained to the end (blue, solid) or stopped (grey, "
    "dashed, with a cross where). Vertical lines are the rungs, above them how many trials reached each and how many "
    "went on."
)


def learning_curves(material: Material) -> Iterator[Picture]:
    """A panel for each dataset, backbone and size; a line for each model."""
    groups = [group for group in groups_of_a_table(material.cells) if any(_shared(cell.confirm) for cell in group[1])]
    for number, figure in enumerate(_figures(groups, _draw_curves), start=1):
        count = -(-len(groups) // MOST_PANELS)
        yield Picture(
            name=in_parts("learning-curves", number, count),
            title="Learning curves",
            caption=CURVES_CAPTION,
            figure=figure,
        )


def gate_spread(material: Material) -> Iterator[Picture]:
    """A panel for each bilateral cell with confirm runs."""
    cells = [cell for cell in material.cells if cell.entry.summary.chosen.gate == "bilateral" and _shared(cell.confirm)]
    groups: list[Group] = [(cell.name, (cell,)) for cell in cells]
    for number, figure in enumerate(_figures(groups, _draw_gate), start=1):
        count = -(-len(groups) // MOST_PANELS)
        yield Picture(
            name=in_parts("gate-spread", number, count),
            title="How far the gate is from uniform",
            caption=GATE_CAPTION,
            figure=figure,
        )


def rungs(material: Material) -> Iterator[Picture]:
    """A panel for each cell that was searched with pruning."""
    cells = [cell for cell in material.cells if cell.search_plan.rungs and cell.search]
    groups: list[Group] = [(cell.name, (cell,)) for cell in cells]
    for number, figure in enumerate(_figures(groups, _draw_rungs), start=1):
        count = -(-len(groups) // MOST_PANELS)
        yield Picture(
            name=in_parts("rungs", number, count), title="Rungs of the search", caption=RUNGS_CAPTION, figure=figure
        )


def mean_curve(trials: Sequence[DrawnTrial], name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Epochs, mean and population standard deviation over ``trials``, up to the last epoch that all reached."""
    shared = _shared(trials)
    values = np.array([trial.curves[name][:shared] for trial in trials])
    return trials[0].curves["epoch"][:shared], values.mean(axis=0), values.std(axis=0)


def _shared(trials: Sequence[DrawnTrial]) -> int:
    return min((len(trial.curves["epoch"]) for trial in trials), default=0)


def groups_of_a_table(cells: Sequence[DrawnCell]) -> list[Group]:
    """Cells that stand together, of one dataset, backbone and size, under the title of their panel."""

    def panel(cell: DrawnCell) -> tuple[str, str, str, str]:
        plan, chosen = cell.cell, cell.entry.summary.chosen
        return plan.dataset_title, plan.backbone, str(chosen.budget), str(chosen.layers)

    ordered = sorted(cells, key=panel)
    return [(_title(found), found) for found in (list(group) for _, group in groupby(ordered, key=panel))]


def _title(cells: Sequence[DrawnCell]) -> str:
    first = cells[0]
    return first.name.replace(first.label, "", 1).replace("  ", " ")


def _figures(groups: Sequence[Group], draw: Callable[[Axes, Sequence[DrawnCell]], None]) -> Iterator[Figure]:
    for start in range(0, len(groups), MOST_PANELS):
        part = groups[start : start + MOST_PANELS]
        figure, axes = panels([title for title, _ in part])
        for panel, (_, cells) in zip(axes, part, strict=True):
            draw(panel, cells)
            panel.set_xlabel("Epoch")
            panel.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        legend(figure, axes)
        yield figure


def _draw_curves(axes: Axes, cells: Sequence[DrawnCell]) -> None:
    metric, direction = cells[0].cell.metric, cells[0].cell.direction
    for place, cell in enumerate(cell for cell in cells if _shared(cell.confirm)):
        colour, line, _ = STYLES[place % len(STYLES)]
        epochs, mean, std = mean_curve(cell.confirm, "val_metric")
        low, high = in_units(metric, 1.0) * (mean - std), in_units(metric, 1.0) * (mean + std)
        axes.plot(epochs, in_units(metric, 1.0) * mean, color=colour, linestyle=line, label=cell.label)
        axes.fill_between(epochs, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.set_ylabel(metric_label(metric, direction, "Validation"))


def _draw_gate(axes: Axes, cells: Sequence[DrawnCell]) -> None:
    (cell,) = cells
    epochs, low, _ = mean_curve(cell.confirm, "gate_min")
    _, high, _ = mean_curve(cell.confirm, "gate_max")
    _, std, _ = mean_curve(cell.confirm, "gate_std")
    colour = STYLES[1][0]
    axes.fill_between(epochs, low, high, color=colour, alpha=0.2, linewidth=0, label="smallest to largest")
    axes.fill_between(epochs, 1 - std, 1 + std, color=colour, alpha=0.6, linewidth=0, label="standard deviation")
    axes.axhline(1.0, color="black", linestyle=":", linewidth=0.8, label="uniform")
    axes.set_ylabel(r"deg $\times$ $\hat\beta$")


def _draw_rungs(axes: Axes, cells: Sequence[DrawnCell]) -> None:
    (cell,) = cells
    scale = in_units(cell.cell.metric, 1.0)
    for trial in cell.search:
        epochs, values = trial.curves["epoch"], scale * trial.curves["val_metric"]
        if trial.finished:
            axes.plot(epochs, values, color=STYLES[1][0], linewidth=0.7, label="trained to the end")
        elif len(epochs):
            axes.plot(epochs, values, color=PRUNED, linestyle="--", linewidth=0.5, label="stopped")
            axes.plot(epochs[-1:], values[-1:], color=PRUNED, marker="x", linestyle="none")
    for rung, (reached, beyond) in rung_counts(cell).items():
        axes.axvline(rung, color="black", linewidth=0.5, linestyle=":")
        axes.annotate(
            f"{reached}→{beyond}",
            (rung, 1.0),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="bottom",
            fontsize=5.5,
        )
    axes.title.set_y(1.06)  # above the counts
    axes.set_ylabel(metric_label(cell.cell.metric, cell.cell.direction, "Validation"))


def rung_counts(cell: DrawnCell) -> dict[int, tuple[int, int]]:
    """For each rung that a trial reached: how many did, and how many of them were trained beyond it."""
    lengths = [len(trial.curves["epoch"]) for trial in cell.search]
    counts = {
        rung: (sum(n >= rung for n in lengths), sum(n > rung for n in lengths)) for rung in cell.search_plan.rungs
    }
    return {rung: count for rung, count in counts.items() if count[0]}
