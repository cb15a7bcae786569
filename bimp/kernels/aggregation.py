"""Sums and maxima of neighbours, with backward passes that read the edges sorted by source."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bimp.adjacency import Adjacency
from bimp.kernels.segments import dots_along_edges, sparse, sum_from_destinations, sum_from_sources, sum_of_runs


def neighbour_sum(rows: Tensor, adjacency: Adjacency, weights: Tensor | None) -> Tensor:
    """As :func:`bimp.neighbourhood.sum_neighbour_rows`."""
    summed: Tensor = _NeighbourSum.apply(rows, weights, adjacency)  # type: ignore[no-untyped-call]
    return summed


def neighbour_max(rows: Tensor, adjacency: Adjacency, weights: Tensor | None) -> Tensor:
    """As :func:`bimp.neighbourhood.max_neighbour_rows`."""
    largest: Tensor = _NeighbourMax.apply(rows, weights, adjacency)  # type: ignore[no-untyped-call]
    return largest


def edge_sums(at_source: Tensor, at_destination: Tensor, adjacency: Adjacency) -> Tensor:
    """As :func:`bimp.neighbourhood.sum_along_edges`."""
    sums: Tensor = _EdgeSums.apply(at_source, at_destination, adjacency)  # type: ignore[no-untyped-call]
    return sums


class _EdgeSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, at_source: Tensor, at_destination: Tensor, adjacency: Adjacency) -> Tensor:
        ctx.adjacency = adjacency
        sums = at_source.index_select(0, adjacency.source)
        return sums.add_(at_destination.index_select(0, adjacency.destination))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        adjacency: Adjacency = ctx.adjacency
        grad = grad.contiguous()
        at_source = sum_of_runs(grad, adjacency.by_source, adjacency.source_starts)
        return at_source, sum_of_runs(grad, adjacency.each_edge, adjacency.starts), None


class _NeighbourSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weights: Tensor | None, adjacency: Adjacency) -> Tensor:
        ctx.adjacency = adjacency
        ctx.save_for_backward(rows, weights)
        return sum_from_sources(rows, adjacency, weights)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, weights = ctx.saved_tensors
        grad = grad.contiguous()
        wants_rows, wants_weights, _ = ctx.needs_input_grad
        return (
            sum_from_destinations(grad, ctx.adjacency, weights) if wants_rows else None,
            dots_along_edges(grad, rows, ctx.adjacency) if wants_weights else None,
            None,
        )


class _NeighbourMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weights: Tensor | None, adjacency: Adjacency) -> Tensor:
        factors = rows.new_ones(adjacency.num_edges) if weights is None else weights
        largest: Tensor = torch.sparse.mm(sparse(factors, adjacency), rows, "amax")
        if any(ctx.needs_input_grad):
            ctx.adjacency = adjacency
            ctx.save_for_backward(rows, weights, _first_edge_that_gave(largest, rows, adjacency, weights))
        return largest

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, weights, edge = ctx.saved_tensors
        wants_rows, wants_weights, _ = ctx.needs_input_grad
        if ctx.adjacency.num_edges == 0:
            no_weights = None if weights is None else torch.zeros_like(weights)
            return torch.zeros_like(rows), no_weights, None
        grad = grad * (ctx.adjacency.in_degree > 0).unsqueeze(1)
        source = ctx.adjacency.source.take(edge)
        grad_rows, grad_weights = None, None
        if wants_rows:
            grad_messages = grad if weights is None else grad * weights.take(edge)
            grad_rows = torch.zeros_like(rows).scatter_add_(0, source, grad_messages)
        if wants_weights:
            products = grad * rows.gather(0, source)
            grad_weights = torch.zeros_like(weights).scatter_add_(0, edge.view(-1), products.view(-1))
        return grad_rows, grad_weights, None


def _first_edge_that_gave(largest: Tensor, rows: Tensor, adjacency: Adjacency, weights: Tensor | None) -> Tensor:
    """The first edge whose message equals the maximum, ``[nodes, width]``; any edge where there is none.

    Block by block every message is held against the maximum and the places of equal ones, counted from the block's
    end, are maximised. The operator that tells the place itself takes twice as long.
    """
    edge = torch.empty_like(largest, dtype=torch.int64)
    for block in adjacency.blocks:
        edges = block.places.numel()
        messages = rows.index_select(0, block.source)
        if weights is not None:
            messages.mul_(weights[block.edges].unsqueeze(1))
        torch.eq(messages, largest.index_select(0, block.destination), out=messages)
        messages.mul_(torch.arange(edges, 0, -1, dtype=rows.dtype).unsqueeze(1))
        size = (block.starts.numel() - 1, edges)
        runs = torch.sparse_csr_tensor(block.starts, block.places, rows.new_ones(edges), size, check_invariants=False)
        edge[block.nodes] = block.edges.stop - torch.sparse.mm(runs, messages, "amax").long()
    last = max(adjacency.num_edges - 1, 0)
    return edge.clamp_(max=last)
