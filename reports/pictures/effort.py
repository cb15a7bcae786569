"""The best value that each arm had found after so many trials: whether the arms were searched alike."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.ticker import MaxNLocator

from reports.pictures.curves import groups_of_a_table
from reports.pictures.material import DrawnCell, Material
from reports.pictures.style import MOST_PANELS, STYLES, Picture, in_parts, in_units, legend, metric_label, panels

CAPTION = (
    "Best last validation metric among the first n search trials of each arm, in the order in which they were sampled; "
    "stopped and failed trials count as tried, but cannot be the best. Lines end where an arm's search does."
)


def best_by_effort(material: Material) -> Iterator[Picture]:
    """A panel for each dataset, backbone and size; a line for each arm that was searched."""
    groups = groups_of_a_table([cell for cell in material.cells if np.isfinite(best_so_far(cell)).any()])
    for number, start in enumerate(range(0, len(groups), MOST_PANELS), start=1):
        part = groups[start : start + MOST_PANELS]
        figure, axes = panels([title for title, _ in part])
        for panel, (_, cells) in zip(axes, part, strict=True):
            metric = cells[0].cell.metric
            for place, cell in enumerate(cells):
                colour, line, marker = STYLES[place % len(STYLES)]
                values = in_units(metric, 1.0) * best_so_far(cell)
                panel.step(
                    np.arange(1, len(values) + 1),
                    values,
                    where="post",
                    color=colour,
                    linestyle=line,
                    marker=marker if len(values) <= 30 else None,
                    label=cell.label,
                )
            panel.set_xlabel("Search trials")
            panel.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
            panel.set_ylabel(metric_label(metric, cells[0].cell.direction, "Best validation"))
        legend(figure, axes)
        name = in_parts("best-by-trials", number, -(-len(groups) // MOST_PANELS))
        yield Picture(name=name, title="Best value against trials", caption=CAPTION, figure=figure)


def best_so_far(cell: DrawnCell) -> np.ndarray:
    """After each search trial the best fraction found so far; NaN before the first that was trained to its end."""
    values = np.array(
        [trial.val_metric if trial.finished and trial.val_metric is not None else np.nan for trial in cell.search],
        dtype=np.float64,
    )
    best = np.fmin if cell.cell.direction == "min" else np.fmax
    return np.asarray(best.accumulate(values)) if len(values) else values
