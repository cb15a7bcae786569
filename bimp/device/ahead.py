"""Batches of one size that are gathered several at a time, for steps that each take the next.

Gathering a batch and sorting its edges takes as many launches as several layers do, and so does what else follows from
its graphs alone. Done for several batches at once they are shared by them, and a captured step begins with a copy of
what is its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from bimp.adjacency import Adjacency
from bimp.device.board import on_its_way
from bimp.device.resident import GatheredRows, ResidentGraphs
from bimp.device.shapes import Shape
from bimp.device.slots import Slots
from bimp.edge_orders import EdgeOrders
from bimp.edge_weights import EdgeWeights
from bimp.padding import RowShares

MOST_STEPS = 16
MOST_ROWS = 250_000
"""Nodes and edges up to which several steps are gathered at once: beyond, launches are few for what each has to do."""
FEWEST_SHARING = 4
"""Steps gathered at once from which on weights and shares are found with them: for fewer it takes what it spares."""


class BatchesAhead:
    """The batches of an epoch that are padded to ``size``, in their order.

    Args:
        resident: where the graphs are.
        size: of each run's batch.
        runs: how many take a batch each in a step; their batches lie side by side.
        dtype: of the networks.
        has_gated_runs: whether the layers are those of GatedGCN, which read edges in orders of their own.
        has_weights: whether layers or gates read weights that follow from the edges alone.
    """

    def __init__(
        self,
        resident: ResidentGraphs,
        size: Shape,
        runs: int,
        dtype: torch.dtype,
        *,
        has_gated_runs: bool,
        has_weights: bool,
    ) -> None:
        self.resident = resident
        self.size = size
        self._runs = runs
        self._dtype = dtype
        self._has_gated_runs = has_gated_runs
        self._has_weights = has_weights
        self._most = max(min(MOST_STEPS, MOST_ROWS // (runs * size.rows)), 1)
        self._device = resident.graphs.node_offsets.device
        self._next = torch.zeros((), dtype=torch.int64, device=self._device)
        self._slots: Slots[GatheredRows] | None = None
        self._coming = torch.empty(0, runs, size.graphs, dtype=torch.int64, device=self._device)
        self._ready = 0

    @property
    def state(self) -> list[Tensor]:
        """What a step changes."""
        return [self._next]

    def begin(self, picks: Sequence[Tensor]) -> None:
        """Begin an epoch with so many steps, of each the graphs of every run, ``[runs, graphs]`` in main memory."""
        in_main_memory = on_its_way(torch.stack(list(picks)), self._device)
        self._coming = in_main_memory.to(self._device, non_blocking=True)
        self._ready = 0

    def advance(self) -> None:
        """See to it that the next step's batches are there; to be called before it, and not by it."""
        if self._ready == 0:
            self._ready = min(len(self._coming), self._most)
            content = self._gathered(self._coming[: self._ready])
            self._coming = self._coming[self._ready :]
            if self._slots is None:
                self._slots = Slots(content, self._most, self._device)
            self._slots.fill(content)
            self._next.zero_()
        self._ready -= 1

    def take(self) -> GatheredRows:
        """The next step's batches; part of the step."""
        assert self._slots is not None
        rows = self._slots.take(self._next)
        self._next.add_(1)
        return rows

    def _gathered(self, picks: Tensor) -> GatheredRows:
        """The batches of several steps, of ``[steps, runs, graphs]``: each tensor has a dimension for them in front."""
        steps, (nodes, edges) = len(picks), (self.size.nodes, self.size.edges)
        rows = self.resident.gather_rows(picks.flatten(0, 1), self.size, padded=True)
        assert rows.real_nodes is not None
        assert rows.real_edges is not None

        def by_step(tensor: Tensor) -> Tensor:
            return tensor.view(steps, len(tensor) // steps, *tensor.shape[1:])

        edge_index = rows.edge_index.view(2, steps, self._runs, edges)
        first_node = torch.arange(0, self._runs * nodes, nodes, device=self._device)
        joined = (edge_index + first_node.unsqueeze(1)).flatten(2)
        real_nodes, real_edges = by_step(rows.real_nodes), by_step(rows.real_edges)
        orders = EdgeOrders.of(joined, self._runs * nodes, real_edges.flatten(1) if self._has_gated_runs else None)
        is_shared = self._most >= FEWEST_SHARING
        if is_shared and self._has_weights:
            orders = replace(orders, weights=self._weights(joined, orders))
        return GatheredRows(
            x=by_step(rows.x),
            edge_index=edge_index.transpose(0, 1),
            edge_attr=None if rows.edge_attr is None else by_step(rows.edge_attr),
            y=by_step(rows.y),
            node_graph=by_step(rows.node_graph),
            ptr=by_step(rows.ptr),
            pos_enc=None if rows.pos_enc is None else by_step(rows.pos_enc),
            real_nodes=real_nodes,
            real_edges=real_edges,
            node_shares=RowShares.of(real_nodes, self._dtype) if is_shared else None,
            edge_shares=RowShares.of(real_edges, self._dtype) if is_shared else None,
            orders=orders,
        )

    def _weights(self, edge_index: Tensor, orders: EdgeOrders) -> EdgeWeights:
        """Of the batches of several steps, ``[2, steps, edges]``: those of all as one graph, cut apart."""
        steps, nodes = len(orders.starts), self._runs * self.size.nodes
        first_node = torch.arange(0, steps * nodes, nodes, device=self._device).unsqueeze(1)
        adjacency = Adjacency((edge_index + first_node).flatten(1), steps * nodes, orders=orders.side_by_side())
        shares, (normalised, row_sums) = adjacency.shares(self._dtype), adjacency.normalised(self._dtype)
        return EdgeWeights(
            shares=shares.view(steps, -1),
            shares_by_source=adjacency.in_order_of_source(shares).view(steps, -1),
            normalised=normalised.view(steps, -1),
            normalised_by_source=adjacency.in_order_of_source(normalised).view(steps, -1),
            row_sums=row_sums.view(steps, -1),
            inverse_roots=adjacency.inverse_roots(self._dtype).view(2, steps, nodes, 1).transpose(0, 1),
        )
