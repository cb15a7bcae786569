"""The orders in which layers read the edges of padded batches, of one batch or of several of one size at once.

All tensors may have a dimension more in front, ``[batches, ...]``: what is found for several batches at once takes as
few launches as for one (:mod:`bimp.device.ahead`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bimp.edge_weights import EdgeWeights
from bimp.gated_runs import GatedRuns, starts_in


@dataclass(frozen=True, eq=False, kw_only=True)
class EdgeOrders:
    """What :class:`bimp.adjacency.Adjacency` would find out, found beforehand.

    Attributes:
        starts, by_source, source_starts, destination_by_source: as there.
        gated_runs: as there; None: not looked for.
        weights: that follow from the edges; None: not looked for.
    """

    starts: Tensor
    by_source: Tensor
    source_starts: Tensor
    destination_by_source: Tensor
    gated_runs: GatedRuns | None = None
    weights: EdgeWeights | None = None

    @classmethod
    def of(cls, edge_index: Tensor, nodes: int, real_edges: Tensor | None) -> EdgeOrders:
        """Of batches that have so many ``nodes`` each.

        Args:
            edge_index: ``[2, edges]`` or ``[2, batches, edges]``, sorted by destination; nodes count within a batch.
            nodes: of a batch.
            real_edges: which are, ``[edges]`` or ``[batches, edges]``, for the runs of GatedGCN; None: of other layers.
        """
        source, destination = edge_index
        starts = starts_in(destination.contiguous(), nodes)
        # Half the digits to sort by.
        source_in_order, by_source = source.to(torch.int32).sort(dim=-1, stable=True)
        return cls(
            starts=starts,
            by_source=by_source,
            source_starts=starts_in(source_in_order, nodes),
            destination_by_source=destination.gather(-1, by_source),
            gated_runs=None if real_edges is None else GatedRuns.of(edge_index, starts, real_edges),
        )

    def side_by_side(self) -> EdgeOrders:
        """Of several batches, ``[batches, ...]``, the orders of the edges of all of them as one graph."""
        (batches, edges), nodes = self.by_source.shape, self.starts.shape[1] - 1
        each_batch = torch.arange(batches, device=self.starts.device).unsqueeze(1)
        first_edge = each_batch * edges

        def joined(starts: Tensor) -> Tensor:
            starts = starts + first_edge
            return torch.cat([starts[:, :-1].flatten(), starts[-1, -1:]])

        return EdgeOrders(
            starts=joined(self.starts),
            by_source=(self.by_source + first_edge).view(-1),
            source_starts=joined(self.source_starts),
            destination_by_source=(self.destination_by_source + each_batch * nodes).view(-1),
        )
