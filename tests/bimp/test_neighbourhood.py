from __future__ import annotations

import pytest
import torch
from graph_batches import GRAPHS, batch_of, in_edges
from torch.testing import assert_close

from bimp.adjacency import Adjacency
from bimp.layers.graphsage import GraphSAGELayer
from bimp.neighbourhood import (
    max_rectified_neighbour_rows,
    mean_neighbour_rows,
    softmax_over_neighbours,
    sum_along_edges,
    sum_neighbour_rows,
    sum_over_neighbours,
)
from bimp.padding import Padding, RealRows

BATCH = batch_of(*GRAPHS)
EDGES = BATCH.adjacency
NODES = BATCH.num_nodes
GENERATOR = torch.Generator().manual_seed(0)
ROWS = torch.randn(NODES, 5, generator=GENERATOR)
MESSAGES = torch.randn(BATCH.num_edges, 5, generator=GENERATOR) - 3  # below 0, so that a maximum of 0 is told apart
WEIGHTS = torch.rand(BATCH.num_edges, generator=GENERATOR)


def each_node(of_node) -> torch.Tensor:  # type: ignore[no-untyped-def]
    """Stack ``of_node(edges into the node)``; zeros for a node without any."""
    rows = [in_edges(BATCH, node) for node in range(NODES)]
    return torch.stack([of_node(edges) if edges else torch.zeros(5) for edges in rows])


@pytest.fixture(params=["kernels", "plain"], autouse=True)
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain":
        monkeypatch.setattr("bimp.neighbourhood.kernels_serve", lambda *_: False)
    else:  # several blocks, of one node each or more
        monkeypatch.setattr("bimp.edge_blocks.BLOCK_EDGES", 2)


def test_degrees() -> None:
    expected = [len(in_edges(BATCH, node)) for node in range(NODES)]
    assert EDGES.in_degree.tolist() == expected
    assert 0 in expected


def test_sum_of_messages() -> None:
    total = each_node(lambda edges: torch.stack([MESSAGES[number] for number, _ in edges]).sum(0))
    assert_close(sum_over_neighbours(MESSAGES, EDGES), total)


def test_sum_mean_and_max_of_rows() -> None:
    total = each_node(lambda edges: torch.stack([ROWS[u] for _, u in edges]).sum(0))
    weighted = each_node(lambda edges: torch.stack([WEIGHTS[number] * ROWS[u] for number, u in edges]).sum(0))
    mean = each_node(lambda edges: torch.stack([WEIGHTS[number] * ROWS[u] for number, u in edges]).sum(0) / len(edges))
    largest = each_node(lambda edges: torch.stack([ROWS[u].relu() for _, u in edges]).amax(0))
    largest_weighted = each_node(
        lambda edges: torch.stack([WEIGHTS[number] * ROWS[u].relu() for number, u in edges]).amax(0)
    )
    assert_close(sum_neighbour_rows(ROWS, EDGES), total)
    assert_close(sum_neighbour_rows(ROWS, EDGES, WEIGHTS), weighted)
    assert_close(mean_neighbour_rows(ROWS, EDGES, WEIGHTS), mean)
    assert_close(max_rectified_neighbour_rows(ROWS, EDGES), largest)
    assert_close(max_rectified_neighbour_rows(ROWS, EDGES, WEIGHTS), largest_weighted)


def test_first_of_equal_maxima_takes_the_gradient() -> None:
    edge_index = torch.tensor([[2, 0, 1, 0], [0, 0, 0, 1]])  # node 0 hears 2, then 0, then 1; node 1 hears 0
    rows = torch.tensor([[5.0, 1.0], [5.0, 3.0], [5.0, 2.0]], requires_grad=True)
    weights = torch.ones(4, requires_grad=True)
    largest = max_rectified_neighbour_rows(rows, Adjacency(edge_index, 3), weights)
    assert largest.tolist() == [[5, 3], [5, 1], [0, 0]]
    largest.backward(torch.tensor([[1.0, 10.0], [100.0, 1000.0], [7.0, 7.0]]))
    assert rows.grad is not None
    assert weights.grad is not None
    assert rows.grad.tolist() == [[100, 1000], [0, 10], [1, 0]]
    assert weights.grad.tolist() == [5, 0, 30, 1500]


def test_not_a_number_reaches_sum_and_maximum() -> None:
    rows = ROWS.clone().requires_grad_()
    with torch.no_grad():
        rows[0] = torch.nan
    for reduce in (sum_neighbour_rows, max_rectified_neighbour_rows):
        reduced = reduce(rows, EDGES)
        heard = [any(u == 0 for _, u in in_edges(BATCH, node)) for node in range(NODES)]
        assert (~reduced.isfinite()).all(1).tolist() == heard
        reduced.sum().backward()


def star(in_neighbours: int, padded: bool) -> Adjacency:
    """Node 0 hears all others."""
    edge_index = torch.stack([torch.arange(1, in_neighbours + 1), torch.zeros(in_neighbours, dtype=torch.int64)])
    real = Padding(*(RealRows(torch.ones(rows, dtype=torch.bool)) for rows in (in_neighbours + 1, in_neighbours)))
    return Adjacency(edge_index, in_neighbours + 1, real if padded else None)


@pytest.mark.parametrize("wants_gradient", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("in_neighbours", [1, 2, 3, 6])  # kernels find the place by two operators, for few and for many
def test_not_a_number_is_not_lost_anywhere_in_a_neighbourhood(
    in_neighbours: int, padded: bool, wants_gradient: bool
) -> None:
    edges = star(in_neighbours, padded)
    weights = torch.arange(1.0, in_neighbours + 1)
    for place in range(in_neighbours):
        for given in (None, weights):
            rows = torch.ones(in_neighbours + 1, 3)
            rows[1 + place, 1] = torch.nan
            largest = max_rectified_neighbour_rows(rows.requires_grad_(wants_gradient), edges, given)
            assert largest[0].isfinite().tolist() == [True, False, True]
            assert largest[1:].tolist() == in_neighbours * [[0, 0, 0]]
        spoiled = max_rectified_neighbour_rows(torch.ones(in_neighbours + 1, 3), edges, weights * torch.nan)
        assert not bool(spoiled[0].isfinite().any())


@pytest.mark.parametrize("padded", [False, True])
def test_graphsage_lets_through_what_its_map_made_not_a_number(padded: bool) -> None:
    """Of the three rows that node 0 hears, the last is finite, but its map an infinity less an infinity."""
    layer = GraphSAGELayer(2).eval()
    with torch.no_grad():
        layer.pool.weight.copy_(torch.tensor([[1e20, -1e20], [1e20, -1e20]]))
    rows = torch.ones(4, 2)
    rows[3] = 1e20
    assert layer(rows, star(3, padded))[0].isnan().all()


def test_sum_along_edges() -> None:
    expected = torch.stack([ROWS[u] + 2 * ROWS[v] for u, v in BATCH.edge_index.t().tolist()])
    assert torch.equal(sum_along_edges(ROWS, 2 * ROWS, EDGES), expected)


def test_softmax_holds_for_large_logits() -> None:
    logits = 100 * MESSAGES
    found = softmax_over_neighbours(logits, EDGES)
    for node in range(NODES):
        numbers = [number for number, _ in in_edges(BATCH, node)]
        assert_close(found[numbers], torch.softmax(logits[numbers], 0))


def test_no_edges() -> None:
    nothing = Adjacency(torch.empty(2, 0, dtype=torch.long), NODES)
    rows, weights = ROWS.clone().requires_grad_(), torch.empty(0, requires_grad=True)
    for reduce in (sum_neighbour_rows, max_rectified_neighbour_rows):
        reduced = reduce(rows, nothing, weights)
        assert torch.equal(reduced, torch.zeros(NODES, 5))
        reduced.sum().backward()
    assert rows.grad is not None
    assert torch.equal(rows.grad, torch.zeros(NODES, 5))
    assert softmax_over_neighbours(torch.empty(0, 5), nothing).shape == (0, 5)


def test_gradients_against_finite_differences() -> None:
    rows = ROWS.double().requires_grad_()
    weights = WEIGHTS.double().requires_grad_()
    messages = MESSAGES.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda rows, weights: mean_neighbour_rows(rows, EDGES, weights), (rows, weights))
    assert torch.autograd.gradcheck(lambda rows: sum_along_edges(rows, -3 * rows, EDGES), rows)
    assert torch.autograd.gradcheck(lambda rows: sum_neighbour_rows(rows, EDGES), rows)
    assert torch.autograd.gradcheck(lambda rows: max_rectified_neighbour_rows(rows, EDGES), rows)
    assert torch.autograd.gradcheck(
        lambda rows, weights: max_rectified_neighbour_rows(rows, EDGES, weights), (rows, weights)
    )
    assert torch.autograd.gradcheck(lambda messages: softmax_over_neighbours(messages, EDGES), messages)
