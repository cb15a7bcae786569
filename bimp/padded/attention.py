"""The attention of a GAT layer in one function (equations S5 to S8)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bimp.adjacency import Adjacency
from bimp.kernels.attention import HeadColumns
from bimp.kernels.segments import sum_of_runs
from bimp.once import differentiable_once

aten = torch.ops.aten


def attend(mapped: Tensor, columns: HeadColumns, beta_hat: Tensor | None, adjacency: Adjacency, slope: float) -> Tensor:
    """The nodes' aggregates, ``[nodes, heads * width]``, 0 for a node without in-neighbours.

    Args:
        mapped: ``[nodes, columns]``, U h and what a node adds to logits, without columns of no use.
        columns: which are which.
        beta_hat: ``[edges]``, or None for 1.
        adjacency: of the edges.
        slope: negative slope of the LeakyReLU.
    """
    attended: Tensor = _Attention.apply(mapped, beta_hat, columns, adjacency, slope)  # type: ignore[no-untyped-call]
    return attended


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, mapped: Tensor, beta_hat: Tensor | None, columns: HeadColumns, adjacency: Adjacency, slope: float
    ) -> Tensor:
        heads, width, edges = columns.heads, columns.width, adjacency.num_edges
        at_source, at_destination = mapped[:, columns.source], mapped[:, columns.destination]
        logits = at_source.index_select(0, adjacency.source)
        logits.add_(at_destination.index_select(0, adjacency.destination))
        shifted = torch.nn.functional.leaky_relu(logits, slope)
        # Any shift of a neighbourhood cancels out; by its largest logit none overflows.
        shifted.sub_(_largest(shifted, adjacency).index_select(0, adjacency.destination))
        sent = mapped[:, : columns.values].index_select(0, adjacency.source).view(edges, heads, width)
        # Side by side: the messages, and the shares that they are divided by.
        messages_and_shares = sent.new_empty(edges, heads * width + heads)
        messages, shares = _apart(messages_and_shares, heads)
        torch.exp(shifted, out=shares)
        factors = shares if beta_hat is None else shares * beta_hat.unsqueeze(1)
        torch.mul(sent, factors.unsqueeze(2), out=messages)
        summed, totals = _apart(sum_of_runs(messages_and_shares, adjacency.each_edge, adjacency.starts), heads)
        totals = totals.clamp(min=torch.finfo(totals.dtype).tiny).unsqueeze(2)
        attended = summed / totals
        ctx.adjacency, ctx.slope = adjacency, slope
        ctx.save_for_backward(logits, shares, factors, beta_hat, sent, totals, attended)
        return attended.flatten(1)

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, shares, factors, beta_hat, sent, totals, attended = ctx.saved_tensors
        adjacency: Adjacency = ctx.adjacency
        nodes, heads, width = attended.shape
        of_sums_and_totals = grad.new_empty(nodes, heads * width + heads)
        of_sums, minus_of_totals = _apart(of_sums_and_totals, heads)
        torch.div(grad.view(nodes, heads, width), totals, out=of_sums)
        torch.sum(of_sums * attended, dim=2, out=minus_of_totals)
        of_messages, minus_of_shares = _apart(of_sums_and_totals.index_select(0, adjacency.destination), heads)
        of_sent_and_logits = grad.new_empty(len(sent), heads * width + heads)
        of_sent, of_logits = _apart(of_sent_and_logits, heads)
        torch.mul(of_messages, factors.unsqueeze(2), out=of_sent)
        of_factors = (of_messages * sent).sum(2)
        of_beta_hat = None
        if beta_hat is not None:
            of_beta_hat = (of_factors * shares).sum(1)
            of_factors.mul_(beta_hat.unsqueeze(1))
        of_shifted = of_factors.sub_(minus_of_shares).mul_(shares)
        aten.leaky_relu_backward.grad_input(of_shifted, logits, ctx.slope, False, grad_input=of_logits)
        at_sources = sum_of_runs(of_sent_and_logits, adjacency.by_source, adjacency.source_starts)
        at_destinations = sum_of_runs(of_logits, adjacency.each_edge, adjacency.starts)
        return torch.cat([at_sources, at_destinations], dim=1), of_beta_hat, None, None, None


def _apart(rows: Tensor, heads: int) -> tuple[Tensor, Tensor]:
    """Of ``[rows, heads * width + heads]`` the first as ``[rows, heads, width]``, and the rest."""
    wide = rows[:, : rows.shape[1] - heads]
    return wide.view(len(rows), heads, -1), rows[:, rows.shape[1] - heads :]


def _largest(logits: Tensor, adjacency: Adjacency) -> Tensor:
    """Of the edges into each node, ``[nodes, heads]``."""
    largest, *_ = torch.embedding_bag(logits, adjacency.each_edge, adjacency.starts, mode=2, include_last_offset=True)
    return largest
