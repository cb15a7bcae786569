"""A dataset on an accelerator, and batches that are gathered there.

Sizes of batches are known on the host (:mod:`bimp.device.shapes`), so that gathering never waits for the device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from bimp.data import GraphBatch, GraphSplit, PackedGraphs
from bimp.device.shapes import Shape
from bimp.edge_orders import EdgeOrders
from bimp.padding import UNLABELLED, Padding, RealRows, RowShares


def bytes_of(split: GraphSplit) -> int:
    """What the graphs of ``split`` take by themselves."""
    graphs = split.graphs
    nodes, edges = (int(counts[split.indices].sum()) for counts in (graphs.node_counts, graphs.edge_counts))
    rows = {"graph": len(split), "node": nodes, "edge": edges}
    of_graphs = (1 + len(split)) * (graphs.node_offsets.element_size() + graphs.edge_offsets.element_size())
    of_nodes = nodes * (_bytes_of_a_row(graphs.x) + _bytes_of_a_row(graphs.pos_enc))
    of_edges = edges * (_bytes_of_a_row(graphs.edge_index.t()) + _bytes_of_a_row(graphs.edge_attr))
    return of_graphs + of_nodes + of_edges + rows[graphs.labels] * _bytes_of_a_row(graphs.y)


def _bytes_of_a_row(rows: Tensor | None) -> int:
    return 0 if rows is None else math.prod(rows.shape[1:]) * rows.element_size()


@dataclass(frozen=True, eq=False)
class ResidentGraphs:
    """Packed graphs whose tensors lie on an accelerator.

    Attributes:
        graphs: there.
        most_nodes: no graph has more.
    """

    graphs: PackedGraphs
    most_nodes: int

    @classmethod
    def of(cls, graphs: PackedGraphs, device: torch.device) -> ResidentGraphs:
        """A copy of ``graphs`` on ``device``; waits for it."""
        most_nodes = int(graphs.node_counts.max()) if len(graphs) else 0
        return cls(graphs.to(device), most_nodes)

    def gather(self, indices: Tensor, shape: Shape, *, padded: bool) -> GraphBatch:
        """The graphs ``indices``, ``[shape.graphs]`` int64 on the device, side by side in that order.

        Args:
            indices: numbers of graphs.
            shape: of the result. Unless it is ``padded`` it must be the graphs' own.
            padded: whether there is room to be filled: for one node or more, and where edges are to be filled in, they
                lead from padding nodes to themselves. Inputs of the padding are 0, labels ``UNLABELLED``.
        """
        return self.gather_rows(indices.unsqueeze(0), shape, padded=padded).as_batch(self.most_nodes)

    def gather_rows(self, indices: Tensor, shape: Shape, *, padded: bool) -> GatheredRows:
        """As :meth:`gather` for several batches of one size at once, ``indices`` being ``[batches, shape.graphs]``."""
        packed = self.graphs
        ptr, node_graph, nodes = _places(packed.node_offsets, indices, shape.nodes)
        edge_ptr, edge_graph, edges = _places(packed.edge_offsets, indices, shape.edges)
        first_node = ptr.gather(1, edge_graph)
        edge_index = torch.stack(
            [row.index_select(0, edges).view_as(first_node) + first_node for row in packed.edge_index]
        )
        real_nodes, real_edges = None, None
        if padded:
            real_nodes, real_edges = node_graph < shape.graphs, edge_graph < shape.graphs
            edge_index = torch.where(real_edges, edge_index, _loops(ptr[:, -1:], edge_ptr[:, -1:], shape))
            ptr = F.pad(ptr, (0, 1), value=shape.nodes)
        return GatheredRows(
            x=_rows(packed.x, nodes, real_nodes),
            edge_index=edge_index,
            edge_attr=None if packed.edge_attr is None else _rows(packed.edge_attr, edges, real_edges),
            y=self._labels(indices, nodes, edges, real_nodes, real_edges),
            node_graph=node_graph,
            ptr=ptr,
            pos_enc=None if packed.pos_enc is None else _rows(packed.pos_enc, nodes, real_nodes),
            real_nodes=real_nodes,
            real_edges=real_edges,
        )

    def _labels(
        self, indices: Tensor, nodes: Tensor, edges: Tensor, real_nodes: Tensor | None, real_edges: Tensor | None
    ) -> Tensor:
        if self.graphs.labels == "graph":
            y = self.graphs.y.index_select(0, indices.view(-1))
            return y if y.is_floating_point() else y.long()
        of_nodes = self.graphs.labels == "node"
        y = self.graphs.y.index_select(0, nodes if of_nodes else edges).long()
        real = real_nodes if of_nodes else real_edges
        return y if real is None else torch.where(real.view(-1), y, UNLABELLED)


@dataclass(frozen=True, eq=False, kw_only=True)
class GatheredRows:
    """Several batches of one size, the rows of one behind those of the other; nodes are counted within each.

    Attributes:
        x, edge_attr, y, pos_enc: as in a :class:`~bimp.data.GraphBatch`, of all batches.
        edge_index: ``[2, batches, edges]``.
        node_graph: the graph of each node, ``[batches, nodes]``; padding belongs to the one behind the last.
        ptr: where the nodes of each graph begin, and where the last ones end, ``[batches, graphs + 1]``; where there is
            padding, it is one graph more.
        real_nodes, real_edges: which are, ``[batches, nodes]`` and ``[batches, edges]`` bool; None: all.
        node_shares, edge_shares: what follows from that; None: not known yet.
        orders: of the edges of all batches as one graph; None: not known yet.
    """

    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None
    y: Tensor
    node_graph: Tensor
    ptr: Tensor
    pos_enc: Tensor | None
    real_nodes: Tensor | None
    real_edges: Tensor | None
    node_shares: RowShares | None = None
    edge_shares: RowShares | None = None
    orders: EdgeOrders | None = None

    def as_batch(self, most_nodes: int) -> GraphBatch:
        """The only batch that these are; no graph of it has more than ``most_nodes``."""
        padding = None
        if self.real_nodes is not None and self.real_edges is not None:
            padding = Padding(
                RealRows(self.real_nodes.view(-1), self.node_shares),
                RealRows(self.real_edges.view(-1), self.edge_shares),
            )
        return GraphBatch(
            x=self.x,
            edge_index=self.edge_index.view(2, -1),
            edge_attr=self.edge_attr,
            y=self.y,
            batch=self.node_graph.view(-1),
            ptr=self.ptr.view(-1),
            pos_enc=self.pos_enc,
            padding=padding,
            orders=self.orders,
            most_nodes=most_nodes,
        )


def _places(offsets: Tensor, indices: Tensor, rows: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of nodes or edges: where each graph's begin in its batch, the graph of each, and where each lies packed.

    Those behind the last graph's belong to one more graph, and to the first row packed. All but the last, which is
    flat, are ``[batches, ...]``.
    """
    starts = offsets.index_select(0, indices.view(-1)).view_as(indices)
    counts = offsets.index_select(0, indices.view(-1) + 1).view_as(indices) - starts
    ptr = F.pad(counts.cumsum(1), (1, 0))
    each_row = torch.arange(rows, device=offsets.device).expand(len(indices), rows)
    graph = torch.searchsorted(ptr[:, 1:].contiguous(), each_row.contiguous(), right=True)
    shifts = F.pad(starts - ptr[:, :-1], (0, 1))
    places = torch.where(graph < indices.shape[1], each_row + shifts.gather(1, graph), 0)
    return ptr, graph, places.view(-1)


def _rows(packed: Tensor, places: Tensor, real: Tensor | None) -> Tensor:
    """The rows at ``places``, 0 for the padding."""
    rows = packed.index_select(0, places)
    return rows if real is None else torch.where(real.view(-1, *[1] * (rows.dim() - 1)), rows, 0)


def _loops(real_nodes: Tensor, real_edges: Tensor, shape: Shape) -> Tensor:
    """``[batches, edges]``: for padding edges, spread evenly, the padding node that each joins to itself; ascending."""
    number = torch.arange(shape.edges, device=real_nodes.device) - real_edges
    spread = (number * (shape.nodes - real_nodes)).div((shape.edges - real_edges).clamp(min=1), rounding_mode="floor")
    return real_nodes + spread
