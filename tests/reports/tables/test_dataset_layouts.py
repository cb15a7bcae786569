"""The paper's tables of datasets in its shape: its own numbers (see test_paper_tables), or those of prepared data."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from aggregate_command import WITHOUT, aggregate_process
from made_datasets import DIGITS, ENZYMES, ZINC, prepared

from reports.layout.layout_file import DatasetLayout
from reports.layout.layout_reader import find_layouts
from reports.records.plan import ResultsError
from reports.tables.dataset_tables import write_prepared_datasets


def layouts(*names: str) -> list[DatasetLayout]:
    return [layout for layout in find_layouts(names) if isinstance(layout, DatasetLayout)]


def test_prepared_datasets_stand_in_the_papers_shape(tmp_path: Path) -> None:
    data = prepared(tmp_path / "data", zinc=ZINC, enzymes=ENZYMES, digits=DIGITS)
    write_prepared_datasets(data, layouts("datasets", "small_datasets"), tmp_path / "out")
    text = (tmp_path / "out" / "datasets.md").read_text(encoding="utf-8")
    assert text.startswith(
        "Medium-size datasets, as they are prepared. Nodes and edges: means over all graphs; an undir"
    )
    assert "| Graph regression | ZINC | 12000 | 23.16 | 49.83 | atom type (28) | bond type (4) |\n" in text
    assert "| Edge prediction | TSP | — | — | — | — | — |\n" in text
    assert text.endswith("Prepared, but without a place in this table:\n\n- Digits\n- ENZYMES\n")
    small = (tmp_path / "out" / "small_datasets.md").read_text(encoding="utf-8")
    assert "an undirected edge counts once." in small
    assert "| ENZYMES | 600 | 32.63 | 62.14 | node attributes (18) | - |\n| PROTEINS | — | — | — | — | — |\n" in small


def test_the_csv_has_the_values_as_counted(tmp_path: Path) -> None:
    write_prepared_datasets(prepared(tmp_path / "data", zinc=ZINC), layouts("datasets"), tmp_path)
    rows = list(csv.DictReader((tmp_path / "datasets.csv").open(encoding="utf-8")))
    assert [row["dataset"] for row in rows] == ["ZINC", "SMNIST", "CIFAR10", "TSP", "CLUSTER"]
    assert (rows[0]["nodes"], rows[0]["edges"], rows[0]["fingerprint"]) == ("23.1643", "49.8312", "00ff")
    assert (rows[1]["nodes"], rows[1]["task"]) == ("", "Graph classification")


def test_without_layouts_no_data_is_read(tmp_path: Path) -> None:
    assert write_prepared_datasets(tmp_path / "missing", [], tmp_path) == ()
    with pytest.raises(ResultsError, match="found no prepared dataset"):
        write_prepared_datasets(tmp_path, layouts("datasets"), tmp_path)


def test_the_command_sets_ours_and_the_papers_apart(tmp_path: Path) -> None:
    data = prepared(tmp_path / "data", zinc=ZINC)
    done = aggregate_process(
        *("tables", "--statistics", data, "--published", "--layout", "datasets", "--out", tmp_path / "out"),
        code=WITHOUT,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "| 12k |" in (tmp_path / "out" / "paper" / "datasets.md").read_text(encoding="utf-8")
    assert "| 12000 |" in (tmp_path / "out" / "datasets.md").read_text(encoding="utf-8")
    assert (tmp_path / "out" / "statistics.md").is_file()
