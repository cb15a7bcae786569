"""A dataset on an accelerator, and batches that are gathered there.

Sizes of batches are known on the host (:mod:`bimp.device.shapes`), so that gathering never waits for the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from bimp.data import GraphBatch, PackedGraphs
from bimp.device.shapes import Shape
from bimp.padding import UNLABELLED, Padding, RealRows

SHARE_OF_FREE_MEMORY = 0.25
"""Of an accelerator's free memory a dataset may take as much; the rest is the steps' and that of other trials."""


def fits(graphs: PackedGraphs, device: torch.device) -> bool:
    """Whether ``graphs`` may lie on ``device``."""
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return bytes_of(graphs) <= SHARE_OF_FREE_MEMORY * free


def bytes_of(graphs: PackedGraphs) -> int:
    """What ``graphs`` take."""
    given = (graphs.node_offsets, graphs.edge_offsets, graphs.x, graphs.edge_index, graphs.y)
    optional = [tensor for tensor in (graphs.edge_attr, graphs.pos_enc) if tensor is not None]
    return sum(tensor.numel() * tensor.element_size() for tensor in (*given, *optional))


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
        packed = self.graphs
        ptr, node_graph, nodes = _places(packed.node_offsets, indices, shape.nodes)
        edge_ptr, edge_graph, edges = _places(packed.edge_offsets, indices, shape.edges)
        padding, real_nodes, real_edges = None, None, None
        if padded:
            real_nodes, real_edges = RealRows(node_graph < shape.graphs), RealRows(edge_graph < shape.graphs)
            padding = Padding(real_nodes, real_edges)
            ptr = F.pad(ptr, (0, 1), value=shape.nodes)
        first_node = ptr.index_select(0, edge_graph)
        edge_index = torch.stack([row.index_select(0, edges) + first_node for row in packed.edge_index])
        if real_edges is not None:
            edge_index = torch.where(real_edges.mask, edge_index, _loops(ptr[-2], edge_ptr[-1], shape))
        return GraphBatch(
            x=_rows(packed.x, nodes, real_nodes),
            edge_index=edge_index,
            edge_attr=None if packed.edge_attr is None else _rows(packed.edge_attr, edges, real_edges),
            y=self._labels(indices, nodes, edges, padding),
            batch=node_graph,
            ptr=ptr,
            pos_enc=None if packed.pos_enc is None else _rows(packed.pos_enc, nodes, real_nodes),
            padding=padding,
            most_nodes=self.most_nodes,
        )

    def _labels(self, indices: Tensor, nodes: Tensor, edges: Tensor, padding: Padding | None) -> Tensor:
        if self.graphs.labels == "graph":
            y = self.graphs.y.index_select(0, indices)
            return y if y.is_floating_point() else y.long()
        of_nodes = self.graphs.labels == "node"
        y = self.graphs.y.index_select(0, nodes if of_nodes else edges)
        if padding is None:
            return y.long()
        return torch.where((padding.nodes if of_nodes else padding.edges).mask, y.long(), UNLABELLED)


def _places(offsets: Tensor, indices: Tensor, rows: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of nodes or edges: where each graph's begin in the batch, the graph of each, and where each lies packed.

    Those behind the last graph's belong to one more graph, and to the first row packed.
    """
    starts = offsets.index_select(0, indices)
    counts = offsets.index_select(0, indices + 1) - starts
    ptr = F.pad(counts.cumsum(0), (1, 0))
    each_row = torch.arange(rows, device=offsets.device)
    graph = torch.searchsorted(ptr[1:].contiguous(), each_row, right=True)
    shifts = F.pad(starts - ptr[:-1], (0, 1))
    places = torch.where(graph < indices.numel(), each_row + shifts.index_select(0, graph), 0)
    return ptr, graph, places


def _rows(packed: Tensor, places: Tensor, real: RealRows | None) -> Tensor:
    """The rows at ``places``, 0 for the padding."""
    rows = packed.index_select(0, places)
    return rows if real is None else real.only(rows)


def _loops(real_nodes: Tensor, real_edges: Tensor, shape: Shape) -> Tensor:
    """``[edges]``: for padding edges, spread evenly, the padding node that each joins to itself; ascending."""
    number = torch.arange(shape.edges, device=real_nodes.device) - real_edges
    spread = (number * (shape.nodes - real_nodes)).div((shape.edges - real_edges).clamp(min=1), rounding_mode="floor")
    return real_nodes + spread
