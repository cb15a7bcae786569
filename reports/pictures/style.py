"""How every picture looks: letters, colours, lines and markers, panels, units."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from reports.words.prose import METRIC_NAMES
from reports.words.units import PER_CENT

# Okabe and Ito's colours, which readers with any colour vision can tell apart; lines and markers differ too.
STYLES: tuple[tuple[str, object, str], ...] = (
    ("#D55E00", "--", "s"),
    ("#0072B2", "-", "o"),
    ("#009E73", "-.", "^"),
    ("#CC79A7", ":", "D"),
    ("#56B4E9", (0, (5, 1)), "v"),
    ("#E69F00", (0, (3, 1, 1, 1)), "P"),
    ("#000000", (0, (1, 1)), "X"),
)
"""Colour, line and marker, one after the other."""

VANILLA, BILATERAL, UNIFORM = STYLES[:3]
PRUNED = "#888888"

WIDTHS = {1: 3.4, 2: 5.2, 3: 7.0}
"""Of a picture in inches, by the panels side by side: a column, a narrow page and a page of a paper."""

PANEL_HEIGHT = 1.95
COLUMNS = 3
MOST_PANELS = 12
"""Of a picture; more become further pictures."""

MANY_POINTS = 2000
"""Of one kind in one panel, from which they are pixels in the vector files too."""

_RC: dict[Any, Any] = {
    "svg.hashsalt": "bimp",
    "pdf.fonttype": 42,
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_DECADES_WITH_PARTS = 2.0
_LINE = 0.13
"""Of a title or a legend, in inches."""
_MARGIN = 0.03
"""Between a title and the edge of the picture, in inches."""

_FEW_VALUES = 5
_SHORT_TEXT = 5
"""Letters of a tick that leaves room for another at :data:`_APART`: a value that a person gave, not one sampled."""
_TWO_ROUND_NUMBERS = 5.0
"""Between a number and this many times as much are two of 1, 2, 5, 10, ..., wherever it begins."""
_OPAQUE = 100
_APART = 0.15
"""Of two ticks with a text each, as a share of the axis."""


@dataclass(frozen=True, kw_only=True)
class Styles:
    """The style of each name, the same in every picture of a study: vanilla, bi and uniform have their own."""

    names: tuple[str, ...]

    def __getitem__(self, name: str) -> tuple[str, object, str]:
        own = {"vanilla": VANILLA, "bi": BILATERAL, "uniform": UNIFORM}
        if name in own:
            return own[name]
        # A colour that comes again comes with another line.
        others = STYLES[len(own) :]
        turn, place = divmod([other for other in self.names if other not in own].index(name), len(others))
        colour, _, marker = others[place]
        return colour, others[(place + turn) % len(others)][1], marker


def styled() -> AbstractContextManager[None]:
    """Within it, what is made looks as every picture does."""
    return mpl.rc_context(_RC)


def panels(
    titles: Sequence[str],
    columns: int = COLUMNS,
    height: float = PANEL_HEIGHT,
    align: Literal["center", "right"] = "center",
) -> tuple[Figure, list[Axes]]:
    """A figure with one panel for each of ``titles``, at most ``columns`` side by side.

    Args:
        titles: of the panels.
        columns: panels of a row, at most.
        height: of a row in inches, with a title of one line.
        align: where titles stand; those to the right may reach over the labels on the left.
    """
    # Four stand as two by two, rather than one below three.
    columns = 2 if len(titles) == 4 else min(columns, len(titles))
    shown = [wrapped(title) for title in titles]
    rows = [shown[start : start + columns] for start in range(0, len(shown), columns)]
    further_lines = sum(max(title.count("\n") for title in row) for row in rows)
    with styled():
        size = (WIDTHS[columns], height * len(rows) + _LINE * further_lines + 0.4)
        figure = Figure(figsize=size, layout="constrained")
        axes = [figure.add_subplot(len(rows), columns, place + 1) for place in range(len(titles))]
        for panel, title in zip(axes, shown, strict=True):
            panel.set_title(title, loc=align)
    return figure, axes


def settled(figure: Figure) -> Figure:
    """``figure`` with its layout worked out once, so that every file of it, in whatever order, has the same."""
    with styled():
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for panel in figure.axes:
            # The layout makes no room for titles: that of a panel at the edge would lose its end, such as a depth.
            beyond = panel.title.get_window_extent().x1 + _MARGIN * figure.dpi - figure.bbox.x1
            if beyond > 0:
                panel.title.set_x(panel.title.get_position()[0] - beyond / panel.bbox.width)
    return figure


def drawable(text: str) -> str:
    """``text`` as a picture can show it: no formula, and letters that the font lacks as their code point."""
    return _known(text).replace("$", r"\$")


def wrapped(title: str, width: int = 29) -> str:
    """``title`` as a picture can show it, in lines that keep it apart from its neighbours'; a size is not parted."""
    kept = re.sub(r" (?=L\d+\b)", "\N{NO-BREAK SPACE}", _known(title))
    return "\n".join(textwrap.wrap(kept, width, break_on_hyphens=False)).replace("$", r"\$")


def _known(text: str) -> str:
    letters = _letters()
    return "".join(letter if ord(letter) in letters else f"[U+{ord(letter):04X}]" for letter in text)


@cache
def _letters() -> frozenset[int]:
    return frozenset(get_font(findfont(_RC["font.family"])).get_charmap())


def legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend above all panels, each name once."""
    found: dict[str, Artist] = {}
    for panel in axes:
        for handle, name in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    if found:
        names = [wrapped(name, 60) for name in found]
        longest = max(len(line) for name in names for line in name.split("\n"))
        columns = max(1, min(len(found), int(figure.get_figwidth() * 16 // (longest + 7))))
        # A column of the legend is filled before the next; the panels keep their height below the fullest.
        rows = -(-len(names) // columns)
        lines = max(
            sum(1 + name.count("\n") for name in names[start : start + rows]) for start in range(0, len(names), rows)
        )
        figure.set_figheight(figure.get_figheight() + _LINE * 1.15 * (lines - 1))
        with styled():
            drawn = figure.legend(list(found.values()), names, loc="outside upper center", ncols=columns)
        for drawn_handle in drawn.legend_handles:
            # What is faint among thousands is not so by itself.
            if isinstance(drawn_handle, Line2D):
                drawn_handle.set_alpha(1.0)


def metric_label(metric: str, direction: str, split: str) -> str:
    """An axis label such as ``Validation ACC (%)`` over ``higher is better``."""
    unit = " (%)" if metric in PER_CENT else ""
    return f"{split} {METRIC_NAMES[metric]}{unit}\n{'lower' if direction == 'min' else 'higher'} is better"


def opacity(count: int) -> float:
    """Of each of ``count`` points or lines, so that many show where they are dense."""
    return 1.0 if count <= _OPAQUE else max(0.08, (_OPAQUE / count) ** 0.5)


def whole_numbers(axes: Axes) -> None:
    """Ticks of the x-axis at whole numbers."""
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))


def logarithmic(axes: Axes, values: Iterable[float], text: Callable[[float], str] = "{:g}".format) -> None:
    """A logarithmic x-axis for positive ``values``, whose ticks read as ``text`` and do not touch."""
    values = sorted(set(values))
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    are_short = all(len(text(value)) <= _SHORT_TEXT for value in values)
    parts = (1.0, 2.0, 5.0) if values[-1] / values[0] < 10**_DECADES_WITH_PARTS else (1.0,)
    if are_short and len(values) <= _FEW_VALUES:
        axes.xaxis.set_major_locator(FixedLocator(readable_ticks(values)))
    elif values[-1] / values[0] >= _TWO_ROUND_NUMBERS:
        axes.xaxis.set_major_locator(LogLocator(subs=parts))
    else:
        # Sampled values so near to each other that there may be no round number among them.
        axes.xaxis.set_major_locator(FixedLocator([values[0], values[-1]]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))


def readable_ticks(values: Sequence[float]) -> list[float]:
    """Of ascending positive ``values`` the first, the last and those between whose texts have room beside them."""
    least = (values[-1] / values[0]) ** _APART
    kept = [values[0]]
    for value in values[1:-1]:
        if value / kept[-1] >= least and values[-1] / value >= least:
            kept.append(value)
    return kept if len(values) == 1 else [*kept, values[-1]]


def file_name(*parts: str) -> str:
    """A name for files out of words of any kind."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(parts))
