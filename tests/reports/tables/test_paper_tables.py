"""The paper's tables printed back: every number and mark as in its source, and what survives a correction."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from aggregate_command import aggregate
from printed_numbers import printed_datasets, printed_rows, shipped_datasets, shipped_rows

from reports.grid import Grid, render_fragment, render_html, render_markdown
from reports.layout.layout_file import AnyLayout, Layout
from reports.layout.layout_reader import find_layouts, shipped_layouts
from reports.published.rows import PAPER_TABLES, paper_rows
from reports.tables.paper_tables import paper_tables, significant_rows, write_paper_tables

Printed = tuple[str, ...]


def printed(layouts: Sequence[AnyLayout]) -> tuple[Grid, ...]:
    """The grids of layouts that all fit."""
    grids, unfit = paper_tables(layouts)
    assert unfit == ()
    return grids


def written_rows() -> Iterator[Printed]:
    """Every model of the LaTeX that we write, in the shape of ``printed_numbers.printed_rows``, cell by cell."""
    layouts = find_layouts(list(shipped_layouts()))
    for layout, grid in zip(layouts, printed(layouts), strict=True):
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
    grids = printed(find_layouts(["datasets", "small_datasets"]))
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
    medium, small = printed(find_layouts(["datasets", "small_datasets"]))
    text = render_markdown(medium)
    assert "| Graph regression | ZINC | 12k | 23.16 | 49.83 | Atom type (28) | Bond type (4) |" in text
    assert "| Node classification | CLUSTER | 12k | 117.20 | 4301.72 | Attributes (7) | - |" in text
    assert len(medium.sections[0].rows) == 5
    assert [row[0] for row in small.sections[0].rows] == [("DD",), ("ENZYMES",), ("PROTEINS",)]
    assert "| DD | 1178 | 284.32 | 715.66 | Node labels (89) | - |" in render_markdown(small)


def test_the_placement_table_names_its_models_once() -> None:
    (grid,) = printed(find_layouts(["placement"]))
    half = ("L", "Params", "Test MAE", "Train MAE", "Epochs")
    assert [section.heads for section in grid.sections] == [("Model", *half, *half)]
    row = next(line for line in render_markdown(grid).splitlines() if "dense" in line)
    assert row == (
        "| *dense*-GatedGCN | 4 | 128671 | **0.369 ± 0.025** | 0.204 ± 0.031 | 205 "
        "| 16 | 616419 | **0.210 ± 0.013** | 0.064 ± 0.012 | 189.75 |"
    )


def test_what_is_known_of_printed_rows_stands_below_them() -> None:
    level, small = printed(find_layouts(["graph_level", "small"]))
    assert render_markdown(level).endswith(
        "Of the printed rows:\n\n- ZINC GatedGCN L16: the leaderboard's GatedGCN-PE: 0.214 ± 0.006\n"
        "- SMNIST: Params of SMNIST are printed rotated by 180 degrees\n"
    )
    assert "Of the printed rows" not in render_markdown(small)


def test_red_is_seen_in_html() -> None:
    (grid,) = printed(find_layouts(["graph_level"]))
    assert '<b class="best">0.166 ± 0.009</b>' in render_html(grid)


def test_the_command_writes_all_of_them(tmp_path: Path) -> None:
    done = aggregate("tables", "--published", "--out", tmp_path)
    assert done.exit_code == 0
    names = {path.stem for path in tmp_path.glob("*.csv")}
    assert names == {*PAPER_TABLES, "datasets", "small_datasets"}
    assert all((tmp_path / f"{name}{end}").is_file() for name in names for end in (".tex", "_standalone.tex", ".html"))


OF_OWN = """\
name: {name}
title: Own
{key}
blocks: [{{dataset: {dataset}, sections: [[{{backbone: gcn, placement: none, departures: {{}}}}]]}}]
"""


def of_own(folder: Path, name: str, key: str, dataset: str) -> str:
    path = folder / f"{name}.yaml"
    path.write_text(OF_OWN.format(name=name, key=key, dataset=dataset), encoding="utf-8")
    return str(path)


def test_layouts_without_printed_rows_are_named_and_the_others_are_made(tmp_path: Path) -> None:
    nameless = of_own(tmp_path, "nameless", "", "zinc")
    empty = of_own(tmp_path, "empty", "published: small", "zinc")
    wanted = [nameless, "graph_level", empty, "datasets"]
    out = tmp_path / "out"
    layouts = [part for name in wanted for part in ("--layout", name)]
    done = aggregate("tables", "--published", *layouts, "--bold", "significant", "--out", out)
    assert done.exit_code == 0
    assert {path.stem for path in out.glob("*.csv")} == {"graph_level", "datasets"}
    first, second = done.stderr.splitlines()
    assert first == (
        "left out of the paper's own tables: layout nameless: published: found nothing, "
        "expected the table whose printed numbers stand in it"
    )
    assert second.startswith("left out of the paper's own tables: layout empty: none of the results has a place in it")
    text = (out / "graph_level.md").read_text(encoding="utf-8")
    # The 16 gated rows of Table 2: those of Table S3, which is not printed, are not corrected for.
    assert "Holm's correction over the 16 comparisons printed together" in text


def test_where_no_layout_has_printed_rows_nothing_is_made(tmp_path: Path) -> None:
    layouts = [of_own(tmp_path, "nameless", "", "zinc"), of_own(tmp_path, "empty", "published: small", "zinc")]
    arguments = ["tables", "--published", "--layout", layouts[0], "--layout", layouts[1], "--out", str(tmp_path / "o")]
    done = aggregate(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: layout nameless: published: found nothing")
    assert "; layout empty: none of the results has a place" in line
    assert not (tmp_path / "o").exists()
