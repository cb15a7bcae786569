import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bimp.data import PreparedDataset, prepare
from bimp.data.digits import pixel_graph


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> PreparedDataset:
    return prepare("digits", tmp_path_factory.mktemp("data"))


def test_three_pixels_worked_by_hand() -> None:
    # a = (0, 0), b = (0, 1), c = (1, 2): |ab| = 1, |bc| = sqrt 2, |ac| = sqrt 5. Mean distances squared:
    # s_a^2 = ((1 + sqrt 5) / 2)^2 = 2.618034, s_b^2 = ((1 + sqrt 2) / 2)^2 = 1.457107,
    # s_c^2 = ((sqrt 2 + sqrt 5) / 2)^2 = 3.331139. So
    # w_ab = (exp(-0.381966) + exp(-0.686292)) / 2 = (0.682518 + 0.503439) / 2 = 0.592979
    # w_bc = (exp(-1.372583) + exp(-0.600395)) / 2 = (0.253451 + 0.548595) / 2 = 0.401023
    # w_ac = (exp(-1.909830) + exp(-1.500988)) / 2 = (0.148106 + 0.222910) / 2 = 0.185508
    image = np.array([[16.0, 8.0, 0.0], [0.0, 0.0, 4.0]])
    x, edge_index, weight = pixel_graph(image)
    assert x.tolist() == [[1.0, 0.0, 0.0], [0.5, 0.0, 0.5], [0.25, 1.0, 1.0]]
    # Each node points to the other two, the heavier first.
    assert edge_index.tolist() == [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 1, 0]]
    expected = [0.592979, 0.185508, 0.592979, 0.401023, 0.401023, 0.185508]
    assert weight.ravel().tolist() == pytest.approx(expected, abs=2e-6)


def test_one_pixel_has_no_edges() -> None:
    image = np.zeros((8, 8))
    image[3, 7] = 4.0
    x, edge_index, weight = pixel_graph(image)
    assert x.tolist() == [[0.25, pytest.approx(3 / 7), 1.0]]
    assert edge_index.shape == (2, 0)
    assert weight.shape == (0, 1)


def edges_by_loop(image: NDArray[np.float64]) -> dict[tuple[int, int], float]:
    pixels = [(r, c) for r in range(image.shape[0]) for c in range(image.shape[1]) if image[r, c] > 0]

    def near(i: int) -> list[float]:
        return sorted(math.dist(pixels[i], pixels[j]) for j in range(len(pixels)) if j != i)[:8]

    def weight(i: int, j: int) -> float:
        views = [math.exp(-((math.dist(pixels[i], pixels[j]) / (sum(near(k)) / len(near(k)))) ** 2)) for k in (i, j)]
        return round(sum(views) / 2, 6)

    edges = {}
    for i in range(len(pixels)):
        heaviest = sorted((-weight(i, j), j) for j in range(len(pixels)) if j != i)[:8]
        edges.update({(i, j): -negative for negative, j in heaviest})
    return edges


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 16), min_size=20, max_size=20))
def test_edges_agree_with_a_plain_loop(ink: list[int]) -> None:
    image = np.array(ink, dtype=np.float64).reshape(4, 5)
    _, edge_index, weight = pixel_graph(image)
    found = dict(zip(map(tuple, edge_index.T.tolist()), weight.ravel().tolist(), strict=True))
    assert found == pytest.approx(edges_by_loop(image), abs=1e-6)


def test_statistics(digits: PreparedDataset) -> None:
    statistics = digits.statistics
    assert statistics.graphs == 1797
    assert statistics.mean_nodes == pytest.approx(58_736 / 1797)  # pixels of load_digits().images above 0
    assert statistics.mean_edges == pytest.approx(8 * 58_736 / 1797)
    assert digits.graphs.node_counts.max() == 42
    graphs = digits.graphs
    assert graphs.edge_attr is not None
    assert (graphs.x.shape, graphs.edge_attr.shape) == ((58_736, 3), (8 * 58_736, 1))
    assert (graphs.x.dtype, graphs.edge_attr.dtype, graphs.y.dtype) == (torch.float32, torch.float32, torch.int64)
    assert (graphs.x.min(dim=0).values.tolist(), graphs.x.max(dim=0).values.tolist()) == ([0.0625, 0, 0], [1, 1, 1])


def test_each_node_points_to_eight_neighbours(digits: PreparedDataset) -> None:
    batch = digits.graphs.gather(torch.arange(len(digits.graphs)))
    assert batch.edge_index[0].bincount(minlength=batch.num_nodes).unique().tolist() == [8]
    assert batch.edge_index[1].bincount(minlength=batch.num_nodes).min() >= 1
    assert not (batch.edge_index[0] == batch.edge_index[1]).any()


def test_the_split_is_stratified_and_disjoint(digits: PreparedDataset) -> None:
    parts = [digits.split(name) for name in ("train", "val", "test")]
    assert [len(part) for part in parts] == [1297, 250, 250]
    assert torch.cat([part.indices for part in parts]).sort().values.tolist() == list(range(1797))
    of_class = digits.graphs.y.bincount()
    assert of_class.tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    for part in parts:
        found = digits.graphs.y[part.indices].bincount(minlength=10)
        assert (found - of_class * len(part) / 1797).abs().max() < 1.5


def test_the_data_are_the_same_on_every_machine(digits: PreparedDataset) -> None:
    assert digits.fingerprint == "2096777b0b02aec2"


def test_a_second_preparation_gives_the_same_fingerprint(digits: PreparedDataset, tmp_path: Path) -> None:
    assert prepare("digits", tmp_path).fingerprint == digits.fingerprint
