"""The edges of a batch in the orders in which the layers read them."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from bimp.derived import derived, to_keep
from bimp.edge_blocks import Block, blocks_of
from bimp.edge_orders import EdgeOrders
from bimp.gated_runs import GatedRuns
from bimp.head_runs import HeadRuns
from bimp.padding import Padding, RealRows


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The edges of one batch. All orders follow from ``edge_index``; each is found once, when it is first asked for.

    Attributes:
        edge_index: ``[2, edges]`` int64; row 0 the source u, row 1 the destination v; sorted by destination.
        num_nodes: number of nodes.
        padding: which nodes and edges are real; None: all.
        orders: those that are known already; None: none is.
    """

    edge_index: Tensor
    num_nodes: int
    padding: Padding | None = None
    orders: EdgeOrders | None = None
    _normalised: dict[torch.dtype, tuple[Tensor, Tensor]] = field(default_factory=dict, init=False, repr=False)
    _both_ends: dict[int, Tensor] = field(default_factory=dict, init=False, repr=False)
    _shares: dict[torch.dtype, Tensor] = field(default_factory=dict, init=False, repr=False)
    _inverse_roots: dict[torch.dtype, Tensor] = field(default_factory=dict, init=False, repr=False)
    _by_source: dict[int, Tensor] = field(default_factory=dict, init=False, repr=False)
    _head_runs: dict[tuple[bool, int, int], HeadRuns] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        weights = None if self.orders is None else self.orders.weights
        if weights is not None:
            self._shares[weights.dtype] = weights.shares
            self._normalised[weights.dtype] = (weights.normalised, weights.row_sums)
            self._inverse_roots[weights.dtype] = weights.inverse_roots
            self._by_source[id(weights.shares)] = weights.shares_by_source
            self._by_source[id(weights.normalised)] = weights.normalised_by_source

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

    @derived
    def source(self) -> Tensor:
        """U of each edge, ``[edges]``."""
        return self.edge_index[0].contiguous()  # sparse matrices are read as if all of them were

    @derived
    def destination(self) -> Tensor:
        """V of each edge, ``[edges]``, ascending."""
        return self.edge_index[1].contiguous()

    @derived
    def starts(self) -> Tensor:
        """``[nodes + 1]``: the edges into node v are ``starts[v]`` to ``starts[v + 1] - 1``."""
        return _starts(self.destination, self.num_nodes) if self.orders is None else self.orders.starts

    @derived
    def by_source(self) -> Tensor:
        """``[edges]``: the edges sorted by source; those of one source keep their order."""
        if self.orders is not None:
            return self.orders.by_source
        # Half the digits to sort by: twice as fast where edges are many.
        return self.source.to(torch.int32).argsort(stable=True)

    @derived
    def source_in_order(self) -> Tensor:
        """U of each edge, ``[edges]``, in the order of ``by_source``: ascending."""
        return self.source.index_select(0, self.by_source)

    @derived
    def source_starts(self) -> Tensor:
        """``[nodes + 1]``: the edges out of node u are ``by_source[source_starts[u]:source_starts[u + 1]]``."""
        return _starts(self.source_in_order, self.num_nodes) if self.orders is None else self.orders.source_starts

    @derived
    def destination_by_source(self) -> Tensor:
        """V of each edge, ``[edges]``, in the order of ``by_source``."""
        if self.orders is not None:
            return self.orders.destination_by_source
        return self.destination.index_select(0, self.by_source)

    @derived
    def gated_runs(self) -> GatedRuns:
        """What a GatedGCN layer sums on a padded batch."""
        assert self.real_edges is not None
        if self.orders is not None and self.orders.gated_runs is not None:
            return self.orders.gated_runs
        return GatedRuns.of(self.edge_index, self.starts, self.real_edges.mask)

    @derived
    def each_edge(self) -> Tensor:
        """0 to ``edges - 1``."""
        return torch.arange(self.num_edges, device=self.edge_index.device)

    def rows_of_both_ends(self, rows_a_node: int) -> Tensor:
        """``[2 edges]``: of so many rows for each node, the first of u and the second of v, edge by edge."""
        if rows_a_node not in self._both_ends:
            with to_keep():
                ends = [rows_a_node * self.source, rows_a_node * self.destination + 1]
                self._both_ends[rows_a_node] = torch.stack(ends, dim=1).view(-1)
        return self._both_ends[rows_a_node]

    @derived
    def pair_starts(self) -> Tensor:
        """Where the pairs of ``rows_of_both_ends`` begin and end, ``[edges + 1]``."""
        return torch.arange(0, 2 * self.num_edges + 1, 2, device=self.edge_index.device)

    @derived
    def row_sent(self) -> Tensor:
        """Of four rows for each node, the third of u, ``[edges]``."""
        return 4 * self.source + 2

    @derived
    def in_degree(self) -> Tensor:
        """Edges into each node, ``[nodes]`` int64."""
        return self.starts.diff()

    @derived
    def out_degree(self) -> Tensor:
        """Edges out of each node, ``[nodes]`` int64."""
        if self._is_sorted_by_source:
            return self.source_starts.diff()
        ones = torch.ones_like(self.source)
        return torch.zeros_like(self.in_degree).index_add_(0, self.source, ones)

    def shares(self, dtype: torch.dtype) -> Tensor:
        """One over the number of edges into the destination of each edge, ``[edges]``."""
        if dtype not in self._shares:
            with to_keep():
                self._shares[dtype] = self.in_degree.to(dtype).reciprocal().index_select(0, self.destination)
        return self._shares[dtype]

    def inverse_roots(self, dtype: torch.dtype) -> Tensor:
        """One over the root of the number of edges out of each node, then into it, at least 1: ``[2, nodes, 1]``."""
        if dtype not in self._inverse_roots:
            with to_keep():
                degrees = torch.stack([self.out_degree, self.in_degree]).clamp(min=1).to(dtype)
                self._inverse_roots[dtype] = degrees.rsqrt().unsqueeze(2)
        return self._inverse_roots[dtype]

    def normalised(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Weight of each edge in D^-1/2 A D^-1/2, ``[edges]``, and the row sums of that, ``[nodes]``.

        A directed graph counts as (A + A^T) / 2.
        """
        if dtype not in self._normalised:
            with to_keep():
                self._normalised[dtype] = self._normalise(dtype)
        return self._normalised[dtype]

    def _normalise(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        degree = 0.5 * (self.in_degree + self.out_degree).to(dtype)
        weights = (degree.index_select(0, self.source) * degree.index_select(0, self.destination)).rsqrt()
        # An edge u -> v puts half of its weight at (u, v) and half at (v, u).
        if self._is_sorted_by_source:  # always in the same order
            sums = self._sums(weights, self.by_source, self.source_starts)
            sums += self._sums(weights, self.each_edge, self.starts)
        else:
            sums = torch.zeros_like(degree).index_add_(0, self.source, weights).index_add_(0, self.destination, weights)
        return weights, sums / 2

    @property
    def _is_sorted_by_source(self) -> bool:
        """Whether the edges are, or will be anyway, so that nothing is to be added up in an order of chance."""
        return self.padding is not None or self.orders is not None

    @staticmethod
    def _sums(values: Tensor, picks: Tensor, starts: Tensor) -> Tensor:
        """Of each run of places, of the values at them."""
        sums, *_ = torch.embedding_bag(values.unsqueeze(1), picks, starts, mode=0, include_last_offset=True)
        return sums.squeeze(1)

    def in_order_of_source(self, weights: Tensor) -> Tensor:
        """The ``weights`` of the edges, ``[edges]``, in the order of ``by_source``.

        Its own, :meth:`shares` and :meth:`normalised`, which layer after layer asks for, are put into it once.
        """
        if id(weights) in self._by_source:
            return self._by_source[id(weights)]
        in_order = weights.index_select(0, self.by_source)
        if any(weights is own for own in (*self._shares.values(), *(own for own, _ in self._normalised.values()))):
            self._by_source[id(weights)] = in_order
        return in_order

    def runs_into(self, heads: int, slots: int) -> HeadRuns:
        """The edges into each node, once for each of ``heads`` heads.

        Read are rows of which a node has ``slots``, summed to rows of which it has one a head.
        """
        key = (True, heads, slots)
        if key not in self._head_runs:
            self._head_runs[key] = HeadRuns(
                heads=heads,
                summed_slots=heads,
                read_slots=slots,
                node_starts=self.starts,
                ends=self.destination,
                others=self.source,
            )
        return self._head_runs[key]

    def runs_out_of(self, heads: int, slots: int) -> HeadRuns:
        """The edges out of each node, in the order of ``by_source``, once for each of ``heads`` heads.

        Read are rows of which a node has one a head, summed to rows of which it has ``slots``.
        """
        key = (False, heads, slots)
        if key not in self._head_runs:
            self._head_runs[key] = HeadRuns(
                heads=heads,
                summed_slots=slots,
                read_slots=heads,
                node_starts=self.source_starts,
                ends=self.source_in_order,
                others=self.destination_by_source,
            )
        return self._head_runs[key]

    @derived
    def blocks(self) -> tuple[Block, ...]:
        """All nodes in blocks, each with the edges into its nodes."""
        return blocks_of(self.source, self.destination, self.starts)


def _starts(ascending: Tensor, num_nodes: int) -> Tensor:
    # The operator by which sparse tensors are compressed: one pass over the edges, where a search costs several.
    starts: Tensor = torch._convert_indices_from_coo_to_csr(ascending, num_nodes)
    return starts
