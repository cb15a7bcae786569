import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bimp.data import DataError, extras, prepare, tours
from bimp.data.tour_text import read_tours
from bimp.data.tours import near_optimal_tour, tour_graph


def by_plain_loops(points: np.ndarray, tour: list[int]) -> dict[tuple[int, int], tuple[float, int]]:
    """Distance and label of each edge: one node, one neighbour at a time."""
    nodes = len(points)
    joined = {frozenset((tour[k], tour[(k + 1) % nodes])) for k in range(nodes)}
    edges = {}
    for u in range(nodes):
        others = sorted((v for v in range(nodes) if v != u), key=lambda v: (math.dist(points[u], points[v]), v))
        for v in others[:25]:
            edges[u, v] = (math.dist(points[u], points[v]), int(frozenset((u, v)) in joined))
    return edges


def assert_as_by_plain_loops(points: np.ndarray, tour: np.ndarray) -> None:
    (x, edge_index, distance), labels = tour_graph((points, tour))
    found = {
        (int(u), int(v)): (float(length), int(label))
        for (u, v), length, label in zip(edge_index.T, distance[:, 0], labels, strict=True)
    }
    expected = by_plain_loops(points, tour.tolist())
    assert found.keys() == expected.keys()
    assert len(labels) == len(expected)
    for edge, (length, label) in expected.items():
        assert found[edge] == (pytest.approx(length, abs=1e-6), label)
    np.testing.assert_allclose(x, points, atol=1e-7)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.integers(0, 2**31))
def test_graphs_against_plain_loops(nodes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert_as_by_plain_loops(rng.random((nodes, 2)), rng.permutation(nodes))


def test_a_square_worked_by_hand(tmp_path: Path) -> None:
    # Round the square; its diagonals are no part of the tour.
    (tmp_path / "a.txt").write_text("0 0 1 0 1 1 0 1 output 1 2 3 4 1\n" * 12)
    dataset = prepare("tsp", tmp_path / "root", raw=tmp_path)
    batch = next(dataset.split("test").batches(1))
    assert batch.x.tolist() == [[0, 0], [1, 0], [1, 1], [0, 1]]
    assert batch.edge_attr is not None
    labelled = {
        (u, v): (round(length, 5), label)
        for u, v, length, label in zip(
            *batch.edge_index.tolist(), batch.edge_attr[:, 0].tolist(), batch.y.tolist(), strict=True
        )
    }
    side, diagonal = (1.0, 1), (1.41421, 0)
    assert labelled == {
        **dict.fromkeys([(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (3, 0), (0, 3)], side),
        **dict.fromkeys([(0, 2), (2, 0), (1, 3), (3, 1)], diagonal),
    }
    assert [len(dataset.split(name)) for name in ("train", "val", "test")] == [10, 1, 1]


def line(nodes: int, shift: float = 0.0) -> str:
    points = " ".join(f"{k / nodes + shift} {k % 3 / 3}" for k in range(nodes))
    return f"{points} output {' '.join(str(k + 1) for k in range(nodes))} 1"


def test_three_files_are_three_splits(tmp_path: Path) -> None:
    for name, nodes, count in (("train", 5, 3), ("val", 6, 2), ("test", 7, 1)):
        (tmp_path / f"tsp50-500_{name}.txt").write_text("\n".join(line(nodes) for _ in range(count)) + "\n\n")
    dataset = prepare("tsp", tmp_path / "root", raw=tmp_path)
    assert dataset.graphs.node_counts.tolist() == [5, 5, 5, 6, 6, 7]
    assert [dataset.split(name).indices.tolist() for name in ("train", "val", "test")] == [[0, 1, 2], [3, 4], [5]]
    fewer = prepare("tsp", tmp_path / "fewer", raw=tmp_path, size=2)
    assert fewer.graphs.node_counts.tolist() == [5, 5, 6, 7]
    with pytest.raises(DataError, match=r"tsp50-500_train\.txt: found 3 instances to train on, expected size=4"):
        prepare("tsp", tmp_path / "more", raw=tmp_path, size=4)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("0 0 1 0 1 1 1 2 3 1", "no word `output`"),
        ("0 0 1 0 1 output 1 2 3 1", "5 coordinates"),
        ("0 0 1 0 1 x output 1 2 3 1", "could not convert"),
        ("0 0 1 0 1 nan output 1 2 3 1", "6 coordinates"),
        ("0 0 1 0 1 1 output 1 2 3", "a tour of 3 entries over 3 nodes"),
        ("0 0 1 0 1 1 output 1 2 2 1", "a tour of 4 entries over 3 nodes"),
        ("0 0 1 0 1 1 output 1 2 3 2", "a tour of 4 entries over 3 nodes"),
        ("0 0 1 0 1 1 output 0 1 2 0", "a tour of 4 entries over 3 nodes"),
        ("0 0 1 0 1 1 output 1 2 2.5 1", "invalid literal"),
        ("output", "0 coordinates"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, broken: str, message: str) -> None:
    (tmp_path / "a.txt").write_text(f"{line(4)}\n{broken}\n")
    with pytest.raises(DataError, match=rf"a\.txt:2: found .*{message}.*get the file again"):
        prepare("tsp", tmp_path / "root", raw=tmp_path)
    assert [path.name for path in (tmp_path / "root").iterdir() if path.suffix != ".lock"] == []


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("\n")
    with pytest.raises(DataError, match=r"one\.txt: found no instance"):
        prepare("tsp", tmp_path / "root", raw=tmp_path)
    (tmp_path / "one.txt").write_text(f"{line(4)}\n" * 11)
    with pytest.raises(DataError, match=r"one\.txt: found 11 instances, expected 12 or more"):
        prepare("tsp", tmp_path / "root", raw=tmp_path)
    (tmp_path / "two.txt").write_text(line(4))
    with pytest.raises(DataError, match=r"found one\.txt, two\.txt, expected a single file"):
        prepare("tsp", tmp_path / "root", raw=tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"TSP_v2\.pt: found no file"):
        prepare("tsp", tmp_path / "root", raw=tmp_path / "empty")
    with pytest.raises(DataError, match=r"found no folder of tours"):
        prepare("tsp", tmp_path / "root", maker="tours")


def test_the_real_file(raw_data: Path, tmp_path: Path) -> None:
    dataset = prepare("tsp", tmp_path, raw=raw_data / "tsp")
    instances = read_tours(raw_data / "tsp/sample60_geo.txt")
    assert len(dataset.graphs) == len(instances) == 60
    assert [len(dataset.split(name)) for name in ("train", "val", "test")] == [50, 5, 5]
    assert dataset.graphs.node_counts[:3].tolist() == [353, 256, 245]
    assert (dataset.graphs.edge_counts == 25 * dataset.graphs.node_counts).all()
    assert_as_by_plain_loops(*instances[2])
    # Two edges of the tour at each node, one in each direction, unless the next town is none of the 25 nearest.
    assert dataset.graphs.y.sum() / dataset.graphs.node_offsets[-1] == pytest.approx(2, abs=0.01)


def test_drawn_points_and_found_tours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fast_tsp", reason="the extra tsp is not installed")
    monkeypatch.setattr(tours, "FEWEST", 8)
    monkeypatch.setattr(tours, "MOST", 12)
    dataset = prepare("tsp", tmp_path / "root", seed=3, size=20)
    assert [len(dataset.split(name)) for name in ("train", "val", "test")] == [20, 2, 2]
    assert dataset.graphs.node_counts.unique().tolist() == [8, 9, 10, 11, 12]
    assert dataset.graphs.y.sum() == 2 * dataset.graphs.node_offsets[-1]  # so few towns are all neighbours
    assert dataset.origin.startswith("points drawn uniformly, seed 3; tours of fast-tsp")
    smaller = prepare("tsp", tmp_path / "smaller", seed=3, size=10)
    nodes = int(smaller.graphs.node_offsets[10])
    assert smaller.graphs.x[:nodes].tolist() == dataset.graphs.x[:nodes].tolist()


def test_a_tour_that_is_known_is_found() -> None:
    pytest.importorskip("fast_tsp", reason="the extra tsp is not installed")
    # On a circle the shortest tour goes round.
    rng = np.random.default_rng(0)
    angles = rng.permutation(np.linspace(0, 2 * np.pi, 60, endpoint=False))
    tour = near_optimal_tour(0.5 + 0.5 * np.column_stack([np.cos(angles), np.sin(angles)]))
    steps = np.diff(angles[np.append(tour, tour[0])]) % (2 * np.pi)
    assert np.allclose(steps, steps[0])
    assert np.isclose(min(steps[0], 2 * np.pi - steps[0]), 2 * np.pi / 60)


def test_without_the_extra_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    with pytest.raises(DataError, match=r"tsp: found no package fast-tsp.*pip install 'bimp-study\[tsp\]'"):
        prepare("tsp", tmp_path / "root", seed=0, size=1)
    assert [path.name for path in (tmp_path / "root").iterdir() if path.suffix != ".lock"] == []
