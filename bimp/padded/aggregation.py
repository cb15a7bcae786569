"""Sums of neighbours, graphs and equal numbers whose backward passes need neither sort nor atomic addition."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bimp.adjacency import Adjacency
from bimp.data.batch import GraphBatch
from bimp.kernels.segments import sum_from_destinations, sum_from_sources, sum_of_runs
from bimp.once import differentiable_once

aten = torch.ops.aten

FEW_NUMBERS = 256
"""Embedded numbers up to which their gradient is a product with a matrix of 0 and 1."""


def neighbour_sum(rows: Tensor, adjacency: Adjacency, weights: Tensor | None) -> Tensor:
    """As :func:`bimp.neighbourhood.sum_neighbour_rows`."""
    summed: Tensor = _NeighbourSumByBags.apply(rows, weights, adjacency)  # type: ignore[no-untyped-call]
    return summed


def sum_over_neighbours(messages: Tensor, adjacency: Adjacency) -> Tensor:
    """As :func:`bimp.neighbourhood.sum_over_neighbours`."""
    rows = messages.reshape(len(messages), -1)
    summed: Tensor = _SumOfEdges.apply(rows, adjacency)  # type: ignore[no-untyped-call]
    return summed.view(-1, *messages.shape[1:])


def rectified_to_compare(rows: Tensor) -> Tensor:
    """``relu(rows)`` for a maximum over neighbours, which passes over what is not a number: infinite in place of it."""
    rectified: Tensor = _RectifiedToCompare.apply(rows)  # type: ignore[no-untyped-call]
    return rectified


def sum_of_graphs(rows: Tensor, batch: GraphBatch) -> Tensor:
    """Sum of the rows of each real graph's nodes: ``[nodes, width]`` to ``[graphs, width]``.

    Rows of the padding must be finite.
    """
    device = rows.device.type
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        with torch.autocast(device, enabled=False):  # which would sum in half precision
            return sum_of_graphs(rows, batch)
    return members(batch, rows.dtype) @ rows


def members(batch: GraphBatch, dtype: torch.dtype) -> Tensor:
    """``[graphs, nodes]``: 1 where a node is of a real graph, else 0; made once a batch."""
    assert batch.padding is not None
    made = batch.padding.members
    if dtype not in made:
        graphs = torch.arange(batch.num_graphs, device=batch.batch.device)
        made[dtype] = (graphs.unsqueeze(1) == batch.batch).to(dtype)
    return made[dtype]


def embedded(numbers: Tensor, weight: Tensor) -> Tensor:
    """``weight[numbers]``: ``[rows]`` and ``[numbers, width]``, few, to ``[rows, width]``."""
    rows: Tensor = _Embedded.apply(numbers, weight)  # type: ignore[no-untyped-call]
    return rows


class _SumOfEdges(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, adjacency: Adjacency) -> Tensor:
        ctx.adjacency = adjacency
        return sum_of_runs(rows, adjacency.each_edge, adjacency.starts)

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad.index_select(0, ctx.adjacency.destination), None


class _NeighbourSumByBags(torch.autograd.Function):
    """Embedding bags forward and backward, where main memory is served by a product with a sparse matrix."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weights: Tensor | None, adjacency: Adjacency) -> Tensor:
        ctx.adjacency = adjacency
        ctx.save_for_backward(rows if ctx.needs_input_grad[1] else None, weights)
        return sum_from_sources(rows, adjacency, weights)

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, weights = ctx.saved_tensors
        adjacency: Adjacency = ctx.adjacency
        wants_rows, wants_weights, _ = ctx.needs_input_grad
        grad = grad.contiguous()
        grad_weights = None
        if wants_weights:
            grad_weights = aten._embedding_bag_per_sample_weights_backward(
                grad, rows, adjacency.source, adjacency.starts, adjacency.destination, 0
            )
        return sum_from_destinations(grad, adjacency, weights) if wants_rows else None, grad_weights, None


class _RectifiedToCompare(torch.autograd.Function):
    """One operator more than the ReLU takes, and none more backward."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        rectified = torch.relu(rows).nan_to_num_(torch.inf, torch.inf)
        ctx.save_for_backward(rectified)
        return rectified

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (rectified,) = ctx.saved_tensors
        of_rows: Tensor = aten.threshold_backward(grad, rectified, 0)
        return of_rows


class _Embedded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, numbers: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(numbers)
        ctx.count = len(weight)
        return weight.index_select(0, numbers)

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        (numbers,) = ctx.saved_tensors
        # One product with a row for each number, which says where it stands.
        stands = torch.arange(ctx.count, device=numbers.device).unsqueeze(1) == numbers
        return None, stands.to(grad.dtype) @ grad
