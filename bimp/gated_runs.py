"""Sums over runs of rows, in one launch each and always in the same order, and the runs of a padded batch.

A run that stands for a padding edge holds the last node's rows alone, which belong to the padding and are skipped: its
sum is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from bimp.padding import RealRows

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


@dataclass(frozen=True, eq=False)
class GatedRuns:
    """The runs of a GatedGCN layer, over rows of nodes, ``NODE_ROWS`` for each, and rows of edges.

    Attributes:
        edge_index: ``[2, edges]``, sorted by destination.
        starts: ``[nodes + 1]``, where the edges into each node begin, and where the last ones end.
        real: which edges are.
    """

    edge_index: Tensor
    starts: Tensor
    real: RealRows

    @cached_property
    def to_edges(self) -> Runs:
        """From the rows of the nodes to ``[2 edges]``: what both ends add to each edge, then what its source sends."""
        edges, device = self._edges, self.edge_index.device
        last = NODE_ROWS * self._nodes - 1
        source, destination = (NODE_ROWS * self.edge_index).unbind()
        rows = torch.stack([source, destination + 1], dim=1).view(-1)
        rows = torch.cat([rows, source + 2])
        mask = torch.cat([self.real.mask.repeat_interleave(2, output_size=2 * edges), self.real.mask])
        starts = [torch.arange(0, 2 * edges, 2, device=device), torch.arange(2 * edges, 3 * edges + 1, device=device)]
        return Runs(torch.where(mask, rows, last), torch.cat(starts), skipped=last)

    @cached_property
    def to_destinations(self) -> Runs:
        """From ``[2 edges]`` to ``[2 nodes]``: each half to the destinations."""
        picks = torch.arange(2 * self._edges, device=self.starts.device)
        return Runs(picks, torch.cat([self.starts[:-1], self.starts + self._edges]))

    @cached_property
    def at_destinations(self) -> Tensor:
        """``[2 edges]``: of ``[2 nodes]``, the row of each edge's destination in the first half, then in the second."""
        destination = self.edge_index[1]
        return torch.cat([destination, destination + self._nodes])

    @cached_property
    def to_nodes(self) -> Runs:
        """From ``[2 edges + nodes]`` to the rows of the nodes.

        The first two of a node are sums over the first half of the edges, out of it and into it; the third is one over
        the second half, out of it; the fourth is its own row.
        """
        edges, nodes = self._edges, self._nodes
        source, destination = (NODE_ROWS * self.edge_index).unbind()
        each_row = torch.arange(2 * edges + nodes, device=source.device)
        own = each_row[:nodes] * NODE_ROWS + 3
        ends, order = torch.cat([source, destination + 1, source + 2, own]).to(torch.int32).sort(stable=True)
        rows = torch.cat([each_row[:edges], each_row]).index_select(0, order)
        runs = torch.arange(NODE_ROWS * nodes + 1, dtype=torch.int32, device=source.device)
        return Runs(rows, torch.searchsorted(ends, runs))

    @property
    def _edges(self) -> int:
        return self.edge_index.shape[1]

    @property
    def _nodes(self) -> int:
        return self.starts.numel() - 1
