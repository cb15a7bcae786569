"""The table of datasets: every number from a manifest written by hand, beside the paper's."""

from __future__ import annotations

import csv
import shutil
import subprocess
from io import StringIO
from pathlib import Path

import pytest
from aggregate_command import WITHOUT, aggregate, aggregate_process
from made_datasets import CLUSTER, DIGITS, ENZYMES, ZINC, prepared

from reports.grid import render_csv, render_fragment, render_markdown
from reports.records.plan import ResultsError
from reports.tables.dataset_statistics import NOTHING, dataset_rows, read_prepared, statistics_grid, write_statistics


def test_values_stand_beside_the_papers_in_its_order(tmp_path: Path) -> None:
    data = prepared(tmp_path, enzymes=ENZYMES, digits=DIGITS, zinc=ZINC, cluster=CLUSTER)
    rows = dataset_rows(read_prepared(data))
    assert [row.title for row in rows] == [
        *("ZINC", "SMNIST", "CIFAR10", "TSP", "CLUSTER", "DD", "ENZYMES", "PROTEINS", "Digits")
    ]
    by_title = {row.title: row for row in rows}
    assert by_title["ZINC"].cells == (
        *("Graph regression", "ZINC", "12,000", "12k", "23.16", "23.16", "49.83", "49.83"),
        *("atom type (28)", "Atom type (28)", "bond type (4)", "Bond type (4)"),
    )
    assert by_title["ENZYMES"].cells[6:8] == ("62.14", "62.14")
    assert by_title["TSP"].cells == (
        *("Edge prediction", "TSP", NOTHING, "12k", NOTHING, "275.76", NOTHING, "6,894.04"),
        *(NOTHING, "Coordinates (2)", NOTHING, "Distance (1)"),
    )
    assert by_title["Digits"].cells[:4] == ("Graph classification", "Digits", "1,797", NOTHING)


def test_what_differs_is_said(tmp_path: Path) -> None:
    rows = {row.title: row for row in dataset_rows(read_prepared(prepared(tmp_path, zinc=ZINC, cluster=CLUSTER)))}
    assert rows["ZINC"].departures == ()
    assert rows["CLUSTER"].departures == (
        *("graphs 120, not 12,000", "nodes 116.50, not 117.20", "edges 4,267.10, not 4,301.72"),
    )


def test_markdown_has_the_notes(tmp_path: Path) -> None:
    text = render_markdown(statistics_grid(dataset_rows(read_prepared(prepared(tmp_path, zinc=ZINC, digits=DIGITS)))))
    assert "\n| Graph regression | ZINC | 12,000 | 12k | 23.16 | 23.16 | 49.83 | 49.83 | atom type (28) |" in text
    assert r"ink\_and\_place (18)" in text
    assert "\nZINC: made for zinc; fingerprint 00ff.\n" in text
    assert text.endswith("\nNot prepared here: SMNIST, CIFAR10, TSP, CLUSTER, DD, ENZYMES, PROTEINS.\n")


def test_latex_compiles(tmp_path: Path) -> None:
    rows = dataset_rows(read_prepared(prepared(tmp_path, zinc=ZINC, digits=DIGITS, cluster=CLUSTER)))
    text = render_fragment(statistics_grid(rows))
    assert text.isascii()
    assert r"Graph regression & ZINC & 12,000 & 12k & 23.16 & 23.16 & 49.83 & 49.83 &" in text
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    document = tmp_path / "document.tex"
    packages = r"\usepackage{array}\usepackage{booktabs}\usepackage{graphicx}\usepackage{xcolor}"
    document.write_text(rf"\documentclass{{article}}{packages}\begin{{document}}{text}\end{{document}}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", document.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout


def test_the_csv_has_the_values_as_counted(tmp_path: Path) -> None:
    text = render_csv(statistics_grid(dataset_rows(read_prepared(prepared(tmp_path, zinc=ZINC)))))
    rows = {row["dataset"]: row for row in csv.DictReader(StringIO(text))}
    assert (rows["ZINC"]["nodes"], rows["ZINC"]["paper_nodes"], rows["ZINC"]["paper_graphs"]) == (
        *("23.1643", "23.16", "12000"),
    )
    assert (rows["TSP"]["nodes"], rows["TSP"]["paper_nodes"]) == ("", "275.76")


def test_the_command_writes_them_without_torch(tmp_path: Path) -> None:
    data = prepared(tmp_path / "data", zinc=ZINC)
    done = aggregate_process("tables", "--statistics", data, "--out", tmp_path / "out", code=WITHOUT)
    assert (done.returncode, done.stderr) == (0, "")
    names = ("statistics.tex", "statistics_standalone.tex", "statistics.md", "statistics.csv", "statistics.html")
    assert done.stdout == "".join(f"{tmp_path}/out/{name}\n" for name in names)
    assert (tmp_path / "out" / "statistics.md").read_text(encoding="utf-8").startswith("Datasets as they were prepared")


def test_the_command_needs_one_of_the_two() -> None:
    done = aggregate("tables")
    assert done.exit_code == 2
    assert done.stderr == (
        "error: found neither RESULTS nor --published nor --statistics DATA, expected one of them or more\n"
    )


def test_errors_name_the_file_and_the_mend(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=f"found no prepared dataset; run `.* NAME --data {tmp_path}` first"):
        write_statistics(tmp_path, tmp_path / "out")
    data = prepared(tmp_path, zinc={})
    with pytest.raises(ResultsError, match=f"holds no complete statistics .* prepare zinc --data {data} --force` with"):
        read_prepared(data)
    (data / "zinc" / "manifest.json").write_text("{", encoding="utf-8")
    with pytest.raises(ResultsError, match="not readable as JSON"):
        read_prepared(data)
