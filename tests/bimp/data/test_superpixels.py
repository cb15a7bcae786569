import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from image_files import blobs, write_cifar, write_mnist
from numpy.typing import NDArray

from bimp.data import DataError, extras, images, prepare, superpixels
from bimp.data.superpixels import RECIPES, Recipe, superpixel_graph

skimage = pytest.importorskip("skimage.segmentation", reason="the extra superpixels is not installed")


def by_plain_loops(image: NDArray[np.uint8], recipe: Recipe) -> tuple[list[list[float]], dict[tuple[int, int], float]]:
    """Node rows, and the weight of each edge, as the recipe reads: one superpixel, one pair at a time."""
    height, width, colours = image.shape
    picture = image / 255
    asked = recipe.most_nodes + recipe.more_at_first
    while True:
        grey = {"channel_axis": None} if colours == 1 else {}
        labels = skimage.slic(
            picture[:, :, 0] if colours == 1 else picture, n_segments=asked, compactness=recipe.compactness, **grey
        )
        names = sorted(set(labels.ravel().tolist()))
        if len(names) <= recipe.most_nodes:
            break
        asked -= 1

    rows = []
    for name in names:
        members = [(row, column) for row in range(height) for column in range(width) if labels[row, column] == name]
        rows.append(
            [
                *(
                    sum(picture[row, column, colour] for row, column in members) / len(members)
                    for colour in range(colours)
                ),
                sum(row for row, _ in members) / len(members) / height,
                sum(column for _, column in members) / len(members) / width,
            ]
        )

    nodes = len(rows)
    away = [[math.dist(a[-2:], b[-2:]) for b in rows] for a in rows]
    scale = [sum(sorted(away[i][j] for j in range(nodes) if j != i)[:8]) / 8 for i in range(nodes)]
    seen = [[math.exp(-((away[i][j] / scale[i]) ** 2)) for j in range(nodes)] for i in range(nodes)]
    weight = [[(seen[i][j] + seen[j][i]) / 2 for j in range(nodes)] for i in range(nodes)]
    edges = {}
    for i in range(nodes):
        heaviest = sorted((j for j in range(nodes) if j != i), key=lambda j: (-round(weight[i][j], 6), j))[:8]
        edges.update({(i, j): weight[i][j] for j in heaviest})
    return rows, edges


def assert_as_by_plain_loops(image: NDArray[np.uint8], recipe: Recipe) -> None:
    x, edge_index, weight = superpixel_graph(image, recipe)
    rows, edges = by_plain_loops(image, recipe)
    np.testing.assert_allclose(x, rows, atol=1e-6)
    found = {(int(u), int(v)): float(w) for (u, v), w in zip(edge_index.T, weight[:, 0], strict=True)}
    assert found.keys() == edges.keys()
    assert all(abs(found[edge] - edges[edge]) < 2e-6 for edge in edges)
    assert len(found) == len(weight) == 8 * len(rows)
    assert len(rows) <= recipe.most_nodes


@pytest.mark.parametrize("dataset", RECIPES)
def test_made_images_against_plain_loops(dataset: str) -> None:
    side, colours = {"smnist": (28, 1), "cifar10": (32, 3)}[dataset]
    for image in blobs(2, side, colours, seed=11):
        assert_as_by_plain_loops(image, RECIPES[dataset])


def test_twenty_real_digits_against_plain_loops(raw_data: Path) -> None:
    _, test = images.read_mnist(images.mnist_files("smnist", (raw_data / "mnist/raw",)))
    assert test.labels[:5].tolist() == [7, 2, 1, 0, 4]
    nodes = []
    for image in test.images[:20]:
        assert_as_by_plain_loops(image, RECIPES["smnist"])
        nodes.append(len(superpixel_graph(image, RECIPES["smnist"])[0]))
    assert 55 < np.mean(nodes) < 75


def test_the_real_files_make_a_dataset(raw_data: Path, tmp_path: Path) -> None:
    dataset = prepare("smnist", tmp_path, raw=raw_data, size=30)
    train, test = images.read_mnist(images.mnist_files("smnist", (raw_data / "mnist/raw",)))
    # The first 5,000 images are the validation split.
    expected = [*train.labels[5_000:5_030], *train.labels[:3], *test.labels[:3]]
    assert dataset.graphs.y.tolist() == expected
    split = dataset.split("val")
    np.testing.assert_array_equal(
        dataset.graphs.gather(split.indices[:1]).x.numpy(), superpixel_graph(train.images[0], RECIPES["smnist"])[0]
    )
    assert "SLIC of scikit-image" in dataset.origin
    assert "not the benchmark's graphs" in dataset.origin
    statistics = dataset.statistics
    assert (statistics.node_dim, statistics.edge_dim, statistics.split_graphs["train"]) == (3, 1, 30)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MNIST_COUNTS", {"train": 8, "test": 4})
    monkeypatch.setattr(images, "CIFAR_COUNTS", {"train": 10, "test": 2})
    monkeypatch.setattr(superpixels, "HELD_OUT", 3)
    monkeypatch.setattr(
        superpixels.Superpixels, "_available", property(lambda _: {"train": 5, "val": 3, "test": 2}), raising=True
    )


@pytest.mark.usefixtures("small")
def test_the_first_images_validate_and_processes_are_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def work_through(function: Any, things: Any, processes: int) -> list[Any]:
        asked.append(processes)
        # Another process gets the function and the image so.
        return [pickle.loads(pickle.dumps(function))(thing) for thing in things]

    monkeypatch.setattr(superpixels, "work_through", work_through)
    dataset = prepare("smnist", tmp_path / "root", raw=write_mnist(tmp_path / "mnist"), processes=5)
    assert dataset.graphs.y.tolist() == [3, 4, 5, 6, 7, 0, 1, 2, 0, 1]
    assert asked == [5]


@pytest.mark.usefixtures("small")
def test_cifar_needs_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = write_cifar(tmp_path / "raw/cifar-10-batches-py").parent
    with monkeypatch.context() as patched:
        patched.setattr(pickle, "load", lambda *_, **__: pytest.fail("a pickle was read"))
        with pytest.raises(DataError, match=r"data_batch_1: found a pickle, and reading it runs.*cifar10 .*--trust"):
            prepare("cifar10", tmp_path / "root", raw=raw)
    assert [path.name for path in (tmp_path / "root").iterdir() if path.suffix != ".lock"] == []
    dataset = prepare("cifar10", tmp_path / "root", raw=raw, trust=True)
    assert dataset.graphs.y.tolist() == [2, 2, 3, 3, 4, 0, 1, 1, 5, 6]
    assert dataset.graphs.x.shape[1] == 5


def test_images_need_a_folder_and_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"smnist: found no folder of images.*--maker images --from PATH"):
        prepare("smnist", tmp_path / "root", maker="images")

    def nothing_installed(_: str) -> Any:
        return None

    raw = write_mnist(tmp_path / "mnist")
    monkeypatch.setattr(extras, "find_spec", nothing_installed)
    with pytest.raises(DataError, match=r"found no package scikit-image.*pip install 'bimp-study\[superpixels\]'"):
        prepare("smnist", tmp_path / "root", raw=raw)
