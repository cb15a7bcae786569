"""The batches of several seeds as one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from bimp.data.batch import GraphBatch
from bimp.device.resident import GatheredRows
from bimp.device.shapes import Shape
from bimp.stack.parts import Parts


@dataclass(frozen=True, kw_only=True)
class StackedBatch(GraphBatch):
    """One batch of each seed, as one graph whose rows lie in :class:`~bimp.stack.parts.Parts`.

    Padding nodes belong to a graph of their own behind the seed's graphs. Padding edges join such a node to itself:
    whatever happens on padding stays there. ``y`` holds the labels of all seeds.

    Attributes:
        nodes, edges, graphs: the parts of node rows, edge rows and graph rows.
        labels: number of labels of each seed.
        most_nodes: of a real graph.
    """

    nodes: Parts
    edges: Parts
    graphs: Parts
    labels: tuple[int, ...]
    most_nodes: int

    @classmethod
    def join(cls, batches: Sequence[GraphBatch]) -> StackedBatch:
        """The batches of all seeds in main memory, one or more; one may be empty (:func:`without_graphs`)."""
        nodes = Parts.of(tuple(b.num_nodes for b in batches), 1 + max(b.num_nodes for b in batches))
        edges = Parts.of(tuple(b.num_edges for b in batches), max(b.num_edges for b in batches))
        graphs = Parts.of(tuple(b.num_graphs for b in batches), 1 + max(b.num_graphs for b in batches))
        attributes = [b.edge_attr for b in batches if b.edge_attr is not None]
        encodings = [b.pos_enc for b in batches if b.pos_enc is not None]
        return cls(
            x=_padded([b.x for b in batches], nodes),
            edge_index=_joined_edges(batches, nodes, edges),
            edge_attr=_padded(attributes, edges) if attributes else None,
            y=torch.cat([b.y for b in batches]),
            batch=_joined_graph_numbers(batches, nodes, graphs),
            ptr=_joined_ptr(batches, nodes, graphs),
            pos_enc=_padded(encodings, nodes) if encodings else None,
            nodes=nodes,
            edges=edges,
            graphs=graphs,
            labels=tuple(b.y.shape[0] for b in batches),
            most_nodes=max(int(b.ptr.diff().max()) for b in batches if b.num_graphs),
        )

    @classmethod
    def of_gathered(cls, rows: GatheredRows, size: Shape, most_nodes: int) -> StackedBatch:
        """The padded batches of all seeds, gathered on a device; ``y`` is of each seed's padding too.

        Args:
            rows: one batch a seed.
            size: of each.
            most_nodes: no graph has more.
        """
        assert rows.real_nodes is not None
        assert rows.real_edges is not None
        seeds, graphs = len(rows.ptr), size.graphs + 1  # the last is the padding's
        first_node = torch.arange(0, seeds * size.nodes, size.nodes, device=rows.ptr.device).unsqueeze(1)
        first_graph = torch.arange(0, seeds * graphs, graphs, device=rows.ptr.device).unsqueeze(1)
        is_graph = torch.arange(graphs, device=rows.ptr.device) < size.graphs
        return cls(
            x=rows.x,
            edge_index=(rows.edge_index + first_node).view(2, -1),
            edge_attr=rows.edge_attr,
            y=rows.y,
            batch=(rows.node_graph + first_graph).view(-1),
            ptr=F.pad((rows.ptr[:, :-1] + first_node).view(-1), (0, 1), value=seeds * size.nodes),
            pos_enc=rows.pos_enc,
            nodes=Parts(rows.real_nodes, known=rows.node_shares),
            edges=Parts(rows.real_edges, known=rows.edge_shares),
            graphs=Parts(is_graph.repeat(seeds, 1), (size.graphs,) * seeds),
            labels=(rows.y.shape[0] // seeds,) * seeds,
            orders=rows.orders,
            most_nodes=most_nodes,
        )

    @cached_property
    def apart(self) -> tuple[GraphBatch, ...]:
        """Each seed's own batch, without padding; of batches that were joined in main memory."""
        labels = torch.split(self.y, list(self.labels))
        return tuple(self._of_seed(seed, labels[seed]) for seed in range(self.nodes.seeds))

    @cached_property
    def places(self) -> Tensor:
        """Where each node's row lies among rows ``[graphs * most_nodes + 1]``; all padding in the last, ``[nodes]``."""
        position = torch.arange(self.num_nodes, device=self.x.device) - self.ptr.index_select(0, self.batch)
        place = self.batch * self.most_nodes + position
        return torch.where(self.nodes.real.view(-1), place, self.num_graphs * self.most_nodes)

    def _of_seed(self, seed: int, y: Tensor) -> GraphBatch:
        nodes, edges = self.nodes.slice(seed), self.edges.slice(seed)
        first_graph, graphs = seed * self.graphs.length, int(self.graphs.counted[seed])
        return GraphBatch(
            x=self.x[nodes],
            edge_index=self.edge_index[:, edges] - nodes.start,
            edge_attr=None if self.edge_attr is None else self.edge_attr[edges],
            y=y,
            batch=self.batch[nodes] - first_graph,
            ptr=self.ptr[first_graph : first_graph + graphs + 1] - nodes.start,
            pos_enc=None if self.pos_enc is None else self.pos_enc[nodes],
        )


def without_graphs(batch: GraphBatch) -> GraphBatch:
    """A batch of no graph with inputs like those of ``batch``: of a seed that sits a step out."""
    return replace(
        batch,
        x=batch.x[:0],
        edge_index=batch.edge_index[:, :0],
        edge_attr=None if batch.edge_attr is None else batch.edge_attr[:0],
        y=batch.y[:0],
        batch=batch.batch[:0],
        ptr=batch.ptr[:1],
        pos_enc=None if batch.pos_enc is None else batch.pos_enc[:0],
    )


def _padded(rows: Sequence[Tensor], parts: Parts) -> Tensor:
    """The seeds' rows in their parts, with zeros behind them."""
    padded = rows[0].new_zeros(parts.seeds * parts.length, *rows[0].shape[1:])
    for seed, of_seed in enumerate(rows):
        padded[parts.slice(seed)] = of_seed
    return padded


def _joined_edges(batches: Sequence[GraphBatch], nodes: Parts, edges: Parts) -> Tensor:
    joined = batches[0].edge_index.new_empty(2, edges.seeds * edges.length)
    for seed, batch in enumerate(batches):
        start, end = edges.slice(seed).start, (seed + 1) * edges.length
        real = start + batch.num_edges
        torch.add(batch.edge_index, seed * nodes.length, out=joined[:, start:real])
        # Spread over the padding nodes: one node with all of these edges would keep one core waiting.
        loops, spare = torch.arange(end - real, device=joined.device), nodes.length - batch.num_nodes
        joined[:, real:end] = nodes.slice(seed).stop + loops * spare // max(end - real, 1)
    return joined


def _joined_graph_numbers(batches: Sequence[GraphBatch], nodes: Parts, graphs: Parts) -> Tensor:
    joined = batches[0].batch.new_empty(nodes.seeds * nodes.length)
    for seed, batch in enumerate(batches):
        part = joined[seed * nodes.length : (seed + 1) * nodes.length]
        torch.add(batch.batch, seed * graphs.length, out=part[: batch.num_nodes])
        part[batch.num_nodes :] = seed * graphs.length + batch.num_graphs
    return joined


def _joined_ptr(batches: Sequence[GraphBatch], nodes: Parts, graphs: Parts) -> Tensor:
    joined = batches[0].ptr.new_empty(graphs.seeds * graphs.length + 1)
    for seed, batch in enumerate(batches):
        part = joined[seed * graphs.length : (seed + 1) * graphs.length]
        torch.add(batch.ptr, seed * nodes.length, out=part[: batch.num_graphs + 1])
        part[batch.num_graphs + 1 :] = (seed + 1) * nodes.length  # graphs that this seed does not have are empty
    joined[-1] = nodes.seeds * nodes.length
    return joined
