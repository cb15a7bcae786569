import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from bimp.data import PackedGraphs, flip_signs
from bimp.data.positional import laplacian_eigenvectors, positional_encodings


def both_ways(edges: list[tuple[int, int]]) -> np.ndarray:
    return np.array([*edges, *((v, u) for u, v in edges)]).reshape(-1, 2).T


def test_a_path_worked_by_hand() -> None:
    # Normalised Laplacian of 0 - 1 - 2: off the diagonal -1/sqrt(2); eigenvalues 0, 1, 2.
    found = laplacian_eigenvectors(both_ways([(0, 1), (1, 2)]), 3, 2)
    # (1, 0, -1) / sqrt(2) has two entries of one size: the first is positive. (1, -sqrt(2), 1) / 2: the largest is.
    expected = np.array([[1 / math.sqrt(2), -0.5], [0, 1 / math.sqrt(2)], [-1 / math.sqrt(2), -0.5]])
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_a_graph_of_few_nodes_is_padded_with_zeros() -> None:
    found = laplacian_eigenvectors(both_ways([(0, 1)]), 2, 4)
    np.testing.assert_allclose(found, [[2**-0.5, 0, 0, 0], [-(2**-0.5), 0, 0, 0]], atol=1e-7)
    assert laplacian_eigenvectors(np.empty((2, 0), dtype=np.int64), 1, 3).tolist() == [[0, 0, 0]]


@st.composite
def weighted_paths(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """Random graphs; edges may be missing in one direction, and nodes may have none."""
    nodes = draw(st.integers(1, 9))
    pairs = [(u, v) for u in range(nodes) for v in range(nodes) if u != v]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return np.array(edges, dtype=np.int64).reshape(-1, 2).T, nodes


@settings(max_examples=100, deadline=None)
@given(weighted_paths(), st.integers(1, 6))
def test_they_are_eigenvectors_in_order_with_the_sign_that_is_promised(
    graph: tuple[np.ndarray, int], count: int
) -> None:
    edge_index, nodes = graph
    laplacian = np.zeros((nodes, nodes))
    for u, v in edge_index.T:
        laplacian[u, v] -= 0.5
        laplacian[v, u] -= 0.5
    degrees = -laplacian.sum(axis=1)
    for u in range(nodes):
        for v in range(nodes):
            if laplacian[u, v]:
                laplacian[u, v] /= math.sqrt(degrees[u] * degrees[v])
        laplacian[u, u] += 1
    values = np.linalg.eigvalsh(laplacian)
    found = laplacian_eigenvectors(edge_index, nodes, count).astype(np.float64)
    real = min(count, nodes - 1)
    assert not found[:, real:].any()
    for column in range(real):
        vector = found[:, column]
        np.testing.assert_allclose(laplacian @ vector, values[column + 1] * vector, atol=1e-5)
        largest = next(entry for entry in vector if abs(entry) > abs(vector).max() * (1 - 1e-5))
        assert largest > 0
    np.testing.assert_allclose(found[:, :real].T @ found[:, :real], np.eye(real), atol=1e-5)


def packed() -> PackedGraphs:
    graphs = []
    for nodes in (3, 1, 5, 2):
        edges = torch.from_numpy(both_ways([(node, node + 1) for node in range(nodes - 1)]))
        graphs.append(Data(x=torch.arange(nodes), edge_index=edges.long(), y=torch.tensor([0])))
    return PackedGraphs.pack(graphs, labels="graph")


def test_every_node_gets_its_own_graphs_encodings() -> None:
    graphs = packed()
    graphs = replace(graphs, pos_enc=positional_encodings(graphs, 3))
    batch = graphs.gather(torch.tensor([2, 0]))
    assert batch.pos_enc is not None
    assert batch.pos_enc.dtype == torch.float32
    for nodes, rows in ((5, batch.pos_enc[:5]), (3, batch.pos_enc[5:])):
        path = laplacian_eigenvectors(both_ways([(node, node + 1) for node in range(nodes - 1)]), nodes, 3)
        np.testing.assert_array_equal(rows.numpy(), path)
    assert graphs.gather(torch.tensor([1])).pos_enc.tolist() == [[0, 0, 0]]  # type: ignore[union-attr]
    on_device = batch.to(torch.device("meta"))
    assert on_device.pos_enc is not None
    assert on_device.pos_enc.device.type == "meta"


def test_a_batch_without_encodings_has_none_and_is_not_changed() -> None:
    batch = packed().gather(torch.tensor([0, 1]))
    assert batch.pos_enc is None
    assert flip_signs(batch, torch.Generator().manual_seed(0)) is batch


def test_each_eigenvector_gets_one_sign_for_the_whole_batch() -> None:
    graphs = packed()
    graphs = replace(graphs, pos_enc=positional_encodings(graphs, 4))
    batch = graphs.gather(torch.tensor([0, 2]))
    assert batch.pos_enc is not None
    generator = torch.Generator().manual_seed(7)
    seen = set()
    for _ in range(200):
        flipped = flip_signs(batch, generator)
        assert flipped.pos_enc is not None
        signs = []
        for column in range(4):
            same = torch.equal(flipped.pos_enc[:, column], batch.pos_enc[:, column])
            assert same or torch.equal(flipped.pos_enc[:, column], -batch.pos_enc[:, column])
            signs.append(same)
        seen.add(tuple(signs))
        assert flipped.x is batch.x
    assert len(seen) == 16  # every combination: each sign is drawn by itself
    first = flip_signs(batch, torch.Generator().manual_seed(3)).pos_enc
    assert torch.equal(first, flip_signs(batch, torch.Generator().manual_seed(3)).pos_enc)  # type: ignore[arg-type]


@pytest.mark.parametrize("nodes", [4, 6])
def test_the_sign_does_not_depend_on_how_many_are_asked_for(nodes: int) -> None:
    edges = both_ways([(node, node + 1) for node in range(nodes - 1)])
    many = laplacian_eigenvectors(edges, nodes, 5)
    np.testing.assert_array_equal(many[:, :2], laplacian_eigenvectors(edges, nodes, 2))
