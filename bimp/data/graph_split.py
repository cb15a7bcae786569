"""Some of the packed graphs as a split of a dataset, read in batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bimp.data.batch import GraphBatch
from bimp.data.packed import PackedGraphs

MOST_ROWS_AT_ONCE = 100_000
"""Nodes and edges, about, up to which several batches are gathered at once: beyond, a step would find none in cache."""
MOST_BATCHES_AT_ONCE = 16


@dataclass(frozen=True, eq=False)
class GraphSplit:
    """Some of the packed graphs, in a fixed order: one split of a dataset.

    Attributes:
        graphs: all graphs of the dataset.
        indices: ``[len]`` int64, the graphs of this split.
    """

    graphs: PackedGraphs
    indices: Tensor

    def __len__(self) -> int:
        return self.indices.numel()

    def without_edge_attr(self) -> GraphSplit:
        """The same graphs without inputs of their edges, which then are not gathered."""
        return GraphSplit(replace(self.graphs, edge_attr=None), self.indices)

    def alone(self) -> GraphSplit:
        """The same graphs, and no others in memory of their own."""
        return GraphSplit(self.graphs.only(self.indices), torch.arange(len(self)))

    def batches(self, batch_size: int, order: Tensor | None = None) -> Iterator[GraphBatch]:
        """The split in batches of ``batch_size`` graphs; the last may be smaller.

        Args:
            batch_size: graphs in a batch.
            order: ``[len]`` int64, a permutation of ``range(len)``; None: the split's own order.

        Raises:
            ValueError: ``batch_size`` is below 1, or ``order`` is not as long as the split.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size: found {batch_size}, expected 1 or more")
        if order is not None and order.numel() != len(self):
            raise ValueError(f"order: found {order.numel()} places, expected {len(self)}, one for each graph")
        chosen = self.indices if order is None else self.indices[order]
        together = batch_size * self.batches_at_once(batch_size)
        for start in range(0, len(self), together):
            yield from self.graphs.gather_batches(chosen[start : start + together], batch_size)

    def batches_at_once(self, batch_size: int) -> int:
        """How many batches of ``batch_size`` graphs :meth:`batches` gathers at a time."""
        rows = sum(
            int(counts.index_select(0, self.indices).sum())
            for counts in (self.graphs.node_counts, self.graphs.edge_counts)
        )
        rows_of_batch = batch_size * rows // max(len(self), 1)
        return min(max(MOST_ROWS_AT_ONCE // max(rows_of_batch, 1), 1), MOST_BATCHES_AT_ONCE)
