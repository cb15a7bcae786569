"""Small batches for the tests of the model."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor

from bimp.data.batch import GraphBatch

Edge = tuple[int, int]


@dataclass(frozen=True)
class SmallGraph:
    """A graph as one would write it down: a number of nodes, and edges (source, destination)."""

    nodes: int
    edges: tuple[Edge, ...] = ()


PATH = SmallGraph(3, ((0, 1), (1, 0), (1, 2), (2, 1)))
DIRECTED = SmallGraph(4, ((0, 1), (2, 1), (3, 1), (1, 0), (3, 2)))
WITH_ISOLATED = SmallGraph(4, ((0, 1), (1, 0), (0, 2), (2, 0)))
ONE_NODE = SmallGraph(1)
GRAPHS = (PATH, DIRECTED, WITH_ISOLATED, ONE_NODE)


def batch_of(
    *graphs: SmallGraph, x: Tensor | None = None, edge_attr: Tensor | None = None, y: Tensor | None = None
) -> GraphBatch:
    """The graphs side by side; ``x`` and ``edge_attr`` in the order of the graphs' own nodes and edges."""
    ptr = torch.tensor([0, *(graph.nodes for graph in graphs)]).cumsum(0)
    columns = [
        (u + int(start), v + int(start)) for graph, start in zip(graphs, ptr, strict=False) for u, v in graph.edges
    ]
    edge_index = torch.tensor(columns, dtype=torch.long).reshape(-1, 2).t()
    order = edge_index[1].argsort(stable=True)
    counts = torch.tensor([graph.nodes for graph in graphs])
    return GraphBatch(
        x=torch.zeros(int(ptr[-1]), 1) if x is None else x,
        edge_index=edge_index[:, order],
        edge_attr=None if edge_attr is None else edge_attr[order],
        y=torch.zeros(len(graphs)) if y is None else y,
        batch=torch.arange(len(graphs)).repeat_interleave(counts),
        ptr=ptr,
    )


def in_edges(batch: GraphBatch, node: int) -> list[tuple[int, int]]:
    """(number of the edge, its source) of every edge into ``node``, found by looking at each edge."""
    return [(number, int(u)) for number, (u, v) in enumerate(batch.edge_index.t().tolist()) if v == node]


@st.composite
def small_graphs(draw: st.DrawFn) -> SmallGraph:
    nodes = draw(st.integers(1, 5))
    pairs = [(u, v) for u in range(nodes) for v in range(nodes) if u != v]
    return SmallGraph(nodes, tuple(draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else ()))
