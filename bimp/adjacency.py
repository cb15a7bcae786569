"""The edges of a batch in the orders in which the layers read them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

BLOCK_EDGES = 2048
"""Edges of a block: a few rows for each fit into a core's cache, and a block is worth the calls that it takes."""


@dataclass(frozen=True)
class Block:
    """Consecutive nodes and all edges into them: ``first_node`` to ``last_node - 1``, and the edges likewise."""

    first_node: int
    last_node: int
    first_edge: int
    last_edge: int

    @property
    def nodes(self) -> slice:
        """Of the rows of nodes."""
        return slice(self.first_node, self.last_node)

    @property
    def edges(self) -> slice:
        """Of the rows of edges."""
        return slice(self.first_edge, self.last_edge)


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The edges of one batch. All orders follow from ``edge_index``; each is found once, when it is first asked for.

    Attributes:
        edge_index: ``[2, edges]`` int64; row 0 the source u, row 1 the destination v; sorted by destination.
        num_nodes: number of nodes.
    """

    edge_index: Tensor
    num_nodes: int

    @property
    def num_edges(self) -> int:
        """Number of directed edges."""
        return self.edge_index.shape[1]

    @property
    def source(self) -> Tensor:
        """U of each edge, ``[edges]``."""
        return self.edge_index[0]

    @property
    def destination(self) -> Tensor:
        """V of each edge, ``[edges]``, ascending."""
        return self.edge_index[1]

    @cached_property
    def starts(self) -> Tensor:
        """``[nodes + 1]``: the edges into node v are ``starts[v]`` to ``starts[v + 1] - 1``."""
        return _starts(self.destination, self.num_nodes)

    @cached_property
    def by_source(self) -> Tensor:
        """``[edges]``: the edges sorted by source; those of one source keep their order."""
        return self.source.argsort(stable=True)

    @cached_property
    def source_starts(self) -> Tensor:
        """``[nodes + 1]``: the edges out of node u are ``by_source[source_starts[u]:source_starts[u + 1]]``."""
        return _starts(self.source.index_select(0, self.by_source), self.num_nodes)

    @cached_property
    def destination_by_source(self) -> Tensor:
        """V of each edge, ``[edges]``, in the order of ``by_source``."""
        return self.destination.index_select(0, self.by_source)

    @cached_property
    def each_edge(self) -> Tensor:
        """0 to ``edges - 1``."""
        return torch.arange(self.num_edges, device=self.edge_index.device)

    @cached_property
    def in_degree(self) -> Tensor:
        """Edges into each node, ``[nodes]`` int64."""
        return self.starts.diff()

    @cached_property
    def out_degree(self) -> Tensor:
        """Edges out of each node, ``[nodes]`` int64."""
        ones = torch.ones_like(self.source)
        return torch.zeros_like(self.in_degree).index_add_(0, self.source, ones)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """All nodes in blocks of about ``BLOCK_EDGES`` edges, none of them empty of nodes."""
        multiples = torch.tensor(range(BLOCK_EDGES, self.num_edges, BLOCK_EDGES), device=self.starts.device)
        inner = torch.searchsorted(self.starts, multiples, right=True).tolist()
        bounds = sorted({0, *(node for node in inner if node < self.num_nodes), self.num_nodes})
        edges = self.starts[bounds].tolist()
        return tuple(Block(*nodes, *ends) for nodes, ends in zip(_pairs(bounds), _pairs(edges), strict=True))


def _starts(ascending: Tensor, num_nodes: int) -> Tensor:
    return torch.searchsorted(ascending, torch.arange(num_nodes + 1, device=ascending.device))


def _pairs(bounds: list[int]) -> list[tuple[int, int]]:
    return list(pairwise(bounds))
