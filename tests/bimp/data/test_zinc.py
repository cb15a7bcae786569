import pickle
import shutil
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest
import torch

from bimp.data import DataError, load_or_prepare, prepare, zinc
from bimp.data.raw import Published
from bimp.data.source import SplitName

SIZES: dict[SplitName, int] = {"train": 12, "val": 1, "test": 2}


def molecule(atoms: int, target: float) -> dict[str, Any]:
    """A chain of atoms 0, 1, ... with bonds 1, 2, 1, 2, ..."""
    bonds = torch.zeros((atoms, atoms), dtype=torch.int8)
    for first in range(atoms - 1):
        bonds[first, first + 1] = bonds[first + 1, first] = 1 + first % 2
    return {
        "num_atom": atoms,
        "atom_type": torch.arange(atoms, dtype=torch.int8),
        "bond_type": bonds,
        "logP_SA_cycle_normalized": torch.tensor([target]),
    }


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Raw files of 15 molecules: in train, number i has 3 atoms and the target i; elsewhere 6 atoms."""
    folder = tmp_path / "by_hand/raw"
    folder.mkdir(parents=True)
    for split, size in SIZES.items():
        with (folder / f"{split}.pickle").open("wb") as file:
            pickle.dump([molecule(3 if split == "train" else 6, number) for number in range(size + 5)], file)
        indices = list(range(size))[::-1]
        (folder / f"{split}.index").write_text(",".join(map(str, indices)) + "\n")
    monkeypatch.setattr(zinc, "SIZES", SIZES)
    # (12 * 3 + 3 * 6) / 15 nodes, (12 * 4 + 3 * 10) / 15 edges
    monkeypatch.setattr(zinc, "PUBLISHED", Published(graphs=15, mean_nodes=3.6, mean_edges=5.2))
    return folder.parent


def test_files_by_hand(raw: Path, tmp_path: Path) -> None:
    dataset = prepare("zinc", tmp_path / "root", raw=raw, trust=True)
    assert [len(dataset.split(name)) for name in SIZES] == [12, 1, 2]
    train = dataset.split("train")
    batch = train.graphs.gather(train.indices[:2])
    assert batch.x.tolist() == [0, 1, 2, 0, 1, 2]
    assert batch.edge_index.tolist() == [[1, 0, 2, 1, 4, 3, 5, 4], [0, 1, 1, 2, 3, 4, 4, 5]]
    assert batch.edge_attr is not None
    assert batch.edge_attr.tolist() == [1, 1, 2, 2, 1, 1, 2, 2]
    assert train.graphs.gather(train.indices).y.tolist() == [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert (batch.x.dtype, batch.edge_attr.dtype, batch.y.dtype) == (torch.int64, torch.int64, torch.float32)
    assert dataset.origin.endswith("files by hand")


def test_nothing_is_written_to_the_raw_folder(raw: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in raw.rglob("*")}
    prepare("zinc", tmp_path / "root", raw=raw, trust=True)
    assert {path: path.stat().st_mtime_ns for path in raw.rglob("*")} == before


def test_an_index_without_a_newline_keeps_its_last_digit(raw: Path, tmp_path: Path) -> None:
    path = raw / "raw/train.index"
    path.write_text("0,1,2,3,4,5,6,7,8,9,10,11")
    train = prepare("zinc", tmp_path / "root", raw=raw, trust=True).split("train")
    assert train.graphs.gather(train.indices).y.tolist() == list(range(12))


def test_pickles_need_trust(raw: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    with pytest.raises(DataError, match=r"train\.pickle: found a pickle, and reading it runs.*--trust"):
        prepare("zinc", root, raw=raw)
    assert [path.name for path in root.iterdir() if path.suffix != ".lock"] == []


def test_an_untrusted_pickle_is_never_run(raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unpickled(*_: object) -> None:
        raise AssertionError("a pickle was read")

    monkeypatch.setattr(pickle, "load", unpickled)
    with pytest.raises(DataError, match="--trust"):
        prepare("zinc", tmp_path / "root", raw=raw)


def refused(raw: Path, root: Path, message: str) -> None:
    with pytest.raises(DataError, match=message):
        prepare("zinc", root, raw=raw, trust=True)
    assert not root.exists() or [path.name for path in root.iterdir() if path.suffix != ".lock"] == []


def test_missing_files_are_named(raw: Path, tmp_path: Path) -> None:
    (raw / "raw/val.index").unlink()
    refused(raw, tmp_path / "root", r"raw/val\.index: found no file, expected .*prepare zinc --from PATH")
    refused(tmp_path / "nowhere", tmp_path / "root", r"nowhere/train\.pickle: found no file.*--from PATH")


def test_a_cut_pickle_is_named(raw: Path, tmp_path: Path) -> None:
    path = raw / "raw/val.pickle"
    path.write_bytes(path.read_bytes()[:-20])
    refused(raw, tmp_path / "root", r"raw/val\.pickle: found a file that is cut or not of ZINC .*get the file again")


@pytest.mark.parametrize("content", [[1, 2, 3], [{"smiles": "C"}] * 9, {"a": 1}, []])
def test_a_foreign_pickle_is_named(raw: Path, tmp_path: Path, content: object) -> None:
    with (raw / "raw/test.pickle").open("wb") as file:
        pickle.dump(content, file)
    refused(raw, tmp_path / "root", r"raw/test\.pickle: found a file that is cut or not of ZINC")


@pytest.mark.parametrize(("content", "found"), [("3", "1 entries"), ("0,0\n", "1 of them"), ("0,b\n", "2 entries")])
def test_a_cut_or_foreign_index_is_named(raw: Path, tmp_path: Path, content: str, found: str) -> None:
    (raw / "raw/test.index").write_text(content)
    refused(raw, tmp_path / "root", rf"raw/test\.index: found .*{found}.*expected 2 different numbers")


def test_an_index_beyond_the_molecules_is_named(raw: Path, tmp_path: Path) -> None:
    (raw / "raw/test.index").write_text("0,99\n")
    refused(raw, tmp_path / "root", r"raw/test\.pickle: .*IndexError")


def test_statistics_that_are_not_the_published_ones_are_named(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zinc, "PUBLISHED", Published(graphs=15, mean_nodes=23.16, mean_edges=5.2))
    refused(raw, tmp_path / "root", "found 3.6 mean nodes, expected 23.16: not the benchmark's graphs")


def test_fewer_molecules_for_a_trial(raw: Path, tmp_path: Path) -> None:
    dataset = prepare("zinc", tmp_path / "root", raw=raw, trust=True, size=4)
    assert [len(dataset.split(name)) for name in SIZES] == [4, 1, 1]
    assert dataset.graphs.y.tolist() == [11.0, 10.0, 9.0, 8.0, 0.0, 1.0]  # the first of each index
    with pytest.raises(DataError, match=r"found size=4, expected no size; .*--force"):
        prepare("zinc", tmp_path / "root")
    with pytest.raises(DataError, match=r"found size=13, expected 1 to 12 graphs to train on"):
        prepare("zinc", tmp_path / "root", raw=raw, size=13)


def test_other_raw_files_are_refused_without_force(raw: Path, tmp_path: Path) -> None:
    prepare("zinc", tmp_path / "root", raw=raw, trust=True)
    # Already read: no trust is needed to open it, and no raw files.
    prepare("zinc", tmp_path / "root", raw=raw)
    prepare("zinc", tmp_path / "root")
    shutil.copytree(raw, tmp_path / "other")
    (tmp_path / "other/raw/test.index").write_text("1,2\n")
    with pytest.raises(DataError, match=r"found data of another test\.index.*--force"):
        prepare("zinc", tmp_path / "root", raw=tmp_path / "other", trust=True)
    second = prepare("zinc", tmp_path / "root", raw=tmp_path / "other", trust=True, force=True)
    assert second.graphs.y[-2:].tolist() == [1.0, 2.0]


def test_without_a_network_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch_geometric.datasets

    def no_network(self: object) -> None:
        raise URLError("Name or service not known")

    monkeypatch.setattr(torch_geometric.datasets.ZINC, "download", no_network)
    with pytest.raises(DataError, match=r"zinc: not prepared yet.*Name or service.*prepare zinc --from PATH"):
        load_or_prepare("zinc", tmp_path)
    assert not (tmp_path / "zinc").exists()


def test_the_real_files(raw_data: Path, tmp_path: Path) -> None:
    dataset = prepare("zinc", tmp_path, raw=raw_data / "zinc", trust=True)
    statistics = dataset.statistics
    assert [len(dataset.split(name)) for name in ("train", "val", "test")] == [10_000, 1_000, 1_000]
    assert (round(statistics.mean_nodes, 2), round(statistics.mean_edges, 2)) == (23.16, 49.83)
    assert dataset.graphs.node_counts.max() == 37
    assert dataset.graphs.x.min() >= 0
    assert dataset.graphs.x.max() < 28
    assert dataset.graphs.edge_attr is not None
    assert dataset.graphs.edge_attr.unique().tolist() == [1, 2, 3]
