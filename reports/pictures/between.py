"""How the test metric differs between cells that are alike in all but sigma_m, K, the gate's place or the budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.evidence.study_facts import cell_name
from reports.pictures.material import DrawnCell, Material
from reports.pictures.names import backbone_name, panel_title
from reports.pictures.picture import Drawn, in_pictures, left_out
from reports.pictures.response import SETTINGS, SPOKEN, draw_baselines, places_of, scale_axis
from reports.pictures.style import BILATERAL, UNIFORM, legend, metric_label, panels
from reports.words.plain_text import plain
from reports.words.units import scale_of

Item = TypeVar("Item")

CAPTION = (
    "Test metric of bilateral cells that differ in this alone: mean and population standard deviation over their "
    "confirm runs; hollow where runs are missing. Lines: the uniform gate and the vanilla model."
)
OWN_CONTROLS = " Where it differs in this too, the uniform gate is drawn as the bilateral cells are."
BUDGET_CAPTION = (
    "Test metric by parameter budget, a line for each model: mean and population standard deviation over the confirm "
    "runs; hollow where runs are missing. Depth and, where it is given, K go with the budget, unless models of one "
    "budget differ in them: then a line is of one K, or of one depth."
)
_FIXED = (
    *("dataset", "backbone", "gate", "semantics", "departures"),
    *("pos_enc_dim", "unsupervised_weight", "hidden_dim"),
)
_OF_EVERY_SIZE = ("precision", "readout")
"""Other settings that do not go with depth, as batch sizes do in the paper's protocols."""
_PARTED_BY = (
    (),
    ("num_clusters",),
    ("layers",),
    ("num_clusters", "layers"),
    ("num_clusters", "layers", "other_settings"),
)
"""What parts cells of one budget, the first that leaves no two of them in one line."""
_VARIED = ("sigma_m", "num_clusters", "placement", "budget", "layers")

Series = Sequence[DrawnCell]
"""Cells that differ in one setting alone, ascending in it."""


def between_cells(material: Material) -> Drawn:
    """A picture of each setting in which cells differ alone."""
    return Drawn.together(
        [*(_of_gate(material, key) for key in ("sigma_m", "num_clusters", "placement")), _of_budget(material)]
    )


def series_of(cells: Sequence[DrawnCell], key: str) -> tuple[list[Series], list[str]]:
    """Of ``cells`` those that differ in ``key`` alone, each series with two values or more; then the names without.

    A cell without a test metric is left out, and so is what it leaves alone.
    """
    # Deeper models and other K belong to a larger budget in the paper, too.
    alike = set(_VARIED) - ({"budget", "layers", "num_clusters"} if key == "budget" else {key})
    groups: dict[tuple[object, ...], list[DrawnCell]] = {}
    for cell in cells:
        same = (*(getattr(cell.cell, name) for name in (*_FIXED, *sorted(alike))), _other_settings(cell, key))
        if getattr(cell.cell, key) is not None:
            groups.setdefault(same, []).append(cell)
    planned = [part for group in groups.values() for part in _parted(group, key) if _differ(part, key)]
    found = [[cell for cell in group if cell.entry.summary.test is not None] for group in planned]
    lacking = [cell.name for group in planned for cell in group if cell.entry.summary.test is None]
    return [_ascending(group, key) for group in found if _differ(group, key)], lacking


def _parted(cells: Series, key: str) -> list[list[DrawnCell]]:
    """``cells`` in series of which none holds two of one value: what differs there does not go with ``key``."""
    parts: list[list[DrawnCell]] = []
    for names in _PARTED_BY:
        found: dict[tuple[object, ...], list[DrawnCell]] = {}
        for cell in cells:
            found.setdefault(tuple(getattr(cell.cell, name) for name in names), []).append(cell)
        parts = list(found.values())
        if all(len({getattr(cell.cell, key) for cell in part}) == len(part) for part in parts):
            break
    return parts


def _other_settings(cell: DrawnCell, key: str) -> tuple[tuple[str, str], ...]:
    settings = cell.cell.other_settings or ()
    return settings if key != "budget" else tuple(pair for pair in settings if pair[0] in _OF_EVERY_SIZE)


def _differ(cells: Series, key: str) -> bool:
    return len({getattr(cell.cell, key) for cell in cells}) > 1


def _ascending(cells: Series, key: str) -> Series:
    places = places_of([getattr(cell.cell, key) for cell in cells], key)
    return sorted(cells, key=lambda cell: places[getattr(cell.cell, key)])


def _of_gate(material: Material, key: str) -> Drawn:
    found, lacking = series_of([cell for cell in material.cells if cell.gate == "bilateral"], key)

    def draw(part: Sequence[Series]) -> Figure:
        figure, axes = panels([_title(series, key) for series in part])
        for series, panel in zip(part, axes, strict=True):
            places = places_of([getattr(cell.cell, key) for cell in series], key)
            controls = _own_controls(material, series)
            _draw_series(panel, series, key, BILATERAL, "mean ± std", places)
            if controls:
                _draw_series(panel, controls, key, UNIFORM, "uniform gate", places)
            scale = scale_of(series[0].cell.metric)
            draw_baselines(panel, material, series[0], _test_mean, scale, with_uniform=controls is None)
            _finish(panel, series, key)
        legend(figure, axes)
        return figure

    own = any(_own_controls(material, series) for series in found)
    return _drawn(key, CAPTION + (OWN_CONTROLS if own else ""), found, lacking, draw)


def _own_controls(material: Material, series: Series) -> Series | None:
    """The uniform twins of the cells, those with a test metric; None where all cells have the same one, or none."""
    twins = [material.uniform_twin(cell) for cell in series]
    if len({None if twin is None else twin.cell.id for twin in twins}) == 1:
        return None
    return [twin for twin in twins if twin is not None and twin.entry.summary.test is not None]


def _of_budget(material: Material) -> Drawn:
    found, lacking = series_of(material.cells, "budget")
    groups = _panels_of_budget(found)

    def draw(part: Sequence[list[Series]]) -> Figure:
        figure, axes = panels([_title([cell for series in group for cell in series], "budget") for group in part])
        for group, panel in zip(part, axes, strict=True):
            for series in group:
                style, name = material.styles[series[0].names.arm], material.legend_name(series[0])
                places = places_of([cell.cell.budget or 0 for cell in series], "budget")
                _draw_series(panel, series, "budget", style, name, places)
            _finish(panel, [cell for series in group for cell in series], "budget")
        legend(figure, axes)
        return figure

    return _drawn("budget", BUDGET_CAPTION, groups, lacking, draw)


def _panels_of_budget(found: Sequence[Series]) -> list[list[Series]]:
    """The series of each dataset and backbone; of each depth, where two series of an arm differ in that."""
    arms = [(series[0].cell.dataset, series[0].cell.backbone, series[0].names.arm) for series in found]
    groups: dict[tuple[object, ...], list[Series]] = {}
    for series, (dataset, backbone, _) in zip(found, arms, strict=True):
        here = [arm for arm in arms if arm[:2] == (dataset, backbone)]
        depth = _depth(series) if len(set(here)) < len(here) else None
        groups.setdefault((dataset, backbone, depth), []).append(series)
    return list(groups.values())


def _depth(series: Series) -> int | None:
    """The planned depth that all cells have."""
    depths = {cell.cell.layers for cell in series}
    return depths.pop() if len(depths) == 1 else None


def _drawn(
    key: str, caption: str, found: Sequence[Item], lacking: Sequence[str], draw: Callable[[Sequence[Item]], Figure]
) -> Drawn:
    kind = f"response to {SPOKEN[key]} between cells"
    title = f"Response to {SPOKEN[key]} between cells"
    none = () if found or lacking else (f"{kind}: no two cells differ in it alone",)
    return Drawn(
        pictures=in_pictures(f"response-{key}-between-cells", title, caption, found, draw),
        skipped=(*none, *left_out(kind, lacking, "no confirm run has a test metric")),
    )


def _draw_series(
    axes: Axes,
    series: Series,
    key: str,
    style: tuple[str, object, str],
    name: str,
    places: Mapping[float | str, float],
) -> None:
    colour, line, marker = style
    scale = scale_of(series[0].cell.metric)
    spreads = [cell.entry.summary.test for cell in series]
    at = [places[getattr(cell.cell, key)] for cell in series]
    means = [scale * spread.mean for spread in spreads if spread]
    stds = [scale * (spread.std or 0.0) for spread in spreads if spread]
    linestyle: Any = "none" if key == "placement" else line
    axes.errorbar(at, means, yerr=stds, color=colour, marker=marker, linestyle=linestyle, capsize=2, label=name)
    for place, mean, cell in zip(at, means, series, strict=True):
        if not cell.entry.summary.complete:
            axes.plot([place], [mean], color=colour, marker=marker, markerfacecolor="white", zorder=3)


def _finish(axes: Axes, cells: Series, key: str) -> None:
    scale_axis(axes, key, places_of([getattr(cell.cell, key) for cell in cells], key))
    axes.set_xlabel(SETTINGS[key])
    axes.set_ylabel(metric_label(cells[0].cell.metric, cells[0].cell.direction, "Test"))


def _title(series: Series, key: str) -> str:
    cell = series[0].cell
    if key == "placement":
        return panel_title([cell])
    if key == "budget":
        return cell_name(cell.dataset_title, backbone_name(cell), None, None, _depth(series))
    others = tuple(detail for detail in series[0].names.details if detail.key != key)
    label = plain(replace(series[0].entry.label, details=others))
    return cell_name(cell.dataset_title, label, cell.budget, cell.hidden_dim, cell.layers)


def _test_mean(cell: DrawnCell) -> float | None:
    return cell.entry.summary.test.mean if cell.entry.summary.test else None
