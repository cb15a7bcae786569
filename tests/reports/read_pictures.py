"""Studies with a search over the gate, and what stands in the panels of their pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from made_studies import Cell, gated, trial
from matplotlib.axes import Axes

from reports.pictures import Picture, draw_pictures
from study.records import TrialRecord

SPACE = {"sigma_m": {"log_uniform": [0.1, 10]}, "num_clusters": {"int": [2, 16]}}


def gate_search(**changes: object) -> Cell:
    """A cell that searches sigma_m and K, with a rung after two epochs."""
    searched = {"num_clusters": None, "sigma_m": None, "searched": SPACE, "rungs": [4], "trials": 12}
    return gated("zinc", "gcn", **{**searched, **changes})  # type: ignore[arg-type]


def searched(number: int, sigma_m: float, num_clusters: int, value: float | None, status: str) -> TrialRecord:
    """Search trial ``number`` of :func:`gate_search`, of three epochs."""
    # Another learning rate each: no two of them are one trial.
    rate = 1e-3 + number / 1e6
    made = trial(gate_search(), 41, phase="search", sigma_m=sigma_m, num_clusters=num_clusters, learning_rate=rate)
    return replace(made, number=number, val_metric=value, status=status)  # type: ignore[arg-type]


def picture(results: Path, name: str) -> Picture:
    """The picture of that name."""
    (found,) = [picture for picture in draw_pictures(results).pictures if picture.name == name]
    return found


def skipped(results: Path, kind: str) -> list[str]:
    """What is said of the pictures of ``kind`` that are not there."""
    parted = (line.partition(": ") for line in draw_pictures(results).skipped)
    return [reason for found, _, reason in parted if found == kind]


def line(axes: Axes, label: str) -> tuple[list[float], list[float]]:
    """The points of the line with that name in the legend."""
    (found,) = [line for line in axes.lines if line.get_label() == label]
    return list(map(float, found.get_xdata())), list(map(float, found.get_ydata()))  # type: ignore[arg-type]


def names_of_lines(axes: Axes) -> list[str]:
    """The names in the legend, of lines."""
    return [str(line.get_label()) for line in axes.lines if not str(line.get_label()).startswith("_")]


def legend_of(found: Picture) -> list[str]:
    """The names in the legend above all panels."""
    (legend,) = found.figure.legends
    return [text.get_text() for text in legend.get_texts()]


def titles(found: Picture) -> list[str]:
    """Of the panels, each in one line."""
    return [" ".join(axes.title.get_text().split()) for axes in found.figure.axes]
