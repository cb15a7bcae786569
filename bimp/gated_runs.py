"""Sums over runs of rows, in one launch each and always in the same order, and the runs of a padded batch.

A run that stands for a padding edge holds the last node's rows alone, which belong to the padding and are skipped: its
sum is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

NODE_ROWS = 4
"""Rows of a node in GatedGCN: what it adds to the edges out of it, and to those into it; what it sends, and keeps."""


@dataclass(frozen=True, eq=False)
class Runs:
    """Which rows are summed.

    Attributes:
        picks: ``[places]``, the row at each place.
        starts: ``[runs + 1]``, where the runs of places begin and end.
        skipped: a row that is left out wherever it stands; None: none is.
    """

    picks: Tensor
    starts: Tensor
    skipped: int | None = None

    def sums(self, rows: Tensor, weights: Tensor | None = None) -> Tensor:
        """``[runs, width]``, of the rows ``[rows, width]``, each times the weight of its place; no gradient."""
        # Of this overload no argument can be named.
        summed, *_ = torch.embedding_bag(rows, self.picks, self.starts, False, 0, False, weights, True, self.skipped)
        return summed


@dataclass(frozen=True, eq=False, kw_only=True)
class GatedRuns:
    """The runs of a GatedGCN layer, over rows of nodes, ``NODE_ROWS`` for each, and rows of edges.

    Attributes:
        to_edges: from the rows of the nodes to ``[2 edges]``: what both ends add to each edge, then what its source
            sends.
        to_destinations: from ``[2 edges]`` to ``[2 nodes]``: each half to the destinations.
        at_destinations: ``[2 edges]``: of ``[2 nodes]``, the row of each edge's destination in the first half, then in
            the second.
        to_nodes: from ``[2 edges + nodes]`` to the rows of the nodes. The first two of a node are sums over the first
            half of the edges, out of it and into it; the third is one over the second half, out of it; the fourth is
            its own row.
    """

    to_edges: Runs
    to_destinations: Runs
    at_destinations: Tensor
    to_nodes: Runs

    @classmethod
    def of(cls, edge_index: Tensor, starts: Tensor, real: Tensor) -> GatedRuns:
        """Of one batch, or of several of one size, whose tensors have a dimension for the batches in front.

        Args:
            edge_index: ``[2, edges]`` or ``[2, batches, edges]``, sorted by destination.
            starts: ``[..., nodes + 1]``, where the edges into each node begin, and where the last ones end.
            real: ``[..., edges]``, which edges are.
        """
        edges, nodes = edge_index.shape[-1], starts.shape[-1] - 1
        destination = edge_index[1]
        each_edge = torch.arange(2 * edges, device=starts.device).expand(*starts.shape[:-1], -1)
        return cls(
            to_edges=_to_edges(edge_index, real, nodes),
            to_destinations=Runs(each_edge, torch.cat([starts[..., :-1], starts + edges], dim=-1)),
            at_destinations=torch.cat([destination, destination + nodes], dim=-1),
            to_nodes=_to_nodes(edge_index, nodes),
        )


def _to_edges(edge_index: Tensor, real: Tensor, nodes: int) -> Runs:
    edges, last = edge_index.shape[-1], NODE_ROWS * nodes - 1
    source, destination = NODE_ROWS * edge_index
    both_ends = torch.stack([source, destination + 1], dim=-1).flatten(-2)
    mask = torch.cat([torch.stack([real, real], dim=-1).flatten(-2), real], dim=-1)
    picks = torch.where(mask, torch.cat([both_ends, source + 2], dim=-1), last)
    pairs = torch.arange(0, 2 * edges, 2, device=picks.device)
    starts = torch.cat([pairs, torch.arange(2 * edges, 3 * edges + 1, device=picks.device)])
    return Runs(picks, starts.expand(*picks.shape[:-1], -1), skipped=last)


def _to_nodes(edge_index: Tensor, nodes: int) -> Runs:
    source, destination = NODE_ROWS * edge_index
    edges = source.shape[-1]
    each_row = torch.arange(2 * edges + nodes, device=source.device)
    own = (each_row[:nodes] * NODE_ROWS + 3).expand(*source.shape[:-1], -1)
    keys = torch.cat([source, destination + 1, source + 2, own], dim=-1).to(torch.int32)
    ends, order = keys.sort(dim=-1, stable=True)
    rows = torch.cat([each_row[:edges], each_row])[order]
    return Runs(rows, starts_in(ends, NODE_ROWS * nodes))


def starts_in(ascending: Tensor, count: int) -> Tensor:
    """Where 0 to ``count`` begin in ``[..., numbers]``, which ascend: ``[..., count + 1]`` int64."""
    numbers = torch.arange(count + 1, dtype=ascending.dtype, device=ascending.device)
    return torch.searchsorted(ascending, numbers.expand(*ascending.shape[:-1], -1).contiguous())
