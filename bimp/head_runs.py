"""The edges of a batch once for each head of an attention, in the orders in which sums over them are read."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bimp.derived import derived


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadRuns:
    """Runs of edges that share an end, each run once for each head: those of node 0 and all heads, then of node 1.

    With them rows ``[nodes, heads, width]`` are summed along the edges as ``nodes * heads`` rows in one operator.

    Attributes:
        heads: number of heads.
        summed_slots: rows of a node in what is summed to: those of the heads, and after them some without an edge.
        read_slots: rows of a node in what is read, those of the heads first.
        node_starts: ``[nodes + 1]``, where the edges of each node begin.
        ends, others: the end that the edges are sorted by, and the other one, ``[edges]``.
    """

    heads: int
    summed_slots: int
    read_slots: int
    node_starts: Tensor
    ends: Tensor
    others: Tensor

    @derived
    def starts(self) -> Tensor:
        """``[nodes * summed_slots + 1]``, where the runs begin and end."""
        firsts = self._run_first
        if self.summed_slots > self.heads:
            behind = (self._first + self._lengths.unsqueeze(1)) * self.heads
            firsts = torch.cat([firsts, behind.expand(-1, self.summed_slots - self.heads)], dim=1)
        return torch.cat([firsts.reshape(-1), firsts.new_full((1,), self._total)])

    @derived
    def order(self) -> Tensor:
        """``[edges * heads]``: at each place, where in a tensor ``[edges, heads]`` its number stands."""
        shifts = (self._first - self._run_first) * self.heads + torch.arange(self.heads, dtype=self._dtype)
        order = shifts.view(-1).repeat_interleave(self._lengths.repeat_interleave(self.heads), output_size=self._total)
        return order.add_(torch.arange(0, self._total * self.heads, self.heads, dtype=self._dtype))

    @derived
    def rows(self) -> Tensor:
        """``[edges * heads]``: at each place, which of the ``nodes * read_slots`` rows stands at the other end."""
        nodes = self._lengths.numel()
        # Rows of a table for each node are copied faster than their numbers are worked out for each edge.
        first = torch.arange(0, nodes * self.read_slots, self.read_slots, dtype=self._dtype)
        numbers = first.unsqueeze(1) + torch.arange(self.heads, dtype=self._dtype)
        return numbers.index_select(0, self.others).view(-1).index_select(0, self.order)

    @derived
    def place(self) -> Tensor:
        """``[edges * heads]``, the inverse of ``order``: the place of each number of ``[edges, heads]``."""
        before = self._run_first - self._first
        each_edge = torch.arange(self.ends.numel(), dtype=self._dtype)
        places = each_edge.repeat_interleave(self.heads, output_size=self._total)
        return places.add_(before.index_select(0, self.ends).view(-1))

    @property
    def _total(self) -> int:
        return self.ends.numel() * self.heads

    @property
    def _dtype(self) -> torch.dtype:
        # Half the memory to read wherever a layer goes along the edges.
        largest = max(self.ends.numel(), self.node_starts.numel()) * max(self.heads, self.read_slots) ** 2
        return torch.int32 if largest <= torch.iinfo(torch.int32).max else torch.int64

    @derived
    def _first(self) -> Tensor:
        """Where the edges of each node begin, ``[nodes, 1]``."""
        return self.node_starts[:-1, None].to(self._dtype)

    @derived
    def _lengths(self) -> Tensor:
        return self.node_starts.diff().to(self._dtype)

    @derived
    def _run_first(self) -> Tensor:
        """Where each run begins, ``[nodes, heads]``: behind all heads of the nodes before, and the heads before."""
        each_head = torch.arange(self.heads, dtype=self._dtype)
        return self._first * self.heads + self._lengths.unsqueeze(1) * each_head
