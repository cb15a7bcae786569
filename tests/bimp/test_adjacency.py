"""The orders in which edges are read, against lists sorted in Python."""

from __future__ import annotations

import pytest
import torch
from graph_batches import SmallGraph, batch_of, small_graphs
from hypothesis import given
from hypothesis import strategies as st

import bimp.edge_blocks
from bimp.adjacency import Adjacency
from bimp.edge_blocks import Block


@given(st.lists(small_graphs(), min_size=1, max_size=6))
def test_orders(graphs: list[SmallGraph]) -> None:
    adjacency = batch_of(*graphs).adjacency
    edges = adjacency.edge_index.t().tolist()
    by_source = sorted(range(len(edges)), key=lambda number: edges[number][0])
    assert adjacency.by_source.tolist() == by_source
    assert adjacency.destination_by_source.tolist() == [edges[number][1] for number in by_source]
    for node in range(adjacency.num_nodes):
        into = [number for number, (_, v) in enumerate(edges) if v == node]
        out_of = [number for number in by_source if edges[number][0] == node]
        start, end = adjacency.starts[node : node + 2].tolist()
        assert list(range(start, end)) == into
        start, end = adjacency.source_starts[node : node + 2].tolist()
        assert adjacency.by_source[start:end].tolist() == out_of
        assert adjacency.in_degree[node] == len(into)
        assert adjacency.out_degree[node] == len(out_of)


@given(st.lists(small_graphs(), min_size=1, max_size=6), st.integers(1, 5))
def test_blocks_hold_every_node_and_edge_once(graphs: list[SmallGraph], size: int) -> None:
    batch = batch_of(*graphs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bimp.edge_blocks, "BLOCK_EDGES", size)
        blocks = batch.adjacency.blocks
    nodes = [node for block in blocks for node in range(batch.num_nodes)[block.nodes]]
    edges = [edge for block in blocks for edge in range(batch.num_edges)[block.edges]]
    assert nodes == list(range(batch.num_nodes))
    assert edges == list(range(batch.num_edges))
    for block in blocks:
        assert block.nodes.start < block.nodes.stop
        assert set(batch.edge_index[1][block.edges].tolist()) <= set(range(batch.num_nodes)[block.nodes])
        assert torch.equal(block.source, batch.edge_index[0][block.edges])
        assert torch.equal(block.destination, batch.edge_index[1][block.edges])
        assert torch.equal(block.starts + block.edges.start, batch.adjacency.starts[nodes_and_end(block)])
        assert block.places.tolist() == list(range(block.source.numel()))
        without_last_node = [v for v in block.destination.tolist() if v < block.nodes.stop - 1]
        assert len(without_last_node) <= size


def nodes_and_end(block: Block) -> slice:
    return slice(block.nodes.start, block.nodes.stop + 1)


def test_no_nodes_at_all() -> None:
    assert Adjacency(torch.empty(2, 0, dtype=torch.long), 0).blocks == ()
