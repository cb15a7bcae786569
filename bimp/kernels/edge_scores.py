"""The scores of edges by the MLP head in one function that goes through them block by block (equation 3).

Written out, the head makes and keeps several rows for each edge, and the largest part of a step on TSP is their way to
memory and back. Here a block of edges passes through the whole head while it lies in the cache, and the rows of its
first map are computed again in the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from bimp.adjacency import Adjacency
from bimp.edge_blocks import BLOCK_EDGES
from bimp.kernels.linear import gradient_of_map, product
from bimp.kernels.room import empty_with_room
from bimp.kernels.segments import sum_of_both_ends, sum_of_runs
from bimp.once import differentiable_once


def edge_scores(
    mapped: Tensor,
    adjacency: Adjacency,
    second_weight: Tensor,
    second_bias: Tensor,
    third_weight: Tensor,
    third_bias: Tensor,
) -> Tensor:
    """The scores of each edge, ``[edges, scores]``: ``third(relu(second(relu(at_source[u] + at_destination[v]))))``.

    Args:
        mapped: ``[nodes, 2 width]``, ``at_source`` and ``at_destination`` side by side: what a node adds to the first
            rows of the edges out of it, and of those into it.
        adjacency: the edges.
        second_weight: ``[hidden, width]``.
        second_bias: ``[hidden]``.
        third_weight: ``[scores, hidden]``.
        third_bias: ``[scores]``.
    """
    scores: Tensor = _EdgeScores.apply(  # type: ignore[no-untyped-call]
        mapped, second_weight, second_bias, third_weight, third_bias, adjacency, torch.is_grad_enabled()
    )
    return scores


class _EdgeScores(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        mapped: Tensor,
        second_weight: Tensor,
        second_bias: Tensor,
        third_weight: Tensor,
        third_bias: Tensor,
        adjacency: Adjacency,
        is_training: bool,
    ) -> Tensor:
        edges = adjacency.num_edges
        is_kept = is_training and any(ctx.needs_input_grad)  # which says nothing of the mode
        hidden = empty_with_room(edges if is_kept else min(edges, BLOCK_EDGES), len(second_weight), like=mapped)
        scores = mapped.new_empty(edges, len(third_weight))
        for block in _blocks(edges):
            rows = hidden[block] if is_kept else hidden[: block.stop - block.start]
            torch.clamp(product(_first_rows(mapped, adjacency, block), second_weight, second_bias), min=0, out=rows)
            scores[block] = product(rows, third_weight, third_bias)
        if is_kept:
            ctx.adjacency = adjacency
            ctx.save_for_backward(mapped, second_weight, third_weight, hidden)
        return scores

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        mapped, second_weight, third_weight, hidden = ctx.saved_tensors
        adjacency: Adjacency = ctx.adjacency
        grad = grad.contiguous()
        of_first = mapped.new_empty(adjacency.num_edges, second_weight.shape[1])
        of_second, of_third = torch.zeros_like(second_weight), torch.zeros_like(third_weight)
        of_second_bias = mapped.new_zeros(len(second_weight))
        for block in _blocks(adjacency.num_edges):
            of_scores, rows = grad[block], hidden[block]
            of_third += gradient_of_map(of_scores, rows)
            of_hidden = product(of_scores, third_weight.t())
            torch.ops.aten.threshold_backward.grad_input(of_hidden, rows, 0, grad_input=of_hidden)
            of_second_bias += of_hidden.sum(0)
            first = _first_rows(mapped, adjacency, block)
            of_second += gradient_of_map(of_hidden, first)
            of_rows = product(of_hidden, second_weight.t())
            torch.ops.aten.threshold_backward.grad_input(of_rows, first, 0, grad_input=of_first[block])
        at_source = sum_of_runs(of_first, adjacency.by_source, adjacency.source_starts)
        at_destination = sum_of_runs(of_first, adjacency.each_edge, adjacency.starts)
        of_mapped = torch.cat(
            [at_source, at_destination], dim=1, out=empty_with_room(len(mapped), mapped.shape[1], like=mapped)
        )
        return of_mapped, of_second, of_second_bias, of_third, grad.sum(0), None, None


def _first_rows(mapped: Tensor, adjacency: Adjacency, block: slice) -> Tensor:
    """Rows of a block of edges after the first map, ``[edges of the block, width]``."""
    return sum_of_both_ends(mapped, 2, adjacency, block).relu_()


def _blocks(edges: int) -> Iterator[slice]:
    for start in range(0, edges, BLOCK_EDGES):
        yield slice(start, min(start + BLOCK_EDGES, edges))
