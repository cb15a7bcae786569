"""Tables of measurements, for the terminal and for docs/performance.md, which several benchmarks write in parts."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill

import torch
from rich.table import Table as RichTable

from bimp.kernels.processor import CPU_INFORMATION, described
from study.provenance import device_name, library_versions

WIDTH = 120
PERFORMANCE = Path(__file__).parent.parent / "docs" / "performance.md"
BENCHMARKS = ("step", "kernels", "batch_sizes", "node_data", "gpu_step", "seeds_together", "precision", "paper_cost")
PARTS = ("step", "machines", *BENCHMARKS[1:])
"""The parts of that page in their order, named by the benchmarks that write them; ``step`` writes ``machines`` too."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of text; the first ``labels`` columns name a row, the others hold numbers."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: int

    def with_remark(self, remark: str) -> Table:
        """The same with a sentence more in its note."""
        return replace(self, note=f"{self.note} {remark}")

    def for_terminal(self) -> RichTable:
        """As rich prints it."""
        table = RichTable(title=self.title, title_justify="left", caption=self.note, caption_justify="left")
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="left" if number < self.labels else "right", overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        return table

    def as_markdown(self, level: int = 2) -> str:
        """A section of a Markdown page, under a heading of this level."""
        rule = ["---" if number < self.labels else "---:" for number in range(len(self.columns))]
        lines = [_line(self.columns), _line(rule), *(_line(row) for row in self.rows)]
        return f"{'#' * level} {self.title}\n\n{_wrapped(self.note)}\n\n" + "\n".join(lines) + "\n"


def versions_of(*libraries: str) -> str:
    """What a measurement was made with: each library, or ``python``, and its version."""
    versions = library_versions()
    return ", ".join(f"{name} {versions[name]}" for name in libraries)


def processor(cpu_information: Path = CPU_INFORMATION) -> str:
    """Its name, and on Linux the numbers of its family and model: clouds call different processors the same."""
    found = described(cpu_information)
    name = device_name(torch.device("cpu"), cpu_information)
    if "cpu family" in found and "model" in found:
        return f"{name} (family {found['cpu family']}, model {found['model']})"
    return f"{name} ({platform.machine()})"


def place_of(device: torch.device) -> str:
    """On what something was measured: a GPU's name, or the :func:`processor`."""
    return device_name(device) if device.type == "cuda" else processor()


def on_one_thread(benchmark: str) -> str:
    """A paragraph: by which command something was measured on a thread of which processor, and with what."""
    return f"`python -m benchmarks.{benchmark}`, on {processor()} with {versions_of('python', 'torch')}, on one thread."


def as_page(introduction: Sequence[str], tables: Sequence[Table], title: str) -> str:
    """A whole page: paragraphs, then tables."""
    paragraphs = [f"{_wrapped(paragraph)}\n" for paragraph in introduction]
    return "\n".join([f"# {title}\n", *paragraphs, *(table.as_markdown() for table in tables)])


def write_part(part: str, title: str, introduction: Sequence[str], tables: Sequence[Table]) -> None:
    """Put a part of docs/performance.md in the place of what it said before; the other parts stay as they are.

    Raises:
        ValueError: ``part`` is none of :data:`PARTS`.
    """
    PERFORMANCE.write_text(with_part(PERFORMANCE.read_text("utf-8"), part, title, introduction, tables), "utf-8")


def with_part(page: str, part: str, title: str, introduction: Sequence[str], tables: Sequence[Table]) -> str:
    """The text of ``page`` with one part written anew.

    Raises:
        ValueError: ``part`` is none of :data:`PARTS`.
    """
    if part not in PARTS:
        raise ValueError(f"part: found {part!r}, expected one of {', '.join(PARTS)}")
    found = {name: text for name in PARTS if (text := _part(page, name)) is not None}
    paragraphs = [f"## {title}\n", *(f"{_wrapped(paragraph)}\n" for paragraph in introduction)]
    found[part] = "\n".join([*paragraphs, *(table.as_markdown(level=3) for table in tables)])
    named = ", ".join(f"`python -m benchmarks.{name}`" for name in BENCHMARKS)
    introduced = _wrapped(f"Written by `make bench`, part by part ({named}); do not edit.")
    written = [f"{_begins(name)}\n\n{found[name]}\n{_ends(name)}\n" for name in PARTS if name in found]
    return "\n".join(["# Performance\n", f"{introduced}\n", *written])


def _part(page: str, name: str) -> str | None:
    pattern = f"{re.escape(_begins(name))}\n\n(.*?)\n{re.escape(_ends(name))}"
    found = re.search(pattern, page, re.DOTALL)
    return None if found is None else found.group(1)


def _begins(name: str) -> str:
    return f"<!-- {name} -->"


def _ends(name: str) -> str:
    return f"<!-- end of {name} -->"


def _wrapped(text: str) -> str:
    return fill(text, WIDTH, break_on_hyphens=False)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
