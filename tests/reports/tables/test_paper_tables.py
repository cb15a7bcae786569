"""The paper's tables printed back: every number and mark as in its source, and what survives a correction."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from printed_numbers import printed_datasets, printed_rows, shipped_datasets, shipped_rows
from typer.testing import CliRunner

from aggregate import app
from reports.grid import render_fragment, render_html, render_markdown
from reports.layout.layout_file import Layout
from reports.layout.layout_reader import find_layouts, shipped_layouts
from reports.published.rows import PAPER_TABLES, paper_rows
from reports.tables.paper_tables import paper_tables, significant_rows, write_paper_tables

Printed = tuple[str, ...]


def written_rows() -> Iterator[Printed]:
    """Every model of the LaTeX that we write, in the shape of ``printed_numbers.printed_rows``, cell by cell."""
    layouts = find_layouts(list(shipped_layouts()))
    for layout, grid in zip(layouts, paper_tables(layouts), strict=True):
        if not isinstance(layout, Layout):
            continue
        dataset = "nothing"
        for line in render_fragment(grid).splitlines():
            heading = re.search(r"\\multicolumn\{\d+\}\{c\}\{(\w+)\}", line)
            dataset = heading.group(1) if heading else dataset
            if r"\pm" not in line or " & " not in line or r"\caption" in line:
                continue
            cells = [cell.strip() for cell in line.removesuffix(r"\\").split(" & ")]
            sides = (cells[:6], cells[6:]) if len(cells) == 12 else (cells[:6], [cells[0], *cells[6:]])
            for model, layers, params, test, train, epochs in sides:
                yield (
                    *(str(layout.published), dataset, re.sub(r"\\emph\{(\w+)\}", r"\1", model), layers, params),
                    *re.findall(r"\d+\.\d+", test),
                    "yes" if r"\textbf" in test else "no",
                    "yes" if r"\textcolor{red}" in test else "no",
                    *re.findall(r"\d+\.\d+", train),
                    epochs,
                )


def test_every_number_and_mark_is_as_shipped() -> None:
    written = list(written_rows())
    assert len(written) == 80
    assert sorted(written) == sorted(map(_plain, shipped_rows()))


def test_every_number_and_mark_is_as_in_the_papers_source() -> None:
    named = os.environ.get("BIMP_PAPER_TEX")
    if not named:
        pytest.skip("BIMP_PAPER_TEX names no LaTeX source of the paper")
    printed = list(printed_rows(Path(named).read_text(encoding="utf-8")))
    assert sorted(map(_plain, written_rows())) == sorted(map(_plain, printed))


def written_datasets() -> list[Printed]:
    grids = paper_tables(find_layouts(["datasets", "small_datasets"]))
    text = "".join(map(render_fragment, grids))
    return list(printed_datasets("\n".join(line for line in text.splitlines() if "(dim)" not in line)))


def test_every_number_of_the_datasets_is_as_shipped() -> None:
    assert len(written_datasets()) == 8
    assert written_datasets() == shipped_datasets()


def test_every_number_of_the_datasets_is_as_in_the_papers_source() -> None:
    named = os.environ.get("BIMP_PAPER_TEX")
    if not named:
        pytest.skip("BIMP_PAPER_TEX names no LaTeX source of the paper")
    assert written_datasets() == list(printed_datasets(Path(named).read_text(encoding="utf-8")))


def _plain(row: Printed) -> Printed:
    """Epochs without zeros at their end; everything else to the letter."""
    return (*row[:-1], f"{float(row[-1]):g}")


def test_eight_bold_cells_of_tables_2_and_3_survive_the_correction() -> None:
    survivors, comparisons = significant_rows(("graph_level", "node_edge_level"))
    assert comparisons == 24
    bold = [row for row in paper_rows() if row.table in ("graph_level", "node_edge_level") and row.bold]
    assert len(bold) == 21
    assert len(survivors) == 8
    assert survivors <= set(bold)


def test_bold_by_significance_counts_the_tables_that_are_printed_together(tmp_path: Path) -> None:
    write_paper_tables(tmp_path, find_layouts(["graph_level", "node_edge_level"]), "significant")
    marks = [
        row["mark"]
        for name in ("graph_level", "node_edge_level")
        for row in csv.DictReader((tmp_path / f"{name}.csv").open(encoding="utf-8"))
    ]
    assert (len(marks), marks.count("better"), marks.count("best")) == (48, 6, 2)  # two of the five red ones survive
    text = (tmp_path / "graph_level.md").read_text(encoding="utf-8")
    assert "below 0.05 after Holm's correction over the 24 comparisons printed together" in text


def test_datasets_are_printed_back() -> None:
    medium, small = paper_tables(find_layouts(["datasets", "small_datasets"]))
    text = render_markdown(medium)
    assert "| Graph regression | ZINC | 12k | 23.16 | 49.83 | Atom type (28) | Bond type (4) |" in text
    assert "| Node classification | CLUSTER | 12k | 117.20 | 4301.72 | Attributes (7) | - |" in text
    assert len(medium.sections[0].rows) == 5
    assert [row[0] for row in small.sections[0].rows] == [("DD",), ("ENZYMES",), ("PROTEINS",)]
    assert "| DD | 1178 | 284.32 | 715.66 | Node labels (89) | - |" in render_markdown(small)


def test_the_placement_table_names_its_models_once() -> None:
    (grid,) = paper_tables(find_layouts(["placement"]))
    half = ("L", "Params", "Test MAE", "Train MAE", "Epochs")
    assert [section.heads for section in grid.sections] == [("Model", *half, *half)]
    row = next(line for line in render_markdown(grid).splitlines() if "dense" in line)
    assert row == (
        "| *dense*-GatedGCN | 4 | 128671 | **0.369 ± 0.025** | 0.204 ± 0.031 | 205 "
        "| 16 | 616419 | **0.210 ± 0.013** | 0.064 ± 0.012 | 189.75 |"
    )


def test_red_is_seen_in_html() -> None:
    (grid,) = paper_tables(find_layouts(["graph_level"]))
    assert '<b class="best">0.166 ± 0.009</b>' in render_html(grid)


def test_the_command_writes_all_of_them(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["tables", "--published", "--out", str(tmp_path)])
    assert done.exit_code == 0
    names = {path.stem for path in tmp_path.glob("*.csv")}
    assert names == {*PAPER_TABLES, "datasets", "small_datasets"}
    assert all((tmp_path / f"{name}{end}").is_file() for name in names for end in (".tex", "_standalone.tex", ".html"))
