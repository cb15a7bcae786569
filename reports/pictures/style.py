"""How every picture looks, and how it becomes a file: the same values give the same bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font

from reports.cells import PER_CENT
from reports.latex_text import escape
from reports.prose import METRIC_NAMES

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

PRUNED = "#888888"
PANEL_WIDTH, PANEL_HEIGHT = 2.5, 2.1
"""Of one panel, in inches: three side by side are a page's width."""

COLUMNS = 3
MOST_PANELS = 12
"""Of a picture; more become further pictures."""

_RC: dict[Any, Any] = {
    "svg.hashsalt": "bimp",
    "pdf.fonttype": 42,
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_METADATA: Mapping[str, dict[str, str | None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}
_DOTS_PER_INCH = 200


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A finished figure; ``name`` is that of its files, ``title`` and ``caption`` are plain text."""

    name: str
    title: str
    caption: str
    figure: Figure

    @property
    def svg(self) -> str:
        """The whole document."""
        return self.content("svg").decode("utf-8")

    def content(self, kind: str) -> bytes:
        """The figure as ``pdf``, ``svg`` or ``png``."""
        stream = io.BytesIO()
        with styled():
            self.figure.savefig(stream, format=kind, dpi=_DOTS_PER_INCH, metadata=_METADATA[kind])
        return stream.getvalue()

    def write(self, out: Path) -> tuple[Path, ...]:
        """Write the figure into the folder ``out``: PDF, SVG, PNG, its caption as text, and a LaTeX figure.

        Raises:
            OSError: ``out`` cannot be written.
        """
        out.mkdir(parents=True, exist_ok=True)
        paths = tuple(out / f"{self.name}.{kind}" for kind in _METADATA)
        for path in paths:
            path.write_bytes(self.content(path.suffix[1:]))
        text, latex = out / f"{self.name}.txt", out / f"{self.name}.tex"
        text.write_text(f"{self.caption}\n", encoding="utf-8", errors="replace", newline="\n")
        latex.write_text(self._latex(), encoding="ascii", newline="\n")
        return (*paths, text, latex)

    def _latex(self) -> str:
        lines = [
            r"% Needs \usepackage{graphicx}, and the PDF where LaTeX looks for graphics.",
            r"\begin{figure}",
            r"\centering",
            rf"\includegraphics[width=\linewidth]{{{self.name}.pdf}}",
            rf"\caption{{{escape(self.caption)}}}",
            rf"\label{{fig:{self.name}}}",
            r"\end{figure}",
        ]
        return "\n".join(lines) + "\n"


def styled() -> AbstractContextManager[None]:
    """Within it, what is made looks as every picture does."""
    return mpl.rc_context(_RC)


def panels(titles: Sequence[str]) -> tuple[Figure, list[Axes]]:
    """A figure with one panel for each of ``titles``, at most :data:`COLUMNS` side by side."""
    columns = min(COLUMNS, len(titles))
    rows = -(-len(titles) // columns)
    with styled():
        size = (max(PANEL_WIDTH * columns, 3.4) + 0.3, PANEL_HEIGHT * rows + 0.5)
        figure = Figure(figsize=size, layout="constrained")
        axes = [figure.add_subplot(rows, columns, place + 1) for place in range(len(titles))]
        for panel, title in zip(axes, titles, strict=True):
            panel.set_title(wrapped(drawable(title)))
    return figure, axes


def drawable(text: str) -> str:
    """``text`` as a picture can show it: no formula, and letters that the font lacks as their code point."""
    letters = _letters()
    shown = (letter if ord(letter) in letters or letter == "\n" else f"[U+{ord(letter):04X}]" for letter in text)
    return "".join(shown).replace("$", r"\$")


@cache
def _letters() -> frozenset[int]:
    return frozenset(get_font(findfont(_RC["font.family"])).get_charmap())


def wrapped(title: str, width: int = 34) -> str:
    """``title`` broken into lines between words, so that neighbouring panels keep theirs apart."""
    lines = [""]
    for word in title.split():
        longer = f"{lines[-1]} {word}".strip()
        if len(longer) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return "\n".join(lines)


def legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend above all panels, each name once."""
    found: dict[str, Artist] = {}
    for panel in axes:
        for handle, name in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    if found:
        with styled():
            longest = max(map(len, found))
            columns = max(1, min(len(found), int(figure.get_figwidth() * 14 // (longest + 6))))
            names = [drawable(name) for name in found]
            figure.legend(list(found.values()), names, loc="outside upper center", ncols=columns)


def metric_label(metric: str, direction: str, split: str) -> str:
    """An axis label such as ``Validation ACC (%, higher is better)``."""
    unit = "%, " if metric in PER_CENT else ""
    return f"{split} {METRIC_NAMES[metric]} ({unit}{'lower' if direction == 'min' else 'higher'} is better)"


def in_units(metric: str, value: float) -> float:
    """A metric of a record in the unit of its axis."""
    return 100.0 * value if metric in PER_CENT else value


def file_name(*parts: str) -> str:
    """A name for files out of words of any kind."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(parts))


def in_parts(name: str, number: int, count: int) -> str:
    """The name of picture ``number``, from 1, of ``count`` that share a subject."""
    return name if count == 1 else f"{name}-{number}"
