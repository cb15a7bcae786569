import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bimp.data import SOURCES, DataError, load_or_prepare, prepare
from bimp.data.source import SPLIT_NAMES
from bimp.data.sources import DD, ENZYMES
from bimp.tasks import task_of

GRAPHS = 30
"""Small stand-ins for the real files: graph g has 3 nodes in a chain, the class g % 6 and the attributes g, g, ..."""


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tu/ENZYMES/raw"
    folder.mkdir(parents=True)
    edges = [(3 * g + a, 3 * g + b) for g in range(GRAPHS) for a, b in ((1, 2), (2, 1), (2, 3), (3, 2))]
    graphs = [g for g in range(GRAPHS) for _ in range(3)]
    lines = {
        "A": [f"{a}, {b}" for a, b in edges],
        "graph_indicator": [str(g + 1) for g in graphs],
        "graph_labels": [str(g % 6 + 1) for g in range(GRAPHS)],
        "node_attributes": [", ".join([f"{g}.5"] * 18) for g in graphs],
        "node_labels": [str(node % 3 + 1) for node in range(3 * GRAPHS)],
    }
    for name, content in lines.items():
        (folder / f"ENZYMES_{name}.txt").write_text("\n".join(content) + "\n")
    small = replace(ENZYMES, graphs=GRAPHS, nodes=3 * GRAPHS, edges=4 * GRAPHS)
    monkeypatch.setitem(SOURCES, "enzymes", (small,))
    return tmp_path / "tu"


@pytest.fixture
def labels_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three graphs of DD's kind, without attributes: two nodes each, of the labels 1 and 3, 2 and 1, 3 and 3."""
    folder = tmp_path / "tu/DD/raw"
    folder.mkdir(parents=True)
    lines = {
        "A": ["1, 2", "2, 1", "3, 4", "4, 3", "5, 6", "6, 5"],
        "graph_indicator": ["1", "1", "2", "2", "3", "3"],
        "graph_labels": ["1", "2", "1"],
        "node_labels": ["1", "3", "2", "1", "3", "3"],
    }
    for name, content in lines.items():
        (folder / f"DD_{name}.txt").write_text("\n".join(content) + "\n")
    (tmp_path / "tu/folds").mkdir()
    for number, name in enumerate(("train", "val", "test")):
        (tmp_path / f"tu/folds/DD_{name}.index").write_text(f"{number}\n" * 10)
    monkeypatch.setitem(SOURCES, "dd", (replace(DD, graphs=3, nodes=6, edges=6, labels=3),))
    monkeypatch.setattr("bimp.data.preparation.task_of", lambda name: replace(task_of(name), node_dim=3))
    return tmp_path / "tu"


def write_folds(raw: Path) -> None:
    """Fold k tests on 3k, 3k + 1, 3k + 2, validates on the three after and trains on the rest."""
    (raw / "folds").mkdir()
    parts = [list(range(3 * k, 3 * k + 3)) for k in range(10)]
    for name in ("train", "val", "test"):
        lines = []
        for k in range(10):
            test, val = parts[k], parts[(k + 1) % 10]
            train = [g for g in range(GRAPHS) if g not in test + val]
            lines.append(",".join(map(str, {"train": train, "val": val, "test": test}[name])))
        (raw / f"folds/ENZYMES_{name}.index").write_text("\n".join(lines) + "\n")


def test_attributes_alone_and_own_folds(raw: Path, tmp_path: Path) -> None:
    dataset = prepare("enzymes", tmp_path / "root", raw=raw)
    batch = dataset.graphs.gather(torch.tensor([4, 1]))
    assert batch.x.tolist() == [[4.5] * 18] * 3 + [[1.5] * 18] * 3
    assert batch.edge_index.tolist() == [[1, 0, 2, 1, 4, 3, 5, 4], [0, 1, 1, 2, 3, 4, 4, 5]]
    assert batch.edge_attr is None
    assert batch.y.tolist() == [4, 1]
    assert batch.y.dtype == torch.int64
    assert dataset.folds == 10
    assert dataset.origin.endswith("10 stratified folds of our own, seed 0")
    tests = torch.cat([dataset.split("test", fold).indices for fold in range(10)])
    assert tests.sort().values.tolist() == list(range(GRAPHS))
    assert [len(dataset.split(name, 3)) for name in ("train", "val", "test")] == [24, 3, 3]


def test_stored_folds(raw: Path, tmp_path: Path) -> None:
    write_folds(raw)
    dataset = prepare("enzymes", tmp_path / "root", raw=raw)
    assert dataset.origin.endswith("10 stored folds")
    assert dataset.split("test", 2).indices.tolist() == [6, 7, 8]
    assert dataset.split("val", 9).indices.tolist() == [0, 1, 2]
    assert dataset.split("train", 0).indices.tolist() == list(range(6, GRAPHS))


def test_labels_are_the_inputs_where_there_are_no_attributes(labels_only: Path, tmp_path: Path) -> None:
    dataset = prepare("dd", tmp_path / "root", raw=labels_only)
    assert dataset.graphs.x.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert dataset.graphs.y.tolist() == [0, 1, 0]
    assert dataset.split("test", 9).indices.tolist() == [2]


def test_other_labels_are_named(labels_only: Path, tmp_path: Path) -> None:
    path = labels_only / "DD/raw/DD_node_labels.txt"
    path.write_text("1\n4\n2\n1\n3\n3\n")
    with pytest.raises(DataError, match=r"found 4 columns in DD_node_labels\.txt, one-hot, expected 3"):
        prepare("dd", tmp_path / "root", raw=labels_only)


def test_a_fold_must_be_named(raw: Path, tmp_path: Path) -> None:
    dataset = prepare("enzymes", tmp_path / "root", raw=raw)
    for fold in (None, 10, -1):
        with pytest.raises(DataError, match=f"found fold {fold}, expected one from 0 to 9"):
            dataset.split("train", fold)


def refused(raw: Path, root: Path, message: str) -> None:
    with pytest.raises(DataError, match=message):
        prepare("enzymes", root, raw=raw)
    assert not root.exists() or [path.name for path in root.iterdir() if path.suffix != ".lock"] == []


@pytest.mark.parametrize("name", ["A", "graph_indicator", "graph_labels", "node_attributes", "node_labels"])
def test_cut_and_missing_files_are_named(raw: Path, tmp_path: Path, name: str) -> None:
    path = raw / f"ENZYMES/raw/ENZYMES_{name}.txt"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-2]))
    refused(raw, tmp_path / "root", rf"ENZYMES_{name}\.txt: found {len(lines) - 2} lines, expected {len(lines)}")
    path.unlink()
    refused(raw, tmp_path / "root", rf"ENZYMES_{name}\.txt: found no file.*--from PATH")


def test_a_line_cut_in_the_middle_is_refused(raw: Path, tmp_path: Path) -> None:
    path = raw / "ENZYMES/raw/ENZYMES_node_attributes.txt"
    path.write_text(path.read_text()[:-8])
    refused(raw, tmp_path / "root", "ENZYMES/raw: found files that are cut or not of ENZYMES")


def test_other_columns_are_named(raw: Path, tmp_path: Path) -> None:
    path = raw / "ENZYMES/raw/ENZYMES_node_attributes.txt"
    path.write_text("".join(line.partition(", ")[2] + "\n" for line in path.read_text().splitlines()))
    refused(raw, tmp_path / "root", r"found 17 columns in ENZYMES_node_attributes\.txt, expected 18")


@pytest.mark.parametrize(
    ("name", "replacement", "message"),
    [
        ("val", "0,1,2\n" * 9, r"val\.index: found 9 lines, expected 10"),
        ("val", "0,1,x\n" * 10, r"val\.index: found .*expected graph numbers"),
        ("val", "0,1,2\n" * 10, r"train\.index: found in line 1 .* expected each from 0 to 29 once"),
    ],
)
def test_folds_that_are_none_are_named(raw: Path, tmp_path: Path, name: str, replacement: str, message: str) -> None:
    write_folds(raw)
    (raw / f"folds/ENZYMES_{name}.index").write_text(replacement)
    refused(raw, tmp_path / "root", message)


def test_a_missing_fold_file_is_named(raw: Path, tmp_path: Path) -> None:
    write_folds(raw)
    (raw / "folds/ENZYMES_test.index").unlink()
    refused(raw, tmp_path / "root", r"folds/ENZYMES_test\.index: found no file")


def test_without_a_network_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch_geometric.datasets

    def no_network(self: object) -> None:
        raise OSError("Name or service not known")

    monkeypatch.setattr(torch_geometric.datasets.TUDataset, "download", no_network)
    with pytest.raises(DataError, match=r"enzymes: not prepared yet.*Name or service.*prepare enzymes --from PATH"):
        load_or_prepare("enzymes", tmp_path)
    assert not (tmp_path / "enzymes").exists()


REAL = {
    # Graphs, nodes and undirected edges of a graph, inputs, graphs of each class.
    "enzymes": ("ENZYMES", 600, 32.63, 62.14, 18, [100] * 6),
    "proteins": ("PROTEINS_full", 1113, 39.06, 72.82, 29, [663, 450]),
    "dd": ("DD", 1178, 284.32, 715.66, 89, [691, 487]),
}


@pytest.mark.parametrize("name", REAL)
def test_the_real_files(raw_data: Path, tmp_path: Path, name: str) -> None:
    raw_name, graphs, nodes, edges, columns, classes = REAL[name]
    dataset = prepare(name, tmp_path / "root", raw=raw_data / "tu")
    statistics = dataset.statistics
    assert statistics.graphs == graphs
    assert round(statistics.mean_nodes, 2) == nodes
    assert round(statistics.mean_counted_edges, 2) == edges
    assert statistics.mean_edges == 2 * statistics.mean_counted_edges
    assert dataset.graphs.x.shape[1] == columns
    assert dataset.graphs.y.bincount().tolist() == classes
    assert dataset.origin.endswith("10 stored folds")
    for split in SPLIT_NAMES:
        stored = (raw_data / f"tu/folds/{raw_name}_{split}.index").read_text().splitlines()
        assert [dataset.split(split, fold).indices.tolist() for fold in range(10)] == [
            [int(entry) for entry in line.split(",")] for line in stored
        ]


def test_the_real_files_without_their_folds_get_folds_of_our_own(raw_data: Path, tmp_path: Path) -> None:
    stored = prepare("enzymes", tmp_path / "root", raw=raw_data / "tu")
    shutil.copytree(raw_data / "tu/ENZYMES/raw", tmp_path / "alone/ENZYMES/raw")
    own = prepare("enzymes", tmp_path / "other", raw=tmp_path / "alone")
    assert own.fingerprint != stored.fingerprint
    for fold in range(10):
        for name, each in (("train", 80), ("val", 10), ("test", 10)):
            assert own.graphs.y[own.split(name, fold).indices].bincount().tolist() == [each] * 6
