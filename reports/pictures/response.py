"""How the metric answers to sigma_m, K, the gate's place and the budget: within a search, and between cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from reports.pictures.material import DrawnCell, DrawnTrial, Material
from reports.pictures.style import (
    MOST_PANELS,
    PRUNED,
    STYLES,
    Picture,
    drawable,
    file_name,
    in_parts,
    in_units,
    legend,
    metric_label,
    panels,
)

SETTINGS: Mapping[str, str] = {
    "sigma_m": r"Sensitivity $\sigma_m$",
    "num_clusters": "Number of clusters K",
    "placement": "Placement of the gate",
    "budget": "Parameter budget",
}
"""Settings with a picture, and the label of their axis."""

LOGARITHMIC = ("sigma_m", "budget")
_TITLES = {"sigma_m": "sigma_m", "num_clusters": "K", "placement": "the gate's place", "budget": "the budget"}

SEARCH_CAPTION = (
    "Last validation metric of the search trials of a cell: trained to the end (filled), or stopped early (grey "
    "crosses: their value is that of the epoch at which they were stopped, not comparable with the others). Lines: the "
    "best trial of the uniform gate and of the vanilla model, where they were searched."
)
CELLS_CAPTION = (
    "Test metric of cells that differ in this alone: mean and population standard deviation over their confirm runs. "
    "Lines: means of the uniform gate and of the vanilla model."
)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One panel: its title and what draws it."""

    title: str
    draw: Callable[[Axes], None]


def responses(material: Material) -> Iterator[Picture]:
    """For each of :data:`SETTINGS` the panels that the records allow."""
    for key in SETTINGS:
        found = (
            (
                f"response-{key}",
                SEARCH_CAPTION,
                [_search_panel(material, cell, key) for cell in _searching(material, key)],
            ),
            (
                f"response-{key}-between-cells",
                CELLS_CAPTION,
                [_cells_panel(material, group, key) for group in between_cells(material, key)],
            ),
        )
        for name, caption, drawn in found:
            yield from _pictures(name, f"Response to {_TITLES[key]}", caption, key, drawn)


def _pictures(name: str, title: str, caption: str, key: str, drawn: Sequence[Panel]) -> Iterator[Picture]:
    for number, start in enumerate(range(0, len(drawn), MOST_PANELS), start=1):
        part = drawn[start : start + MOST_PANELS]
        figure, axes = panels([panel.title for panel in part])
        for panel, place in zip(part, axes, strict=True):
            panel.draw(place)
            place.set_xlabel(SETTINGS[key])
        legend(figure, axes)
        part_name = in_parts(name, number, -(-len(drawn) // MOST_PANELS))
        yield Picture(name=file_name(part_name), title=title, caption=caption, figure=figure)


def _searching(material: Material, key: str) -> list[DrawnCell]:
    return [cell for cell in material.cells if len({str(trial.settings[key]) for trial in _finished(cell, key)}) > 1]


def _finished(cell: DrawnCell, key: str) -> list[DrawnTrial]:
    return [trial for trial in cell.search if trial.finished and trial.settings.get(key) is not None]


def between_cells(material: Material, key: str) -> list[list[DrawnCell]]:
    """Groups of gated cells with a number, of two or more values of ``key``, that are alike in everything else."""
    groups: dict[tuple[object, ...], list[DrawnCell]] = {}
    for cell in material.cells:
        chosen = cell.entry.summary.chosen
        is_drawn = cell.entry.summary.test is not None and getattr(cell.cell, key) is not None
        if is_drawn and (key == "budget" or chosen.gate == "bilateral"):
            groups.setdefault(_alike(cell, key), []).append(cell)
    return [group for group in groups.values() if len({getattr(cell.cell, key) for cell in group}) > 1]


def _alike(cell: DrawnCell, key: str) -> tuple[object, ...]:
    plan = cell.cell
    names = {"layers", "budget", "hidden_dim", "placement", "num_clusters", "sigma_m", "unsupervised_weight"} - {key}
    if key == "budget":  # depth and, where it is given, K go with the budget
        names -= {"layers", "num_clusters"}
    return (plan.dataset, plan.backbone, plan.gate, plan.departures, *(getattr(plan, name) for name in sorted(names)))


def _search_panel(material: Material, cell: DrawnCell, key: str) -> Panel:
    def draw(axes: Axes) -> None:
        scale = in_units(cell.cell.metric, 1.0)
        ended = [trial for trial in cell.search if _is_drawn(trial, key)]
        places = _places([trial.settings[key] for trial in ended])
        for finished, style in ((False, (PRUNED, "x", "stopped early")), (True, (STYLES[1][0], "o", "to the end"))):
            shown = [trial for trial in ended if trial.finished == finished]
            colour, marker, name = style
            axes.plot(
                [places[trial.settings[key]] for trial in shown],
                [scale * (trial.val_metric or 0.0) for trial in shown],
                color=colour,
                marker=marker,
                linestyle="none",
                label=name if shown else None,
                rasterized=len(shown) > 2000,
            )
        _baselines(axes, material, cell, lambda other: other.best, scale)
        _scale_axis(axes, key, places)
        axes.set_ylabel(metric_label(cell.cell.metric, cell.cell.direction, "Validation"))

    return Panel(title=cell.name, draw=draw)


def _is_drawn(trial: DrawnTrial, key: str) -> bool:
    return trial.settings.get(key) is not None and (
        trial.finished or (trial.status == "pruned" and trial.val_metric is not None)
    )


def _cells_panel(material: Material, group: Sequence[DrawnCell], key: str) -> Panel:
    def draw(axes: Axes) -> None:
        scale = in_units(group[0].cell.metric, 1.0)
        places = _places([getattr(cell.cell, key) for cell in group])
        drawn = sorted(group, key=lambda cell: places[getattr(cell.cell, key)])
        spreads = [cell.entry.summary.test for cell in drawn]
        axes.errorbar(
            [places[getattr(cell.cell, key)] for cell in drawn],
            [scale * spread.mean for spread in spreads if spread],
            yerr=[scale * spread.std for spread in spreads if spread],
            color=STYLES[1][0],
            marker="o",
            linestyle="-" if key != "placement" else "none",
            capsize=2,
            label="mean ± std",
        )
        if key != "budget":
            _baselines(axes, material, group[0], _test_mean, scale)
        _scale_axis(axes, key, places)
        axes.set_ylabel(metric_label(group[0].cell.metric, group[0].cell.direction, "Test"))

    title = group[0].name if key != "budget" else f"{group[0].cell.dataset_title} {group[0].label}"
    return Panel(title=title, draw=draw)


def _test_mean(cell: DrawnCell) -> float | None:
    return cell.entry.summary.test.mean if cell.entry.summary.test else None


def _baselines(
    axes: Axes, material: Material, cell: DrawnCell, value: Callable[[DrawnCell], float | None], scale: float
) -> None:
    others = (("uniform gate", material.uniform_twin(cell), 2), ("vanilla", material.facing(cell), 0))
    for name, other, style in others:
        level = value(other) if other is not None else None
        if level is not None:
            axes.axhline(scale * level, color=STYLES[style][0], linestyle=STYLES[style][1], linewidth=0.9, label=name)


def _places(values: Sequence[float | str]) -> dict[float | str, float]:
    """Where values stand on the axis: numbers at themselves, words side by side."""
    if all(isinstance(value, int | float) for value in values):
        return {value: float(value) for value in values}
    return {value: float(place) for place, value in enumerate(dict.fromkeys(sorted(values, key=str)))}


def _scale_axis(axes: Axes, key: str, places: Mapping[float | str, float]) -> None:
    if any(isinstance(value, str) for value in places):
        axes.set_xticks(list(places.values()), [drawable(str(value)) for value in places], rotation=20)
        axes.set_xlim(-0.5, len(places) - 0.5)
    elif key in LOGARITHMIC and min(places.values(), default=0.0) > 0:
        axes.set_xscale("log")
