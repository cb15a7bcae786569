"""Attention over in-neighbours that writes nothing wider than the heads for each edge (equations S5 to S7).

A head's messages are a weighted sum of its nodes' rows, which needs no row for each edge: neither forward nor, where
the edges are read by source, backward. Kept for the backward pass is one number for each edge and head.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bimp.adjacency import Adjacency
from bimp.head_runs import HeadRuns
from bimp.kernels.exponential import exp_
from bimp.kernels.segments import sparse, sum_of_runs


def attend(
    values: Tensor,
    at_source: Tensor,
    at_destination: Tensor,
    beta_hat: Tensor | None,
    adjacency: Adjacency,
    slope: float,
) -> Tensor:
    """For each node the sum of its in-neighbours' values, weighed by their attention and by beta_hat.

    The attention is the softmax over the in-neighbours of ``LeakyReLU(at_source[u] + at_destination[v])``.

    Args:
        values: ``[nodes, heads, width]``.
        at_source: ``[nodes, heads]``, what a node adds to the logits of the edges out of it.
        at_destination: ``[nodes, heads]``, what it adds to those of the edges into it.
        beta_hat: ``[edges]``, or None for 1.
        adjacency: of the edges.
        slope: negative slope of the LeakyReLU, not below 0.

    Returns:
        ``[nodes, heads, width]``.
    """
    attended: Tensor = _Attend.apply(  # type: ignore[no-untyped-call]
        values, at_source, at_destination, beta_hat, adjacency, slope
    )
    return attended


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        at_source: Tensor,
        at_destination: Tensor,
        beta_hat: Tensor | None,
        adjacency: Adjacency,
        slope: float,
    ) -> Tensor:
        exponentials = _logits(at_source, at_destination, adjacency, slope)
        exp_(exponentials.sub_(_largest(at_source, at_destination, adjacency, slope)))
        total = sum_of_runs(exponentials, adjacency.each_edge, adjacency.starts)
        attention = exponentials.div_(total.index_select(0, adjacency.destination))
        weights = attention if beta_hat is None else attention * beta_hat.unsqueeze(1)
        values = values.contiguous()
        ctx.adjacency, ctx.slope = adjacency, slope
        ctx.save_for_backward(values, at_source, at_destination, beta_hat, attention)
        return _sums_by_head(values, weights, adjacency.runs_into(values.shape[1]))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        values, at_source, at_destination, beta_hat, attention = ctx.saved_tensors
        adjacency: Adjacency = ctx.adjacency
        heads = values.shape[1]
        weights = attention if beta_hat is None else attention * beta_hat.unsqueeze(1)
        grad = grad.contiguous()
        weights_by_source = weights.index_select(0, adjacency.by_source)
        grad_values = _sums_by_head(grad, weights_by_source, adjacency.runs_out_of(heads))
        grad_weights = _dots_by_head(grad, values, adjacency.runs_into(heads))
        grad_beta_hat = None
        if beta_hat is not None and ctx.needs_input_grad[3]:
            grad_beta_hat = (grad_weights * attention).sum(1)
        # Of the softmax: what the gradients have in common at a destination changes nothing.
        share = grad_weights.mul_(weights)
        common = sum_of_runs(share, adjacency.each_edge, adjacency.starts)
        grad_logits = share.addcmul_(attention, common.index_select(0, adjacency.destination), value=-1)
        signs = at_source.index_select(0, adjacency.source)
        signs.add_(at_destination.index_select(0, adjacency.destination))
        grad_logits = torch.ops.aten.leaky_relu_backward(grad_logits, signs, ctx.slope, False)
        return (
            grad_values,
            sum_of_runs(grad_logits, adjacency.by_source, adjacency.source_starts),
            sum_of_runs(grad_logits, adjacency.each_edge, adjacency.starts),
            grad_beta_hat,
            None,
            None,
        )


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
    """For each run the sum of the other ends' rows, each times its weight of ``[edges, heads]``; shaped as ``rows``."""
    in_runs = weights.view(-1).index_select(0, runs.order)
    return sum_of_runs(rows.flatten(0, 1), runs.rows, runs.starts, in_runs).view_as(rows)


def _dots_by_head(at_destination: Tensor, at_source: Tensor, runs: HeadRuns) -> Tensor:
    """Dot products of both ends' rows, ``[edges, heads]``."""
    rows, others = at_destination.flatten(0, 1), at_source.flatten(0, 1)
    pattern = torch.sparse_csr_tensor(
        runs.starts, runs.rows, rows.new_zeros(runs.rows.numel()), (len(rows), len(rows)), check_invariants=False
    )
    dots: Tensor = torch.sparse.sampled_addmm(pattern, rows, others.t(), beta=0.0).values()
    return dots.index_select(0, runs.place).view(-1, at_source.shape[1])
