"""Attention over in-neighbours that writes nothing wider than the heads for each edge (equations S5 to S7).

A head's messages are a weighted sum of its nodes' rows, which needs no row for each edge: neither forward nor, where
the edges are read by source, backward. Kept for the backward pass is one number for each edge and head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bimp.adjacency import Adjacency
from bimp.head_runs import HeadRuns
from bimp.kernels.exponential import exp_
from bimp.kernels.room import empty_like_with_room, first_rows, starts_with_room
from bimp.kernels.segments import dots_of_runs, sparse, sum_of_runs
from bimp.once import differentiable_once

MOST_UNUSED = 1 / 8
"""Unused columns of a node's row, for each of its values, that cost less than a copy of the values does."""


@dataclass(frozen=True, kw_only=True)
class HeadColumns:
    """Which columns of a mapped node's row are what.

    First the heads' values side by side, then for each head what the node adds to logits as a source, then for each
    what it adds as a destination; then columns without use.

    Attributes:
        heads: their number.
        width: columns of a head's values.
    """

    heads: int
    width: int

    @property
    def values(self) -> int:
        """Columns of all values."""
        return self.heads * self.width

    @property
    def unused(self) -> int:
        """Columns to add so that a node's row is a whole number of rows of a head's width, where these are few.

        The values then are read where they lie, and the gradients are written there.
        """
        missing = -2 * self.heads % self.width
        return missing if missing <= MOST_UNUSED * self.values else 0

    @property
    def slots(self) -> int:
        """Rows of a head's width in a node's row; as many as heads where it is no whole number of them."""
        rows, rest = divmod(self.values + 2 * self.heads + self.unused, self.width)
        return rows if rest == 0 else self.heads

    @property
    def source(self) -> slice:
        """Columns of what a node adds to logits as a source."""
        return slice(self.values, self.values + self.heads)

    @property
    def destination(self) -> slice:
        """Columns of what a node adds to logits as a destination."""
        return slice(self.values + self.heads, self.values + 2 * self.heads)

    def rows_of_heads(self, mapped: Tensor) -> Tensor:
        """``[nodes * slots, width]``, the values of node 0 first."""
        return (mapped if self.slots > self.heads else mapped[:, : self.values]).reshape(-1, self.width)


def attend(mapped: Tensor, columns: HeadColumns, beta_hat: Tensor | None, adjacency: Adjacency, slope: float) -> Tensor:
    """For each node the sum of its in-neighbours' values, weighed by their attention and by beta_hat.

    The attention is the softmax over the in-neighbours of ``LeakyReLU(at_source[u] + at_destination[v])``.

    Args:
        mapped: ``[nodes, columns]``, contiguous.
        columns: of ``mapped``.
        beta_hat: ``[edges]``, or None for 1.
        adjacency: of the edges.
        slope: negative slope of the LeakyReLU, not below 0.

    Returns:
        ``[nodes, heads * width]``, the heads side by side.
    """
    attended: Tensor = _Attend.apply(mapped, beta_hat, columns, adjacency, slope)  # type: ignore[no-untyped-call]
    return attended


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, mapped: Tensor, beta_hat: Tensor | None, columns: HeadColumns, adjacency: Adjacency, slope: float
    ) -> Tensor:
        at_source, at_destination = mapped[:, columns.source], mapped[:, columns.destination]
        exponentials = _logits(at_source, at_destination, adjacency, slope)
        exp_(exponentials.sub_(_largest(at_source, at_destination, adjacency, slope)))
        total = sum_of_runs(exponentials, adjacency.each_edge, adjacency.starts)
        attention = exponentials.div_(total.index_select(0, adjacency.destination))
        weights = attention if beta_hat is None else attention * beta_hat.unsqueeze(1)
        ctx.columns, ctx.adjacency, ctx.slope = columns, adjacency, slope
        ctx.save_for_backward(mapped, beta_hat, attention)
        runs = adjacency.runs_into(columns.heads, columns.slots)
        return _sums_by_head(columns.rows_of_heads(mapped), weights, runs).view(-1, columns.values)

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        mapped, beta_hat, attention = ctx.saved_tensors
        columns: HeadColumns = ctx.columns
        adjacency: Adjacency = ctx.adjacency
        heads = columns.heads
        weights = attention if beta_hat is None else attention * beta_hat.unsqueeze(1)
        grad_rows = grad.reshape(-1, columns.width)
        grad_values = _sums_by_source(grad_rows, weights, columns, adjacency)
        runs_into = adjacency.runs_into(heads, columns.slots)
        grad_weights = _dots_by_head(grad_rows, columns.rows_of_heads(mapped), runs_into)
        grad_beta_hat = None
        if beta_hat is not None and ctx.needs_input_grad[1]:
            grad_beta_hat = (grad_weights * attention).sum(1)
        # Of the softmax: what the gradients have in common at a destination changes nothing.
        share = grad_weights.mul_(weights)
        common = sum_of_runs(share, adjacency.each_edge, adjacency.starts)
        grad_logits = share.addcmul_(attention, common.index_select(0, adjacency.destination), value=-1)
        at_source, at_destination = mapped[:, columns.source], mapped[:, columns.destination]
        signs = at_source.index_select(0, adjacency.source)
        signs.add_(at_destination.index_select(0, adjacency.destination))
        grad_logits = torch.ops.aten.leaky_relu_backward(grad_logits, signs, ctx.slope, False)
        grad_source = sum_of_runs(grad_logits, adjacency.by_source, adjacency.source_starts)
        grad_destination = sum_of_runs(grad_logits, adjacency.each_edge, adjacency.starts)
        if columns.slots > heads:
            grad_values[:, columns.source] = grad_source
            grad_values[:, columns.destination] = grad_destination
            return grad_values, grad_beta_hat, None, None, None
        parts = [grad_values, grad_source, grad_destination]
        return torch.cat(parts, dim=1, out=empty_like_with_room(mapped)), grad_beta_hat, None, None, None


def _logits(at_source: Tensor, at_destination: Tensor, adjacency: Adjacency, slope: float) -> Tensor:
    """``[edges, heads]``."""
    sums = at_source.index_select(0, adjacency.source)
    sums.add_(at_destination.index_select(0, adjacency.destination))
    return F.leaky_relu_(sums, slope)


def _largest(at_source: Tensor, at_destination: Tensor, adjacency: Adjacency, slope: float) -> Tensor:
    """The largest logit at the destination of each edge, ``[edges, heads]``.

    Logits grow with the source's part, rounding included: the largest part gives the largest logit, to the last bit.
    """
    ones = at_source.new_ones(adjacency.num_edges)
    largest = torch.sparse.mm(sparse(ones, adjacency), at_source.contiguous(), "amax").add_(at_destination)
    return F.leaky_relu_(largest, slope).index_select(0, adjacency.destination)


def _sums_by_head(rows: Tensor, weights: Tensor, runs: HeadRuns) -> Tensor:
    """For each run the sum of the other ends' ``rows``, each times its weight of ``[edges, heads]``."""
    return sum_of_runs(rows, runs.rows, runs.starts, weights.view(-1).index_select(0, runs.order))


def _sums_by_source(rows: Tensor, weights: Tensor, columns: HeadColumns, adjacency: Adjacency) -> Tensor:
    """For each source the sum of its destinations' ``rows``, ``[nodes, slots * width]``; 0 in slots of no head."""
    runs = adjacency.runs_out_of(columns.heads, columns.slots)
    in_runs = weights.index_select(0, adjacency.by_source).view(-1).index_select(0, runs.order)
    sums = sum_of_runs(rows, runs.rows, starts_with_room(runs.starts, columns.slots), in_runs)
    return first_rows(sums.view(-1, columns.slots * columns.width), adjacency.num_nodes)


def _dots_by_head(at_destination: Tensor, at_source: Tensor, runs: HeadRuns) -> Tensor:
    """Dot products of both ends' rows, ``[edges, heads]``."""
    dots = dots_of_runs(at_destination, at_source, runs.rows, runs.starts)
    return dots.index_select(0, runs.place).view(-1, runs.heads)
