"""A finished picture, and how it becomes files: the same values give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from matplotlib.figure import Figure

from reports.pictures.style import MOST_PANELS, WIDTHS, file_name, settled, styled
from reports.words.latex_text import escape

Item = TypeVar("Item")

DOTS_PER_INCH = 200
NAMED = 3
"""Cells that a reason names; of more it gives the number."""

_METADATA: Mapping[str, dict[str, str | None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


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
            self.figure.savefig(stream, format=kind, dpi=DOTS_PER_INCH, metadata=_METADATA[kind])
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
        # At its own size the letters are those of a paper; only a column that is too narrow shrinks it.
        width = f"{self.figure.get_figwidth():.1f}in"
        # Of a page with two columns the starred one takes both; of one column they are the same.
        kind = "figure" if self.figure.get_figwidth() <= WIDTHS[1] else "figure*"
        size = rf"\ifdim\linewidth<{width}\linewidth\else{width}\fi"
        lines = [
            r"% Needs \usepackage{graphicx}, and the PDF where LaTeX looks for graphics.",
            rf"\begin{{{kind}}}",
            r"\centering",
            rf"\includegraphics[width={size}]{{{self.name}.pdf}}",
            rf"\caption{{{escape(self.caption)}}}",
            rf"\label{{fig:{self.name}}}",
            rf"\end{{{kind}}}",
        ]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """Pictures, and a line for each that the records do not allow, or that lacks a cell: which, and why."""

    pictures: tuple[Picture, ...]
    skipped: tuple[str, ...]

    @staticmethod
    def together(parts: Sequence[Drawn]) -> Drawn:
        """All of ``parts``, in their order."""
        return Drawn(
            pictures=tuple(picture for part in parts for picture in part.pictures),
            skipped=tuple(line for part in parts for line in part.skipped),
        )


def in_pictures(
    name: str, title: str, caption: str, items: Sequence[Item], draw: Callable[[Sequence[Item]], Figure]
) -> tuple[Picture, ...]:
    """``items``, a panel each, as one picture, or as several that are numbered where one would be crowded."""
    parts = [items[start : start + MOST_PANELS] for start in range(0, len(items), MOST_PANELS)]
    return tuple(
        Picture(
            name=file_name(name if len(parts) == 1 else f"{name}-{number}"),
            title=title if len(parts) == 1 else f"{title} ({number} of {len(parts)})",
            caption=caption,
            figure=settled(draw(part)),
        )
        for number, part in enumerate(parts, start=1)
    )


def left_out(kind: str, names: Sequence[str], reason: str) -> tuple[str, ...]:
    """The line that says which cells a picture lacks, and why; none where it lacks none."""
    if not names:
        return ()
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return (f"{kind}: {', '.join(names[:NAMED])}{more}: {reason}",)
