"""Learning curves of the confirm runs, and the gate's spread over their epochs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.pictures.material import DrawnCell, DrawnTrial, Group, Material, compared
from reports.pictures.picture import Drawn, in_pictures, left_out
from reports.pictures.style import BILATERAL, legend, metric_label, panels, whole_numbers
from reports.words.units import scale_of

CURVES = "Validation metric after each epoch of the confirm runs"
OF_RUNS = (
    "mean over the runs, seeds and folds alike (lines), and one population standard deviation to either side (bands), "
    "up to the last epoch that all runs of the model reached"
)
OF_ONE_RUN = "of a single run of each model, so that no spread is known"
CUT_OFF = (
    "The axis is cut to what the curves hold after their first tenth of epochs, from their best value to the worst "
    "twentieth of their means: what reaches its edge lies beyond it."
)
GATE_CAPTION = (
    "How far deg x beta_hat is from 1, its value under a uniform gate, over the edges of the validation split: "
    "smallest to largest (light band), and one standard deviation to either side (dark band); each the mean over the "
    "confirm runs, up to the last epoch that all reached."
)
_MARKERS = 5
"""On a line; more would hide it."""
_FIRST_PART = 10
"""Curves settle after an early part: the first epoch of as many."""
_SETTLED = 0.95
"""Of the settled means, the part that must lie within an axis that is cut."""
_SQUEEZED = 1.5
"""An axis is cut where all values would need so many times the room of the settled ones."""


def learning_curves(material: Material) -> Drawn:
    """A panel for each dataset, backbone and size; a line for each model."""
    confirmed = [cell for cell in material.cells if cell.confirm]
    drawn = [cell for cell in confirmed if _has(cell, "val_metric")]

    def draw(part: Sequence[Group]) -> Figure:
        figure, axes = panels([title for title, _ in part])
        for panel, (_, cells) in zip(axes, part, strict=True):
            for cell in cells:
                _draw_curve(panel, cell, material.styles[cell.names.arm], material.legend_name(cell))
            limits = settled_limits(cells)
            if limits:
                panel.set_ylim(*limits)
            whole_numbers(panel)
            panel.set_xlabel("Epoch")
            panel.set_ylabel(metric_label(cells[0].cell.metric, cells[0].cell.direction, "Validation"))
        legend(figure, axes)
        return figure

    return Drawn(
        pictures=in_pictures("learning-curves", "Learning curves", _caption(compared(drawn)), compared(drawn), draw),
        skipped=_skipped(
            "learning curves",
            confirmed,
            drawn,
            "no confirm run has finished",
            "fewer than two epochs have a metric of all runs",
        ),
    )


def gate_spread(material: Material) -> Drawn:
    """A panel for each bilateral cell with confirm runs."""
    confirmed = [cell for cell in material.cells if cell.gate == "bilateral" and cell.confirm]
    drawn = [cell for cell in confirmed if all(_has(cell, name) for name in ("gate_min", "gate_max", "gate_std"))]

    def draw(part: Sequence[DrawnCell]) -> Figure:
        figure, axes = panels([cell.name for cell in part])
        for panel, cell in zip(axes, part, strict=True):
            _draw_gate(panel, cell)
        legend(figure, axes)
        return figure

    return Drawn(
        pictures=in_pictures("gate-spread", "How far the gate is from uniform", GATE_CAPTION, drawn, draw),
        skipped=_skipped(
            "spread of the gate",
            confirmed,
            drawn,
            "no confirm run of a bilateral gate has finished",
            "fewer than two epochs have values of the gate of all runs",
        ),
    )


def mean_curve(trials: Sequence[DrawnTrial], name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Epochs, mean and population standard deviation over ``trials``, up to the last epoch that all reached.

    NaN in an epoch in which one of them has no number: a mean over fewer would be of another set of runs.
    """
    shared = min(trial.num_epochs for trial in trials)
    values = np.array([trial.curves[name][:shared] for trial in trials])
    return trials[0].curves["epoch"][:shared], values.mean(axis=0), values.std(axis=0)


def settled_limits(cells: Sequence[DrawnCell]) -> tuple[float, float] | None:
    """The limits of a panel's axis, in its unit, where a few early or single values would squeeze the curves.

    None where all values fit. On the better side they reach to the best edge of a band after the first tenth of epochs,
    on the worse to the 95th percentile of the means there, and to every curve's last value.
    """
    sign = 1.0 if cells[0].cell.direction == "min" else -1.0
    every: list[np.ndarray] = []
    better: list[np.ndarray] = []
    means: list[np.ndarray] = []
    last: list[float] = []
    for cell in cells:
        _, mean, std = mean_curve(cell.confirm, "val_metric")
        known = np.isfinite(mean) & np.isfinite(std)
        settled = known & (np.arange(len(mean)) >= len(mean) // _FIRST_PART)
        every += [(sign * mean - std)[known], (sign * mean + std)[known]]
        better.append((sign * mean - std)[settled])
        means.append(sign * mean[settled])
        last += [float(value) for value in means[-1][-1:]]
    if not last:
        return None
    values = np.concatenate(every)
    low = float(np.concatenate(better).min())
    high = max(float(np.quantile(np.concatenate(means), _SETTLED)), *last)
    if high <= low or values.max() - values.min() <= _SQUEEZED * (high - low):
        return None
    margin = 0.05 * (high - low)
    scale = scale_of(cells[0].cell.metric)
    ends = sorted((sign * scale * (low - margin), sign * scale * (high + margin)))
    return ends[0], ends[1]


def _caption(groups: Sequence[Group]) -> str:
    cells = [cell for _, group in groups for cell in group]
    what = OF_RUNS if any(len(cell.confirm) > 1 for cell in cells) else OF_ONE_RUN
    is_cut = any(settled_limits(group) for _, group in groups)
    return f"{CURVES}: {what}.{f' {CUT_OFF}' if is_cut else ''}"


def _has(cell: DrawnCell, name: str) -> bool:
    """Whether there is a curve: two epochs in which all runs have a number."""
    return int(np.isfinite(mean_curve(cell.confirm, name)[1]).sum()) > 1


def _skipped(
    kind: str, confirmed: Sequence[DrawnCell], drawn: Sequence[DrawnCell], none: str, without: str
) -> tuple[str, ...]:
    if not confirmed:
        return (f"{kind}: {none}",)
    return left_out(kind, [cell.name for cell in confirmed if cell not in drawn], without)


def _draw_curve(axes: Axes, cell: DrawnCell, style: tuple[str, object, str], name: str) -> None:
    colour, line, marker = style
    scale = scale_of(cell.cell.metric)
    epochs, mean, std = mean_curve(cell.confirm, "val_metric")
    every = max(1, len(epochs) // _MARKERS)
    axes.plot(epochs, scale * mean, color=colour, linestyle=line, marker=marker, markevery=every, label=name)
    if len(cell.confirm) > 1:
        axes.fill_between(epochs, scale * (mean - std), scale * (mean + std), color=colour, alpha=0.2, linewidth=0)


def _draw_gate(axes: Axes, cell: DrawnCell) -> None:
    epochs, low, _ = mean_curve(cell.confirm, "gate_min")
    _, high, _ = mean_curve(cell.confirm, "gate_max")
    _, std, _ = mean_curve(cell.confirm, "gate_std")
    colour = BILATERAL[0]
    # A trained gate may stay within a thousandth of 1: of the distance the axis can give plain numbers.
    axes.fill_between(epochs, low - 1, high - 1, color=colour, alpha=0.2, linewidth=0, label="smallest to largest")
    axes.fill_between(epochs, -std, std, color=colour, alpha=0.6, linewidth=0, label="standard deviation")
    axes.axhline(0.0, color="black", linestyle=":", linewidth=0.8, label="uniform gate")
    whole_numbers(axes)
    axes.set_xlabel("Epoch")
    axes.set_ylabel(r"deg $\times$ $\hat{\beta}$ $-$ 1 (no unit)")
