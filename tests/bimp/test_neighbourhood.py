from __future__ import annotations

import torch
from graph_batches import GRAPHS, batch_of, in_edges
from torch.testing import assert_close

from bimp.neighbourhood import (
    degrees,
    max_neighbour_rows,
    max_over_neighbours,
    mean_neighbour_rows,
    softmax_over_neighbours,
    sum_neighbour_rows,
    sum_over_neighbours,
)

BATCH = batch_of(*GRAPHS)
EDGES = BATCH.edge_index
NODES = BATCH.num_nodes
GENERATOR = torch.Generator().manual_seed(0)
ROWS = torch.randn(NODES, 5, generator=GENERATOR)
MESSAGES = torch.randn(BATCH.num_edges, 5, generator=GENERATOR) - 3  # below 0, so that a maximum of 0 is told apart
WEIGHTS = torch.rand(BATCH.num_edges, generator=GENERATOR)


def each_node(of_node) -> torch.Tensor:  # type: ignore[no-untyped-def]
    """Stack ``of_node(edges into the node)``; zeros for a node without any."""
    rows = [in_edges(BATCH, node) for node in range(NODES)]
    return torch.stack([of_node(edges) if edges else torch.zeros(5) for edges in rows])


def test_degrees() -> None:
    expected = [len(in_edges(BATCH, node)) for node in range(NODES)]
    assert degrees(EDGES, NODES).tolist() == expected
    assert 0 in expected


def test_sum_and_max_of_messages() -> None:
    total = each_node(lambda edges: torch.stack([MESSAGES[number] for number, _ in edges]).sum(0))
    largest = each_node(lambda edges: torch.stack([MESSAGES[number] for number, _ in edges]).amax(0))
    assert_close(sum_over_neighbours(MESSAGES, EDGES, NODES), total)
    assert_close(max_over_neighbours(MESSAGES, EDGES, NODES), largest)


def test_sum_mean_and_max_of_rows() -> None:
    total = each_node(lambda edges: torch.stack([ROWS[u] for _, u in edges]).sum(0))
    weighted = each_node(lambda edges: torch.stack([WEIGHTS[number] * ROWS[u] for number, u in edges]).sum(0))
    mean = each_node(lambda edges: torch.stack([WEIGHTS[number] * ROWS[u] for number, u in edges]).sum(0) / len(edges))
    largest = each_node(lambda edges: torch.stack([ROWS[u] for _, u in edges]).amax(0))
    assert_close(sum_neighbour_rows(ROWS, EDGES), total)
    assert_close(sum_neighbour_rows(ROWS, EDGES, WEIGHTS), weighted)
    assert_close(mean_neighbour_rows(ROWS, EDGES, WEIGHTS), mean)
    assert_close(max_neighbour_rows(ROWS, EDGES), largest)


def test_softmax_holds_for_large_logits() -> None:
    logits = 100 * MESSAGES
    found = softmax_over_neighbours(logits, EDGES, NODES)
    for node in range(NODES):
        numbers = [number for number, _ in in_edges(BATCH, node)]
        assert_close(found[numbers], torch.softmax(logits[numbers], 0))


def test_no_edges() -> None:
    nothing = torch.empty(2, 0, dtype=torch.long)
    assert torch.equal(sum_neighbour_rows(ROWS, nothing), torch.zeros(NODES, 5))
    assert torch.equal(max_over_neighbours(torch.empty(0, 5), nothing, NODES), torch.zeros(NODES, 5))
    assert softmax_over_neighbours(torch.empty(0, 5), nothing, NODES).shape == (0, 5)


def test_gradients_against_finite_differences() -> None:
    rows = ROWS.double().requires_grad_()
    weights = WEIGHTS.double().requires_grad_()
    messages = MESSAGES.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda rows, weights: mean_neighbour_rows(rows, EDGES, weights), (rows, weights))
    assert torch.autograd.gradcheck(lambda rows: max_neighbour_rows(rows, EDGES), rows)
    assert torch.autograd.gradcheck(lambda messages: max_over_neighbours(messages, EDGES, NODES), messages)
    assert torch.autograd.gradcheck(lambda messages: softmax_over_neighbours(messages, EDGES, NODES), messages)
