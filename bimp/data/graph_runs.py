"""Rows of chosen graphs out of tensors that hold all graphs one behind the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

FEWEST_COPIED = 1024
"""Rows of a graph, on average, above which they are copied as a whole; below, finding each row is faster."""


@dataclass(frozen=True, eq=False)
class GraphRuns:
    """Where the rows of the chosen graphs lie packed, and where they go in the batch.

    Attributes:
        starts: where each graph's rows begin, packed.
        counts: how many rows each has.
        ptr: where they begin in the batch, and where the last ones end.
        total: rows of the batch.
        packed: rows of all packed graphs.
    """

    starts: Tensor
    counts: Tensor
    ptr: Tensor
    total: int
    packed: int

    @classmethod
    def of(cls, offsets: Tensor, counts: Tensor, packed: int, indices: Tensor) -> GraphRuns:
        """The graphs ``indices`` of those that begin at ``offsets`` and have ``counts`` rows, ``packed`` in all."""
        chosen = counts.index_select(0, indices)
        ptr = offsets_of(chosen)
        starts = offsets.index_select(0, indices)
        return cls(starts=starts, counts=chosen, ptr=ptr, total=int(ptr[-1]), packed=packed)

    @cached_property
    def graph(self) -> Tensor:
        """The graph of each row, counted through the chosen ones, ``[total]`` int64."""
        return torch.repeat_interleave(self.counts, output_size=self.total)

    def slices(self, graphs: int) -> list[slice]:
        """Which rows of the batch belong to the first so many graphs, the next so many, and so on."""
        bounds = [*self.ptr[:-1:graphs].tolist(), self.total] if self.counts.numel() else [0, 0]
        return [slice(start, stop) for start, stop in pairwise(bounds)]

    def take(self, rows: Tensor) -> Tensor:
        """The chosen rows of ``[packed, ...]``, a new tensor."""
        return torch.cat(self._slices(rows, 0)) if self._are_long else rows.index_select(0, self._places)

    def take_columns(self, columns: Tensor, shifts: Tensor) -> Tensor:
        """The chosen columns of ``[2, packed]`` as int64, those of each graph plus its shift."""
        taken = torch.empty((2, self.total), dtype=torch.int64)
        if self._are_long:
            # Straight to their place: at this size memory that is touched for the first time costs most.
            parts = torch.split(taken, self.counts.tolist(), dim=1)
            for local, shift, part in zip(self._slices(columns, 1), shifts.tolist(), parts, strict=True):
                part.copy_(local).add_(shift)
            return taken
        shift = shifts.index_select(0, self.graph)
        # Row by row: index_select along the second dimension takes five times as long.
        for row, out in zip(columns, taken, strict=True):
            torch.add(row.index_select(0, self._places), shift, out=out)
        return taken

    @property
    def _are_long(self) -> bool:
        return self.total > FEWEST_COPIED * self.counts.numel()

    def _slices(self, tensor: Tensor, dim: int) -> list[Tensor]:
        bounds = zip(self.starts.tolist(), self.counts.tolist(), strict=True)
        return [tensor.narrow(dim, start, count) for start, count in bounds]

    @cached_property
    def _places(self) -> Tensor:
        # Half the memory to touch: large batches are bound by it.
        dtype = torch.int32 if self.packed <= torch.iinfo(torch.int32).max else torch.int64
        places = (self.starts - self.ptr[:-1]).to(dtype).index_select(0, self.graph)
        return places.add_(torch.arange(self.total, dtype=dtype))


def offsets_of(counts: Tensor) -> Tensor:
    """Where runs of ``counts`` rows begin, one behind the other, and where the last one ends."""
    offsets = torch.zeros(counts.numel() + 1, dtype=torch.int64)
    torch.cumsum(counts, dim=0, out=offsets[1:])
    return offsets
