"""Sums and maxima of neighbours, with backward passes that read the edges sorted by source."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bimp.adjacency import Adjacency
from bimp.kernels.room import first_rows, starts_with_room
from bimp.kernels.segments import dots_along_edges, sparse, sum_from_destinations, sum_of_runs
from bimp.once import differentiable_once

MOST_EDGES_A_NODE = 4
"""Edges into a node, on average, up to which one operator finds a maximum and its place fastest."""


def neighbour_sum(rows: Tensor, adjacency: Adjacency, weights: Tensor | None) -> Tensor:
    """As :func:`bimp.neighbourhood.sum_neighbour_rows`."""
    summed: Tensor = _NeighbourSumWithRoom.apply(rows, weights, adjacency)  # type: ignore[no-untyped-call]
    return summed


def rectified_neighbour_max(rows: Tensor, adjacency: Adjacency, weights: Tensor | None) -> Tensor:
    """As :func:`bimp.neighbourhood.max_rectified_neighbour_rows`."""
    is_kept = torch.is_grad_enabled()
    largest: Tensor = _RectifiedNeighbourMax.apply(rows, weights, adjacency, is_kept)  # type: ignore[no-untyped-call]
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
    @differentiable_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        adjacency: Adjacency = ctx.adjacency
        grad = grad.contiguous()
        at_source = sum_of_runs(grad, adjacency.by_source, adjacency.source_starts)
        return at_source, sum_of_runs(grad, adjacency.each_edge, adjacency.starts), None


class _NeighbourSumWithRoom(torch.autograd.Function):
    """The sums have room behind them for a product, and the gradient of the weights is one with a sparse matrix.

    It takes a quarter to four fifths of the time that embedding bags take for it, as padded batches do.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weights: Tensor | None, adjacency: Adjacency) -> Tensor:
        ctx.adjacency = adjacency
        ctx.save_for_backward(rows if ctx.needs_input_grad[1] else None, weights)
        sums = sum_of_runs(rows, adjacency.source, starts_with_room(adjacency.starts), weights)
        return first_rows(sums, adjacency.num_nodes)

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, weights = ctx.saved_tensors
        grad = grad.contiguous()
        wants_rows, wants_weights, _ = ctx.needs_input_grad
        return (
            sum_from_destinations(grad, ctx.adjacency, weights) if wants_rows else None,
            dots_along_edges(grad, rows, ctx.adjacency) if wants_weights else None,
            None,
        )


class _RectifiedNeighbourMax(torch.autograd.Function):
    """The ReLU comes after the maximum, which is the same and goes over fewer rows, twice where others go anyway."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weights: Tensor | None, adjacency: Adjacency, is_kept: bool) -> Tensor:
        factors = rows.new_ones(adjacency.num_edges) if weights is None else weights
        matrix = sparse(factors, adjacency)
        if not (is_kept and any(ctx.needs_input_grad)):  # which say nothing of the mode
            without_gradient: Tensor = torch.sparse.mm(matrix, rows, "amax").relu_()
            return without_gradient
        if adjacency.num_edges <= MOST_EDGES_A_NODE * adjacency.num_nodes:
            largest, edge = _largest_and_its_edge(matrix, rows)
        else:
            largest = torch.sparse.mm(matrix, rows, "amax")
            edge = _first_edge_that_gave(largest, rows, adjacency, weights)
        edge.clamp_(max=max(adjacency.num_edges - 1, 0))
        largest.relu_()
        ctx.adjacency = adjacency
        ctx.save_for_backward(rows if weights is not None else None, weights, largest, edge)
        return largest

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, weights, largest, edge = ctx.saved_tensors
        adjacency: Adjacency = ctx.adjacency
        wants_rows, wants_weights, *_ = ctx.needs_input_grad
        nodes, width = grad.shape
        if adjacency.num_edges == 0:
            return torch.zeros_like(grad), None if weights is None else torch.zeros_like(weights), None, None
        grad = torch.ops.aten.threshold_backward(grad, largest, 0).reshape(-1)
        edge = edge.view(-1)
        # Entries of the rows counted through: along one dimension the operators take half the time.
        entry = (adjacency.source * width).index_select(0, edge).view(nodes, width)
        entry = entry.add_(torch.arange(width)).view(-1)
        grad_rows, grad_weights = None, None
        if wants_rows:
            grad_messages = grad if weights is None else grad * weights.index_select(0, edge)
            grad_rows = grad.new_zeros(nodes * width).scatter_add_(0, entry, grad_messages).view(nodes, width)
        if wants_weights:
            products = rows.flatten().index_select(0, entry).mul_(grad)
            grad_weights = torch.zeros_like(weights).scatter_add_(0, edge, products)
        return grad_rows, grad_weights, None, None


def _largest_and_its_edge(matrix: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The maximum, and the first edge that gave it, both ``[nodes, width]``; any number where there is none."""
    # The operator tells the edge only where a gradient may be asked for.
    with torch.enable_grad():
        largest, edge = torch.ops.aten._sparse_mm_reduce_impl(matrix, rows.detach().requires_grad_(), "amax")
    return largest.detach(), edge


def _first_edge_that_gave(largest: Tensor, rows: Tensor, adjacency: Adjacency, weights: Tensor | None) -> Tensor:
    """The first edge whose message equals the maximum, ``[nodes, width]``; any number where there is none.

    Block by block every message is held against the maximum and the places of equal ones, counted from the block's
    end, are maximised. Where many edges lead into a node, the operator that tells the place itself takes twice as
    long.
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
    return edge
