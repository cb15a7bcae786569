"""How the validation metric answers to sigma_m, K, the gate's place and the budget within the search of a cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.evidence.study_facts import budget_text
from reports.pictures.material import DrawnCell, DrawnTrial, Material
from reports.pictures.picture import Drawn, in_pictures, left_out
from reports.pictures.style import (
    BILATERAL,
    MANY_POINTS,
    PRUNED,
    UNIFORM,
    VANILLA,
    drawable,
    legend,
    logarithmic,
    metric_label,
    opacity,
    panels,
    whole_numbers,
)
from reports.words.units import scale_of

SETTINGS: Mapping[str, str] = {
    "sigma_m": r"Sensitivity $\sigma_m$",
    "num_clusters": "Number of clusters K",
    "placement": "Placement of the gate",
    "budget": "Budget (parameters)",
}
"""Settings with a picture, and the label of their axis."""

SPOKEN: Mapping[str, str] = {
    "sigma_m": "sigma_m",
    "num_clusters": "K",
    "placement": "the gate's place",
    "budget": "the budget",
}
"""The same in sentences."""

PLACEMENTS = ("none", "boosting", "interleaved", "dense")

CAPTION = (
    "Last validation metric of the search trials that finished or reached the last rung (dots). Trials that were "
    "stopped earlier are strokes at the lower edge, diverged ones crosses above them: at their value of the "
    "hyperparameter, without a metric, since that of another epoch is not comparable (of words their number is in "
    "brackets). Lines: the best trial of the "
    "uniform gate and of the vanilla model, where they were searched. Trials in which the hyperparameter was not "
    "sampled are not shown."
)
_STOPPED_AT, _DIVERGED_AT = 0.04, 0.1
"""Where they stand, as shares of the height of the axes."""


def responses(material: Material) -> Drawn:
    """A picture of each of :data:`SETTINGS` that was searched, with a panel for each cell."""
    return Drawn.together([_response(material, key) for key in SETTINGS])


def _response(material: Material, key: str) -> Drawn:
    kind = f"response to {SPOKEN[key]}"
    searching = [cell for cell in material.cells if key in {found.name for found in cell.search_plan.ranges or ()}]
    # A plan of an older version does not say what was searched; its trials do.
    searching = searching or [cell for cell in material.cells if _differs(cell.search, key)]
    drawn = [cell for cell in searching if _differs([trial for trial in _sampled(cell, key) if trial.complete], key)]
    reason = "no two search trials with different values finished or reached the last rung"

    def draw(part: Sequence[DrawnCell]) -> Figure:
        figure, axes = panels([cell.name for cell in part])
        for cell, panel in zip(part, axes, strict=True):
            _draw_panel(panel, material, cell, key)
        legend(figure, axes)
        return figure

    return Drawn(
        pictures=in_pictures(f"response-{key}", f"Response to {SPOKEN[key]}", CAPTION, drawn, draw),
        skipped=left_out(kind, [cell.name for cell in searching if cell not in drawn], reason)
        if searching
        else (f"{kind} within a search: no cell searched it",),
    )


def _sampled(cell: DrawnCell, key: str) -> list[DrawnTrial]:
    """The search trials in which it was sampled; in others it does not exist, or has its default."""
    known = [trial for trial in cell.search if trial.settings[key] is not None]
    if cell.search_plan.ranges is None:
        return known
    return [trial for trial in known if key in {found.name for found in cell.search_plan.sampled(trial.settings)}]


def _differs(trials: Sequence[DrawnTrial], key: str) -> bool:
    return len({trial.settings[key] for trial in trials} - {None}) > 1


def _draw_panel(axes: Axes, material: Material, cell: DrawnCell, key: str) -> None:
    scale = scale_of(cell.cell.metric)
    sampled = _sampled(cell, key)
    dots = [trial for trial in sampled if trial.complete]
    stopped = [trial for trial in sampled if trial.status == "pruned" and not trial.complete]
    diverged = [trial for trial in sampled if trial.status == "diverged"]
    places = places_of([trial.settings[key] for trial in (*dots, *stopped, *diverged)], key)

    def at(trials: Sequence[DrawnTrial]) -> list[float]:
        return [places[trial.settings[key]] for trial in trials]

    axes.plot(
        at(dots),
        [scale * (trial.val_metric or 0.0) for trial in dots],
        color=BILATERAL[0],
        marker="o",
        linestyle="none",
        label="last value",
        alpha=opacity(len(dots)),
        rasterized=len(dots) > MANY_POINTS,
    )
    draw_baselines(axes, material, cell, lambda other: other.best, scale)
    _draw_edge(axes, at(stopped), _STOPPED_AT, "|", PRUNED, "stopped")
    _draw_edge(axes, at(diverged), _DIVERGED_AT, "x", "black", "diverged")
    if stopped or diverged:
        low, high = axes.get_ylim()
        axes.set_ylim(low - 0.14 * (high - low), high)
    counts = Counter(trial.settings[key] for trial in stopped)
    scale_axis(axes, key, places, counts)
    axes.set_xlabel(SETTINGS[key])
    axes.set_ylabel(metric_label(cell.cell.metric, cell.cell.direction, "Validation"))


def _draw_edge(axes: Axes, places: Sequence[float], height: float, marker: str, colour: str, name: str) -> None:
    if places:
        axes.plot(
            places,
            [height] * len(places),
            transform=axes.get_xaxis_transform(),
            color=colour,
            marker=marker,
            markersize=4,
            linestyle="none",
            label=name,
            alpha=opacity(len(places)),
            rasterized=len(places) > MANY_POINTS,
        )


def draw_baselines(
    axes: Axes,
    material: Material,
    cell: DrawnCell,
    value: Callable[[DrawnCell], float | None],
    scale: float,
    *,
    with_uniform: bool = True,
) -> None:
    """Lines at the ``value`` of the uniform twin and of the vanilla model of ``cell``, where they have one."""
    twin = material.uniform_twin(cell) if with_uniform else None
    for name, other, style in (("uniform gate", twin, UNIFORM), ("vanilla", material.facing(cell), VANILLA)):
        level = value(other) if other is not None else None
        if level is not None:
            axes.axhline(scale * level, color=style[0], linestyle=style[1], linewidth=0.9, label=name)


def _word(value: float | str, stopped: int) -> str:
    return drawable(str(value)) + (f" ({stopped})" if stopped else "")


def places_of(values: Sequence[float | str], key: str) -> dict[float | str, float]:
    """Where values stand on the axis, ascending: numbers at themselves, words side by side, placements as in papers."""
    distinct = dict.fromkeys(values)
    if key != "placement":
        return {value: float(value) for value in sorted(distinct)}
    words = sorted(map(str, distinct))
    ordered = [*(word for word in PLACEMENTS if word in words), *(word for word in words if word not in PLACEMENTS)]
    return {word: float(place) for place, word in enumerate(ordered)}


def scale_axis(
    axes: Axes, key: str, places: Mapping[float | str, float], stopped: Mapping[float | str, int] | None = None
) -> None:
    """The x-axis of ``key`` with the values ``places``; words are followed by how many were ``stopped`` there."""
    if key == "placement":
        turned: Any = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if len(places) > 3 else {}
        axes.set_xticks(
            list(places.values()), [_word(value, (stopped or {}).get(value, 0)) for value in places], **turned
        )
        axes.set_xlim(-0.5, len(places) - 0.5)
    elif key == "num_clusters":
        whole_numbers(axes)
    elif min(places.values()) > 0:
        logarithmic(axes, places.values(), *((lambda value: budget_text(round(value)),) if key == "budget" else ()))
