"""The edges of a batch in the orders in which the layers read them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from bimp.padding import Padding, RealRows

BLOCK_EDGES = 2048
"""Edges of a block: a few rows for each fit into a core's cache, and a block is worth the calls that it takes."""


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive nodes and all edges into them.

    Attributes:
        nodes, edges: which rows of the batch they are.
        source, destination: u and v of each edge, ``[edges of the block]``.
        starts: where the edges into each node begin, counted within the block, and where the last ones end.
        places: 0 to the number of edges of the block, less one.
    """

    nodes: slice
    edges: slice
    source: Tensor
    destination: Tensor
    starts: Tensor
    places: Tensor


@dataclass(frozen=True, eq=False)
class HeadRuns:
    """The edges once for each head, so that rows ``[nodes, heads, width]`` are summed as ``nodes * heads`` rows.

    A run holds the edges of one end and one head: first all heads of node 0, then those of node 1.

    Attributes:
        starts: ``[nodes * heads + 1]``, where the runs begin and end.
        rows: ``[edges * heads]``, which of the ``nodes * heads`` rows stands at the other end.
        order: ``[edges * heads]``, where in a tensor ``[edges, heads]`` the number of each place stands.
    """

    starts: Tensor
    rows: Tensor
    order: Tensor

    @cached_property
    def place(self) -> Tensor:
        """The inverse of ``order``."""
        places = torch.arange(self.order.numel(), dtype=self.order.dtype)
        return torch.empty_like(places).scatter_(0, self.order.long(), places)


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The edges of one batch. All orders follow from ``edge_index``; each is found once, when it is first asked for.

    Attributes:
        edge_index: ``[2, edges]`` int64; row 0 the source u, row 1 the destination v; sorted by destination.
        num_nodes: number of nodes.
        padding: which nodes and edges are real; None: all.
    """

    edge_index: Tensor
    num_nodes: int
    padding: Padding | None = None
    _normalised: dict[torch.dtype, tuple[Tensor, Tensor]] = field(default_factory=dict, init=False, repr=False)
    _head_runs: dict[tuple[int, bool], HeadRuns] = field(default_factory=dict, init=False, repr=False)

    @property
    def num_edges(self) -> int:
        """Number of directed edges."""
        return self.edge_index.shape[1]

    @property
    def real_nodes(self) -> RealRows | None:
        """Which nodes are real; None: all."""
        return None if self.padding is None else self.padding.nodes

    @property
    def real_edges(self) -> RealRows | None:
        """Which edges are real; None: all."""
        return None if self.padding is None else self.padding.edges

    @cached_property
    def source(self) -> Tensor:
        """U of each edge, ``[edges]``."""
        return self.edge_index[0]

    @cached_property
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
    def has_edges_into_every_node(self) -> bool:
        """Whether every node has an in-neighbour."""
        return bool((self.in_degree > 0).all())

    @cached_property
    def out_degree(self) -> Tensor:
        """Edges out of each node, ``[nodes]`` int64."""
        ones = torch.ones_like(self.source)
        return torch.zeros_like(self.in_degree).index_add_(0, self.source, ones)

    def normalised(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Weight of each edge in D^-1/2 A D^-1/2, ``[edges]``, and the row sums of that, ``[nodes]``.

        A directed graph counts as (A + A^T) / 2.
        """
        if dtype not in self._normalised:
            self._normalised[dtype] = self._normalise(dtype)
        return self._normalised[dtype]

    def _normalise(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        degree = 0.5 * (self.in_degree + self.out_degree).to(dtype)
        weights = (degree.index_select(0, self.source) * degree.index_select(0, self.destination)).rsqrt()
        # An edge u -> v puts half of its weight at (u, v) and half at (v, u).
        sums = torch.zeros_like(degree).index_add(0, self.source, weights).index_add(0, self.destination, weights)
        return weights, sums / 2

    def head_runs(self, heads: int, *, by_source: bool = False) -> HeadRuns:
        """The edges once for each of ``heads`` heads, in runs into each node, or out of each."""
        if (heads, by_source) not in self._head_runs:
            edges = self.by_source if by_source else self.each_edge
            starts = self.source_starts if by_source else self.starts
            others = self.destination_by_source if by_source else self.source
            self._head_runs[heads, by_source] = _head_runs(heads, edges, starts, others)
        return self._head_runs[heads, by_source]

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """All nodes in blocks of about ``BLOCK_EDGES`` edges, none of them empty of nodes."""
        multiples = torch.tensor(range(BLOCK_EDGES, self.num_edges, BLOCK_EDGES), device=self.starts.device)
        inner = torch.searchsorted(self.starts, multiples, right=True).tolist()
        bounds = sorted({0, *(node for node in inner if node < self.num_nodes), self.num_nodes})
        ends = self.starts[bounds].tolist()
        return tuple(
            self._block(slice(*nodes), slice(*edges))
            for nodes, edges in zip(pairwise(bounds), pairwise(ends), strict=True)
        )

    def _block(self, nodes: slice, edges: slice) -> Block:
        return Block(
            nodes=nodes,
            edges=edges,
            source=self.source[edges],
            destination=self.destination[edges],
            starts=self.starts[nodes.start : nodes.stop + 1] - edges.start,
            places=self.each_edge[: edges.stop - edges.start],
        )


def _starts(ascending: Tensor, num_nodes: int) -> Tensor:
    return torch.searchsorted(ascending, torch.arange(num_nodes + 1, device=ascending.device))


def _head_runs(heads: int, edges: Tensor, starts: Tensor, others: Tensor) -> HeadRuns:
    """Of the edges in runs, with their other ends: each run once for each head."""
    each_head = torch.arange(heads)
    lengths = starts.diff()
    # Before an edge of head h stand the runs before its own, all heads of them, and h times its own run.
    first = (starts[:-1] * (heads - 1)).repeat_interleave(lengths) + torch.arange(edges.numel())
    places = torch.addcmul(first.unsqueeze(1), lengths.repeat_interleave(lengths).unsqueeze(1), each_head).view(-1)
    # Half the memory to read wherever the layers go along the edges.
    dtype = torch.int32 if edges.numel() * heads <= torch.iinfo(torch.int32).max else torch.int64
    rows = torch.empty(places.numel(), dtype=dtype)
    order = torch.empty_like(rows)
    rows.scatter_(0, places, torch.add(others.unsqueeze(1) * heads, each_head).view(-1).to(dtype))
    order.scatter_(0, places, torch.add(edges.unsqueeze(1) * heads, each_head).view(-1).to(dtype))
    run_starts = torch.zeros(lengths.numel() * heads + 1, dtype=dtype)
    run_starts[1:] = lengths.repeat_interleave(heads).cumsum(0)
    return HeadRuns(starts=run_starts, rows=rows, order=order)
