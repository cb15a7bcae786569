"""Many graphs as a few contiguous tensors, from which a batch is gathered by index arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from bimp.data.batch import GraphBatch
from bimp.data.errors import DataError
from bimp.data.graph_runs import GraphRuns, offsets_of

if TYPE_CHECKING:
    from torch_geometric.data import Data

LabelLevel = Literal["graph", "node", "edge"]


@dataclass(frozen=True, eq=False, kw_only=True)
class PackedGraphs:
    """Graphs one behind the other, in tensors that can be memory-mapped.

    Graph i owns the nodes ``node_offsets[i]`` to ``node_offsets[i + 1]`` and the edges ``edge_offsets[i]`` to
    ``edge_offsets[i + 1]``. Use :meth:`pack` or :meth:`from_arrays` to make one: they sort the edges.

    Attributes:
        node_offsets: ``[graphs + 1]`` int64.
        edge_offsets: ``[graphs + 1]`` int64.
        x: node inputs, ``[nodes]`` or ``[nodes, node_dim]``.
        edge_index: ``[2, edges]`` of a small integer type, node numbers counted from 0 within each graph; row 0 the
            source, row 1 the destination; sorted by destination within each graph.
        edge_attr: edge inputs, ``[edges]`` or ``[edges, edge_dim]``; None where there are none.
        y: labels, one a graph, a node or an edge, as ``labels`` says; float, or any integer type.
        labels: what carries a label.
        pos_enc: Laplacian positional encodings, ``[nodes, k]``; None where there are none.

    Raises:
        DataError: the lengths of the tensors contradict the offsets, or ``y`` has columns.
    """

    node_offsets: Tensor
    edge_offsets: Tensor
    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None
    y: Tensor
    labels: LabelLevel
    pos_enc: Tensor | None = None

    def __post_init__(self) -> None:
        nodes, edges = int(self.node_offsets[-1]), int(self.edge_offsets[-1])
        labels = {"graph": len(self), "node": nodes, "edge": edges}[self.labels]
        _require_length("edge_offsets", self.edge_offsets, 0, len(self) + 1)
        _require_length("x", self.x, 0, nodes)
        _require_length("edge_index", self.edge_index, 1, edges)
        _require_length("y", self.y, 0, labels)
        if self.y.dim() != 1:
            raise DataError(f"y: found shape {list(self.y.shape)}, expected one label each, [{labels}]")
        if self.edge_attr is not None:
            _require_length("edge_attr", self.edge_attr, 0, edges)
        if self.pos_enc is not None:
            _require_length("pos_enc", self.pos_enc, 0, nodes)

    @classmethod
    def pack(cls, graphs: Sequence[Data], *, labels: LabelLevel) -> PackedGraphs:
        """Pack PyTorch Geometric graphs, in their order.

        Raises:
            DataError: no graphs, a graph without x or y, edge_attr on some graphs only, an edge to no node, or labels
                that are not one a graph, node or edge.
        """
        if not graphs:
            raise DataError("packing: found no graphs, expected at least one")
        for number, graph in enumerate(graphs):
            if graph.x is None or graph.y is None:
                raise DataError(f"packing: graph {number} has no {'x' if graph.x is None else 'y'}, expected both")
            if (graph.edge_attr is None) != (graphs[0].edge_attr is None):
                raise DataError(f"packing: found edge_attr on some graphs only (graph {number} differs from graph 0)")
        no_edges = torch.empty((2, 0), dtype=torch.int64)
        edge_indices = [no_edges if graph.edge_index is None else graph.edge_index for graph in graphs]
        # A graph's label may come without a dimension of its own; those of nodes and edges have theirs.
        label_list = [graph.y.reshape(1) if graph.y.dim() == 0 else graph.y for graph in graphs]
        return cls.from_arrays(
            node_counts=torch.tensor([graph.x.shape[0] for graph in graphs]),
            edge_counts=torch.tensor([edge_index.shape[1] for edge_index in edge_indices]),
            x=torch.cat([graph.x for graph in graphs]),
            edge_index=torch.cat(edge_indices, dim=1),
            edge_attr=None if graphs[0].edge_attr is None else torch.cat([graph.edge_attr for graph in graphs]),
            y=torch.cat(label_list),
            labels=labels,
        )

    @classmethod
    def from_arrays(
        cls,
        *,
        node_counts: Tensor,
        edge_counts: Tensor,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None,
        y: Tensor,
        labels: LabelLevel,
    ) -> PackedGraphs:
        """Pack tensors that already hold all graphs one behind the other, with node numbers local to each graph.

        Edges are sorted by destination within each graph; edges of one destination keep their order.

        Raises:
            DataError: lengths that contradict the counts, or an edge to a node that its graph does not have.
        """
        node_offsets, edge_offsets = offsets_of(node_counts), offsets_of(edge_counts)
        edges = int(edge_offsets[-1])
        _require_length("edge_index", edge_index, 1, edges)
        for name, tensor in (("edge_attr", edge_attr), ("y", y if labels == "edge" else None)):
            if tensor is not None:
                _require_length(name, tensor, 0, edges)
        if bool((edge_index < 0).any()) or bool((edge_index >= node_counts.repeat_interleave(edge_counts)).any()):
            raise DataError("packing: found an edge to a node that its graph does not have")
        destinations = edge_index[1] + node_offsets[:-1].repeat_interleave(edge_counts)
        if bool((destinations[1:] < destinations[:-1]).any()):
            order = destinations.argsort(stable=True)
            edge_index = edge_index[:, order]
            edge_attr = None if edge_attr is None else edge_attr[order]
            y = y[order] if labels == "edge" else y
        most_nodes = int(node_counts.max()) if node_counts.numel() else 0
        return cls(
            node_offsets=node_offsets,
            edge_offsets=edge_offsets,
            x=x.contiguous(),
            edge_index=edge_index.to(smallest_integer_type(most_nodes)).contiguous(),
            edge_attr=None if edge_attr is None else edge_attr.contiguous(),
            y=y.contiguous(),
            labels=labels,
        )

    def __len__(self) -> int:
        return self.node_offsets.numel() - 1

    @cached_property
    def node_counts(self) -> Tensor:
        """Nodes of each graph, ``[graphs]`` int64."""
        return self.node_offsets.diff()

    @cached_property
    def edge_counts(self) -> Tensor:
        """Directed edges of each graph, ``[graphs]`` int64."""
        return self.edge_offsets.diff()

    def to(self, device: torch.device) -> PackedGraphs:
        """The same graphs on ``device``."""
        return replace(
            self,
            node_offsets=self.node_offsets.to(device),
            edge_offsets=self.edge_offsets.to(device),
            x=self.x.to(device),
            edge_index=self.edge_index.to(device),
            edge_attr=None if self.edge_attr is None else self.edge_attr.to(device),
            y=self.y.to(device),
            pos_enc=None if self.pos_enc is None else self.pos_enc.to(device),
        )

    def gather(self, indices: Tensor) -> GraphBatch:
        """The graphs ``indices`` side by side, in that order; a graph may stand in it more than once.

        Args:
            indices: ``[batch]`` int64, graph numbers.

        Returns:
            A batch that shares no memory with the packed tensors.
        """
        (batch,) = self.gather_batches(indices, max(indices.numel(), 1))
        return batch

    def gather_batches(self, indices: Tensor, batch_size: int) -> list[GraphBatch]:
        """The graphs ``indices`` in batches of ``batch_size``, the last of which may be smaller; of none, one batch.

        All are found at once, for which small batches take a fraction of the time: each of them is a part of the
        same tensors.
        """
        nodes, edges = self._runs(indices)
        if self.labels == "graph":
            y, labelled = self.y.index_select(0, indices), None
        else:
            labelled = nodes if self.labels == "node" else edges
            y = labelled.take(self.y)
        y = y if y.is_floating_point() else y.long()
        graph, shifts = nodes.graph, nodes.ptr[:-1]
        if indices.numel() > batch_size:
            number = torch.arange(indices.numel())
            first = number - number % batch_size
            graph, shifts = (number - first).index_select(0, graph), shifts - shifts.index_select(0, first)
        x = nodes.take(self.x)
        edge_index = edges.take_columns(self.edge_index, shifts)
        edge_attr = None if self.edge_attr is None else edges.take(self.edge_attr)
        pos_enc = None if self.pos_enc is None else nodes.take(self.pos_enc)
        graphs = range(0, max(indices.numel(), 1), batch_size)
        return [
            GraphBatch(
                x=x[of_nodes],
                edge_index=edge_index[:, of_edges],
                edge_attr=None if edge_attr is None else edge_attr[of_edges],
                y=y[start : start + batch_size] if labelled is None else y[of_nodes if labelled is nodes else of_edges],
                batch=graph[of_nodes],
                ptr=nodes.ptr[start : start + batch_size + 1] - of_nodes.start,
                pos_enc=None if pos_enc is None else pos_enc[of_nodes],
            )
            for start, of_nodes, of_edges in zip(
                graphs, nodes.slices(batch_size), edges.slices(batch_size), strict=True
            )
        ]

    def _runs(self, indices: Tensor) -> tuple[GraphRuns, GraphRuns]:
        """Nodes and edges of the graphs ``indices``."""
        nodes, edges = self.x.shape[0], self.edge_index.shape[1]
        return (
            GraphRuns.of(self.node_offsets, self.node_counts, nodes, indices),
            GraphRuns.of(self.edge_offsets, self.edge_counts, edges, indices),
        )

    def only(self, indices: Tensor) -> PackedGraphs:
        """The graphs ``indices`` packed by themselves, in that order; shares no memory with these."""
        nodes, edges = self._runs(indices)
        of_label = {"graph": lambda y: y.index_select(0, indices), "node": nodes.take, "edge": edges.take}
        return replace(
            self,
            node_offsets=nodes.ptr,
            edge_offsets=edges.ptr,
            x=nodes.take(self.x),
            edge_index=torch.stack([edges.take(row) for row in self.edge_index]),
            edge_attr=None if self.edge_attr is None else edges.take(self.edge_attr),
            y=of_label[self.labels](self.y),
            pos_enc=None if self.pos_enc is None else nodes.take(self.pos_enc),
        )


def smallest_integer_type(most_nodes: int) -> torch.dtype:
    """The type in which the node numbers of a graph of ``most_nodes`` nodes are stored."""
    # Half the bytes are half the pages read: CLUSTER's edges shrink from 826 MB (int64) to 103 MB.
    for dtype in (torch.uint8, torch.int16, torch.int32):
        if most_nodes - 1 <= torch.iinfo(dtype).max:
            return dtype
    return torch.int64


def _require_length(name: str, tensor: Tensor, dimension: int, expected: int) -> None:
    if tensor.dim() <= dimension or tensor.shape[dimension] != expected:
        raise DataError(f"{name}: found shape {list(tensor.shape)}, expected {expected} in dimension {dimension}")
