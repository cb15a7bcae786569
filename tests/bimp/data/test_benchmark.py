import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest
import torch

from bimp.data import SOURCES, DataError, load_or_prepare, prepare
from bimp.data.benchmark import BenchmarkFile
from bimp.data.raw import Published
from bimp.data.source import SplitName

SIZES: dict[SplitName, int] = {"train": 12, "val": 2, "test": 2}
NODES = 4
EDGES = [(2, 0), (0, 1), (3, 1), (1, 3)]
"""Sorted by destination already."""

Graph = dict[str, Any]


def superpixels(number: int, *, with_pos: bool, colours: int) -> Graph:
    """Graph ``number``: colours n + 0.5 everywhere, coordinates (0.1, 0.2) and so on, weights 0 to 3."""
    colour = torch.full((NODES, colours), number + 0.5)
    pos = torch.arange(2 * NODES).reshape(NODES, 2) / 10 + 0.1
    weight = torch.arange(4.0)
    graph: Graph = {"edge_index": torch.tensor(EDGES).T, "y": torch.tensor([number % 10])}
    if with_pos:
        return {**graph, "x": colour, "pos": pos, "edge_attr": weight}
    return {**graph, "x": torch.cat([colour, pos], dim=1), "edge_attr": weight[:, None]}


def block_model(number: int, *, one_hot: bool, values: int, classes: int) -> Graph:
    x = torch.tensor([0, values - 1, 0, 1])
    return {
        "x": torch.eye(values)[x] if one_hot else x,
        "edge_index": torch.tensor(EDGES).T,
        "y": torch.tensor([0, classes - 1, 0, number % 2]),
    }


def salesman(number: int, *, with_pos: bool) -> Graph:
    pos = torch.rand(NODES, 2, generator=torch.Generator().manual_seed(number))
    return {
        **({"pos": pos} if with_pos else {"x": pos}),
        "edge_index": torch.tensor(EDGES).T,
        "edge_attr": torch.arange(4.0) if with_pos else torch.arange(4.0)[:, None],
        "y": torch.tensor([0, 1, 1, 0]),
    }


def write(folder: Path, name: str, graphs: list[Graph]) -> Path:
    """``folder`` with the graphs as ``NAME_v2.pt`` in PyTorch Geometric's raw layout, cut into three splits."""
    raw = folder / name / "raw"
    raw.mkdir(parents=True)
    torch.save([graphs[:12], graphs[12:14], graphs[14:]], raw / f"{name}_v2.pt")
    return folder


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sources expect 16 graphs of 4 nodes and 4 edges."""
    published = Published(graphs=16, mean_nodes=4, mean_edges=4)
    for name, sources in list(SOURCES.items()):
        small = tuple(
            replace(source, sizes=SIZES, published=published) if isinstance(source, BenchmarkFile) else source
            for source in sources
        )
        monkeypatch.setitem(SOURCES, name, small)  # type: ignore[arg-type]


FORMS = {
    ("smnist", "MNIST"): [
        [superpixels(number, with_pos=form, colours=1) for number in range(16)] for form in (True, False)
    ],
    ("cifar10", "CIFAR10"): [
        [superpixels(number, with_pos=form, colours=3) for number in range(16)] for form in (True, False)
    ],
    ("tsp", "TSP"): [[salesman(number, with_pos=form) for number in range(16)] for form in (True, False)],
    ("cluster", "CLUSTER"): [
        [block_model(number, one_hot=form, values=7, classes=6) for number in range(16)] for form in (True, False)
    ],
    ("pattern", "PATTERN"): [
        [block_model(number, one_hot=form, values=3, classes=2) for number in range(16)] for form in (True, False)
    ],
}


@pytest.mark.parametrize("names", FORMS, ids=lambda names: names[0])
def test_both_forms_become_the_same_graphs(tmp_path: Path, names: tuple[str, str]) -> None:
    name, raw_name = names
    made = []
    for number, graphs in enumerate(FORMS[names]):
        raw = write(tmp_path / f"raw{number}", raw_name, graphs)
        made.append(prepare(name, tmp_path / f"root{number}", raw=raw))
    assert made[0].fingerprint == made[1].fingerprint
    assert [len(made[0].split(split)) for split in SIZES] == [12, 2, 2]
    assert made[0].split("test").indices.tolist() == [14, 15]
    assert f"{raw_name}_v2.pt" in made[0].origin


def test_superpixels_worked_by_hand(tmp_path: Path) -> None:
    raw = write(tmp_path / "raw", "MNIST", FORMS["smnist", "MNIST"][0])
    batch = prepare("smnist", tmp_path / "root", raw=raw / "MNIST").graphs.gather(torch.tensor([15]))
    torch.testing.assert_close(
        batch.x, torch.tensor([[15.5, 0.1, 0.2], [15.5, 0.3, 0.4], [15.5, 0.5, 0.6], [15.5, 0.7, 0.8]])
    )
    assert batch.edge_index.T.tolist() == [[2, 0], [0, 1], [3, 1], [1, 3]]
    assert batch.edge_attr is not None
    assert batch.edge_attr.tolist() == [[0], [1], [2], [3]]
    assert (batch.y.tolist(), batch.y.dtype) == ([5], torch.int64)


def test_labels_of_edges_and_nodes(tmp_path: Path) -> None:
    tsp = prepare("tsp", tmp_path / "root", raw=write(tmp_path / "a", "TSP", FORMS["tsp", "TSP"][1]))
    batch = tsp.graphs.gather(torch.tensor([3, 3]))
    assert (batch.y.tolist(), batch.y.dtype) == ([0, 1, 1, 0] * 2, torch.int64)
    assert tsp.graphs.y.dtype == torch.uint8  # 83 million of them
    raw = write(tmp_path / "b", "CLUSTER", FORMS["cluster", "CLUSTER"][0])
    cluster = prepare("cluster", tmp_path / "root", raw=raw)
    batch = cluster.graphs.gather(torch.tensor([1]))
    assert (batch.x.tolist(), batch.y.tolist()) == ([0, 6, 0, 1], [0, 5, 0, 1])
    assert batch.edge_attr is None


def test_fewer_graphs_for_a_trial(tmp_path: Path) -> None:
    raw = write(tmp_path / "raw", "MNIST", FORMS["smnist", "MNIST"][0])
    dataset = prepare("smnist", tmp_path / "root", raw=raw, size=5)
    assert dataset.graphs.y.tolist() == [0, 1, 2, 3, 4, 12 % 10, 14 % 10]
    assert [len(dataset.split(split)) for split in SIZES] == [5, 1, 1]


def test_how_it_was_made_decides_what_is_there(tmp_path: Path) -> None:
    raw = write(tmp_path / "raw", "CLUSTER", FORMS["cluster", "CLUSTER"][0])
    first = prepare("cluster", tmp_path / "root", raw=raw)
    assert prepare("cluster", tmp_path / "root").fingerprint == first.fingerprint
    assert load_or_prepare("cluster", tmp_path / "root").fingerprint == first.fingerprint
    with pytest.raises(DataError, match=r"found data of maker 'benchmark', expected 'generated'; .*--force"):
        prepare("cluster", tmp_path / "root", seed=1, size=2)
    with pytest.raises(DataError, match=r"cluster: found maker 'images', expected generated or benchmark"):
        prepare("cluster", tmp_path / "root", maker="images")
    with pytest.raises(DataError, match=r"found seed=1, expected none"):
        prepare("cluster", tmp_path / "other", maker="benchmark", seed=1)


def refused(raw: Path, root: Path, message: str, name: str = "smnist") -> None:
    with pytest.raises(DataError, match=message):
        prepare(name, root, raw=raw)
    assert not root.exists() or [path.name for path in root.iterdir() if path.suffix != ".lock"] == []


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused(
        tmp_path / "empty",
        tmp_path / "root",
        r"empty/MNIST_v2\.pt: found no file.*prepare smnist --from PATH.*`--maker images` looks for other files$",
    )
    refused(tmp_path / "empty", tmp_path / "root", r"empty/CLUSTER_v2\.pt: found no file", name="cluster")


def test_a_cut_file_is_named(tmp_path: Path) -> None:
    raw = write(tmp_path / "raw", "MNIST", FORMS["smnist", "MNIST"][0])
    path = raw / "MNIST/raw/MNIST_v2.pt"
    path.write_bytes(path.read_bytes()[:-500])
    refused(raw, tmp_path / "root", r"MNIST_v2\.pt: found a file that is cut, .*12 / 2 / 2 graphs; get it again")


def test_a_wrong_byte_is_found(tmp_path: Path) -> None:
    """It would be a wrong number in some graph, and nothing else would tell."""
    raw = write(tmp_path / "raw", "MNIST", FORMS["smnist", "MNIST"][0])
    path = raw / "MNIST/raw/MNIST_v2.pt"
    content = path.read_bytes()
    weights = torch.arange(4.0).numpy().tobytes()
    assert weights in content
    path.write_bytes(content.replace(weights, torch.tensor([0.0, 1.0, 2.0, 3.5]).numpy().tobytes(), 1))
    refused(raw, tmp_path / "root", r"MNIST_v2\.pt: found a file that is cut, .*wrong checksum of .*; get it again")


class Runs:
    """Unpickling it would create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Path.touch, (self.path,)


def test_nothing_in_a_file_is_run(tmp_path: Path) -> None:
    raw = write(tmp_path / "raw", "MNIST", FORMS["smnist", "MNIST"][0])
    trap = tmp_path / "was_run"
    torch.save([Runs(trap), [], []], raw / "MNIST/raw/MNIST_v2.pt")
    refused(raw, tmp_path / "root", r"MNIST_v2\.pt: found a file that is cut, of another version")
    (raw / "MNIST/raw/MNIST_v2.pt").write_bytes(pickle.dumps(Runs(trap)))
    refused(raw, tmp_path / "root", r"MNIST_v2\.pt: found a file that is cut, of another version")
    assert not trap.exists()


GOOD = FORMS["smnist", "MNIST"][0]


def changed(**values: Any) -> list[Graph]:
    """The good graphs, with the first one's values replaced; None takes a value away."""
    first = {key: value for key, value in {**GOOD[0], **values}.items() if value is not None}
    return [first, *GOOD[1:]]


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        (GOOD[:-1], "1 graphs in split test, not 2"),
        ([*GOOD, GOOD[0]], "3 graphs in split test, not 2"),
        ([{"a": 1}, *GOOD[1:]], "neither x nor pos, not 3 columns together"),
        (changed(pos=None), "1 columns in x, not 3 columns together"),
        (changed(pos=torch.zeros(NODES, 3)), "1 columns in x and 3 columns in pos, not 3 columns together"),
        (changed(edge_attr=None), "a graph has no edge_attr"),
        (changed(edge_attr=torch.zeros(3)), "found shape"),
        (changed(y=None), "a graph has no y"),
        (changed(y=torch.tensor([0.5])), "no whole number"),
        (changed(y=torch.tensor([10])), "labels: found 0 to 10, expected 0 to 9"),
        (changed(edge_index=torch.tensor([[0], [NODES]]), edge_attr=torch.zeros(1)), "3.8125 mean directed edges"),
        (changed(edge_index=torch.tensor([[0, 0, 0, NODES], [1, 2, 3, 0]])), "edge to a node that it does not have"),
        (changed(edge_index=torch.tensor([[0, 0, 0, 256], [1, 2, 3, 1]])), "edge to a node that it does not have"),
        (changed(x=torch.full((NODES, 1), torch.nan)), "node inputs: found a number that is not finite"),
        (changed(x=torch.zeros(NODES + 1, 1), pos=torch.zeros(NODES + 1, 2)), "found 4.0625 mean nodes, expected 4"),
    ],
)
def test_other_content_is_named(tmp_path: Path, graphs: list[Graph], message: str) -> None:
    raw = write(tmp_path / "raw", "MNIST", graphs)
    refused(raw, tmp_path / "root", message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"x": torch.zeros(1)}, "a dict that does not hold three splits"),
        ([[], []], "a list that does not hold three splits"),
        ([1, 2, 3], "a split train that is no list of dicts"),
    ],
)
def test_other_structures_are_named(tmp_path: Path, content: object, message: str) -> None:
    raw = write(tmp_path / "raw", "MNIST", GOOD)
    torch.save(content, raw / "MNIST/raw/MNIST_v2.pt")
    refused(raw, tmp_path / "root", message)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.ones(NODES, 7), "that is not one-hot"),
        (torch.zeros(NODES, 5), r"shape \[4, 5\], neither 7 columns nor one"),
        (torch.tensor([0.5, 1, 2, 3]), "neither one-hot nor whole numbers"),
        (torch.tensor([0, 1, 2, 7]), "node inputs: found 0 to 7, expected 0 to 6"),
    ],
)
def test_other_attributes_are_named(tmp_path: Path, x: torch.Tensor, message: str) -> None:
    good = FORMS["cluster", "CLUSTER"][0]
    raw = write(tmp_path / "raw", "CLUSTER", [{**good[0], "x": x}, *good[1:]])
    refused(raw, tmp_path / "root", message, name="cluster")


@pytest.mark.parametrize("label", [256, -255, 0.5])
def test_a_label_of_an_edge_that_no_byte_holds_is_named(tmp_path: Path, label: float) -> None:
    """Cut down to a byte, 256 would be 0 and -255 a 1."""
    good = FORMS["tsp", "TSP"][0]
    raw = write(tmp_path / "raw", "TSP", [{**good[0], "y": torch.tensor([0, 1, 1, label])}, *good[1:]])
    refused(raw, tmp_path / "root", "a graph has a label that is no class", name="tsp")


def test_without_a_network_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch_geometric.data

    def no_network(url: str, folder: str) -> str:
        assert url.endswith("/TSP_v2.zip")
        raise URLError("Name or service not known")

    monkeypatch.setattr(torch_geometric.data, "download_url", no_network)
    with pytest.raises(DataError, match=r"tsp: not prepared yet.*Name or service.*prepare tsp --from PATH"):
        load_or_prepare("tsp", tmp_path / "root")
    assert not (tmp_path / "root/tsp").exists()


def test_a_downloaded_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch_geometric.data

    raw = write(tmp_path / "raw", "TSP", FORMS["tsp", "TSP"][0])
    archive = shutil.make_archive(str(tmp_path / "TSP_v2"), "zip", raw / "TSP/raw")
    monkeypatch.setattr(torch_geometric.data, "download_url", lambda url, folder: archive)
    downloaded = prepare("tsp", tmp_path / "root")
    assert downloaded.origin.endswith("downloaded")
    assert downloaded.fingerprint == prepare("tsp", tmp_path / "other", raw=raw).fingerprint
