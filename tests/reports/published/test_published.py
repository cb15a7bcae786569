"""The shipped numbers against the paper's own source, the models that were run, and counts worked out by hand."""

from __future__ import annotations

import csv
import os
from collections import Counter
from pathlib import Path

import pytest
from printed_numbers import printed_datasets, printed_rows, shipped_datasets, shipped_rows

from reports.published import rows as published_rows
from reports.published.rows import (
    PublishedError,
    benchmark_rows,
    later_rows,
    paper_datasets,
    paper_rows,
    sources,
)


@pytest.fixture(scope="module")
def paper() -> Path:
    named = os.environ.get("BIMP_PAPER_TEX")
    if not named:
        pytest.skip("BIMP_PAPER_TEX names no LaTeX source of the paper")
    return Path(named)


def test_every_number_of_the_result_tables_is_the_papers(paper: Path) -> None:
    printed = list(printed_rows(paper.read_text(encoding="utf-8")))
    assert len(printed) == 80
    assert all(len(row) == 12 for row in printed)
    assert sorted(shipped_rows()) == sorted(printed)


def test_every_number_of_the_dataset_tables_is_the_papers(paper: Path) -> None:
    printed = list(printed_datasets(paper.read_text(encoding="utf-8")))
    assert len(printed) == 8
    assert shipped_datasets() == printed


def test_the_models_are_those_that_were_run(paper: Path) -> None:
    path = paper.parent / "paper_configs.csv"
    if not path.is_file():
        pytest.skip(f"{path.name} does not lie beside the paper")
    facts = list(csv.DictReader(path.open(encoding="utf-8")))
    rows = {(row.table, row.dataset, row.row, row.layers): row for row in paper_rows()}
    assert len(facts) == len(rows) == 80
    for fact in facts:
        row = rows[fact["table"], fact["dataset"], fact["row"], int(fact["layers"])]
        assert (row.backbone, row.placement) == (fact["backbone"], fact["placement"])
        assert (row.params_true, row.params_printed) == (int(fact["params_true"]), int(fact["params_printed"]))
        assert (row.hidden_dim, row.out_dim) == (int(fact["hidden_dim"]), int(fact["out_dim"]))
        assert row.heads == int(fact["heads"] or 1)
        assert row.num_clusters == (int(fact["num_clusters"]) if fact["num_clusters"] else None)
        assert row.edge_features == (fact["edge_feat"] == "True")
        assert row.pos_enc_dim == int(fact["pos_enc_dim"] or 0)


def test_counts_of_rows_marks_and_misprints() -> None:
    rows = paper_rows()
    assert Counter(row.table for row in rows) == {"graph_level": 32, "node_edge_level": 16, "placement": 8, "small": 24}
    in_text = [row for row in rows if row.table in ("graph_level", "node_edge_level")]
    assert sum(row.bold for row in in_text) == 21
    assert [row.name for row in rows if row.red and row.table != "placement"] == [
        "ZINC bi-GatedGCN L16",
        "SMNIST bi-GatedGCN L4",
        "CIFAR10 bi-GatedGCN L4",
        "TSP bi-GatedGCN L4",
        "CLUSTER bi-GatedGCN L16",
        "PROTEINS bi-GraphSAGE L4",
    ]
    assert all(row.bold for row in rows if row.red)
    misprinted = [row for row in rows if row.params_printed != row.params_true]
    assert len(misprinted) == 9
    assert all(row.note for row in misprinted)
    assert len({(row.dataset, row.backbone, row.placement, row.layers) for row in rows}) == 76


def test_gated_rows_alone_have_a_gate() -> None:
    for row in paper_rows():
        gated = row.placement != "none"
        assert gated == (row.num_clusters is not None) == (row.sigma_m is not None) == (row.origin == "own")
        assert row.source in sources()


def test_a_vanilla_row_is_copied_where_the_leaderboard_has_its_very_digits() -> None:
    names = {"gcn": "GCN", "graphsage": "GraphSage", "gat": "GAT"}
    gated_gcn = {"ZINC": "GatedGCN-PE", "CLUSTER": "GatedGCN-PE", "TSP": "GatedGCN-E"}
    listed = {(row.dataset, row.model, row.budget): row for row in benchmark_rows()}
    origins = Counter[str]()
    for row in paper_rows():
        if row.origin == "own":
            continue
        model = names.get(row.backbone) or gated_gcn.get(row.dataset, "GatedGCN")
        found = listed.get((row.dataset, model, row.budget))
        same = found is not None and (found.test_mean, found.test_std) == (row.test_mean, row.test_std)
        assert row.origin == ("unlisted" if found is None else "copied" if same else "differs"), row.name
        origins[row.origin] += row.table != "placement"
    assert origins == {"copied": 17, "differs": 3, "unlisted": 16}


def test_a_row_gives_fractions() -> None:
    rows = {row.name: row for row in paper_rows()}
    row = rows["CLUSTER bi-GCN L16"]
    assert (row.test_mean, row.test_std) == (71.199, 0.882)
    assert row.test.mean == pytest.approx(0.71199)
    assert row.train.std == pytest.approx(0.0164)
    assert rows["ZINC bi-GCN L4"].test.mean == 0.394


def test_a_broken_row_is_named_by_file_and_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (published_rows.FOLDER / "datasets.csv").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "datasets.csv"
    path.write_text("\n".join([*lines[:3], lines[3].replace(",yes,", ",perhaps,")]), encoding="utf-8")
    monkeypatch.setattr(published_rows, "FOLDER", tmp_path)
    with pytest.raises(PublishedError) as raised:
        paper_datasets.__wrapped__()
    assert str(raised.value) == f"{path}, line 4: not a row of published numbers (KeyError('perhaps'))"


def test_other_results_name_their_source() -> None:
    assert {row.source for row in benchmark_rows()} == {"benchmark_leaderboard"}
    later = {(row.dataset, row.model): row.test_mean for row in later_rows()}
    assert later["ZINC", "GCN+"] == 0.076
    assert later["CLUSTER", "GatedGCN+"] == 79.128
    assert {row.source for row in (*benchmark_rows(), *later_rows())} <= set(sources())


def test_datasets_come_in_the_papers_order() -> None:
    assert [row.dataset for row in paper_datasets()] == [
        *("ZINC", "SMNIST", "CIFAR10", "TSP", "CLUSTER", "DD", "ENZYMES", "PROTEINS")
    ]
    assert [row.dataset for row in paper_datasets() if not row.edges_directed] == ["DD", "ENZYMES", "PROTEINS"]
