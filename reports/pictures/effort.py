"""The best value that each arm had found after so many trials: whether the arms were searched alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from reports.pictures.material import DrawnCell, Group, Material, compared
from reports.pictures.picture import Drawn, in_pictures, left_out
from reports.pictures.style import legend, metric_label, panels, whole_numbers
from reports.words.units import scale_of

CAPTION = (
    "Best last validation metric among the first n search trials of each arm, in the order in which they were sampled. "
    "Stopped and failed trials count as tried; the best is one that finished or reached the last rung. A line ends "
    "where the arm's search does. Arms are alike in effort up to the vertical line, where the shortest search ends."
)
_MARKERS = 6
"""On a line; more would hide it."""


def best_by_effort(material: Material) -> Drawn:
    """A panel for each dataset, backbone and size; a line for each arm that was searched."""
    searched = [cell for cell in material.cells if cell.search]
    drawn = [cell for cell in searched if cell.best is not None]

    def draw(part: Sequence[Group]) -> Figure:
        figure, axes = panels([title for title, _ in part])
        for panel, (_, cells) in zip(axes, part, strict=True):
            metric = cells[0].cell.metric
            for cell in cells:
                colour, line, marker = material.styles[cell.names.arm]
                values = scale_of(metric) * best_so_far(cell)
                panel.step(
                    np.arange(1, len(values) + 1),
                    values,
                    where="post",
                    color=colour,
                    linestyle=line,
                    marker=marker,
                    markevery=max(1, len(values) // _MARKERS),
                    label=material.legend_name(cell),
                )
            lengths = {len(cell.search) for cell in cells}
            if len(lengths) > 1:
                panel.axvline(min(lengths), color="black", linestyle=":", linewidth=0.7)
            whole_numbers(panel)
            panel.set_xlabel("Search trials")
            panel.set_ylabel(metric_label(metric, cells[0].cell.direction, "Best validation"))
        legend(figure, axes)
        return figure

    kind = "best value against trials"
    return Drawn(
        pictures=in_pictures("best-by-trials", "Best value against trials", CAPTION, compared(drawn), draw),
        skipped=left_out(
            kind,
            [cell.name for cell in searched if cell not in drawn],
            "no search trial finished or reached the last rung",
        )
        if searched
        else (f"{kind}: no cell was searched",),
    )


def best_so_far(cell: DrawnCell) -> np.ndarray:
    """After each search trial the best fraction so far; NaN before the first that finished or reached the last rung."""
    values = np.array(
        [trial.val_metric if trial.complete and trial.val_metric is not None else np.nan for trial in cell.search],
        dtype=np.float64,
    )
    best = np.fmin if cell.cell.direction == "min" else np.fmax
    return np.asarray(best.accumulate(values)) if len(values) else values
