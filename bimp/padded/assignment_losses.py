"""Both terms of the unsupervised loss (equation 7), each graph of a padded batch alone, in one function.

What a graph sums over its nodes, S * AS for its cut, d S * S for its volume and the outer product of S with itself for
its Gram matrix, stands side by side in a row for each node, so that one product sums all of it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bimp.data.batch import GraphBatch
from bimp.kernels.segments import sum_from_destinations, sum_from_sources
from bimp.once import differentiable_once
from bimp.padded.aggregation import members

MOST_CLUSTERS = 32
"""Clusters up to which the outer products of all nodes are written out."""


def min_cut_and_orthogonality(soft_assignment: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
    """:func:`bimp.losses.min_cut_loss` and :func:`~bimp.losses.orthogonality_loss` of ``[nodes, K]``, two scalars."""
    losses: tuple[Tensor, Tensor] = _AssignmentLosses.apply(soft_assignment, batch)  # type: ignore[no-untyped-call]
    return losses


class _AssignmentLosses(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, soft_assignment: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        nodes, clusters = soft_assignment.shape
        weights, degree = batch.adjacency.normalised(soft_assignment.dtype)
        neighbours = sum_from_sources(soft_assignment, batch.adjacency, weights)
        by_degree = soft_assignment * degree.unsqueeze(1)
        terms = soft_assignment.new_empty(nodes, 2 * clusters + clusters**2)
        of_cut, of_volume, of_gram = torch.split(terms, [clusters, clusters, clusters**2], dim=1)
        torch.mul(soft_assignment, neighbours, out=of_cut)
        torch.mul(soft_assignment, by_degree, out=of_volume)
        torch.mul(
            soft_assignment.unsqueeze(2), soft_assignment.unsqueeze(1), out=of_gram.view(nodes, clusters, clusters)
        )
        sums = members(batch, terms.dtype) @ terms
        cut, volume = sums[:, : 2 * clusters].view(-1, 2, clusters).sum(2).unbind(1)
        volume = volume + (volume == 0)  # a graph without edges has neither cut nor volume
        ratio = cut / volume
        gram = sums[:, 2 * clusters :]
        size = torch.linalg.vector_norm(gram, dim=1, keepdim=True)
        direction = gram / size
        away = direction - torch.eye(clusters, dtype=gram.dtype, device=gram.device).view(-1) / clusters**0.5
        distance = torch.linalg.vector_norm(away, dim=1, keepdim=True)
        ctx.batch = batch
        ctx.save_for_backward(soft_assignment, neighbours, by_degree, ratio, volume, direction, size, away, distance)
        return -ratio.mean(), distance.mean()

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad_cut: Tensor, grad_orthogonality: Tensor) -> tuple[Tensor, None]:
        soft_assignment, neighbours, by_degree, ratio, volume, direction, size, away, distance = ctx.saved_tensors
        batch: GraphBatch = ctx.batch
        graphs, (nodes, clusters) = batch.num_graphs, soft_assignment.shape
        weights, _ = batch.adjacency.normalised(soft_assignment.dtype)
        # Gradients of what each graph summed: of its cut, of its volume, of its Gram matrix, and twice of the latter.
        by_graph = soft_assignment.new_empty(graphs, 2 + clusters**2)
        torch.div(grad_cut / -graphs, volume, out=by_graph[:, 0])
        torch.mul(by_graph[:, 0], ratio, out=by_graph[:, 1])
        # Where it is orthogonal the distance has the gradient 0; a gradient over the smallest number could be infinite.
        grad_direction = away / distance.clamp(min=torch.finfo(away.dtype).tiny) * (grad_orthogonality / graphs)
        along = (grad_direction * direction).sum(1, keepdim=True)
        torch.div(grad_direction.addcmul_(direction, along, value=-1), size, out=by_graph[:, 2:])
        of_cut, of_volume, of_gram = torch.split(
            members(batch, by_graph.dtype).t() @ by_graph, [1, 1, clusters**2], dim=1
        )
        grad = sum_from_destinations(soft_assignment * of_cut, batch.adjacency, weights)
        grad.addcmul_(neighbours, of_cut)
        grad.addcmul_(by_degree, of_volume, value=-2)
        through_gram = torch.bmm(of_gram.view(nodes, clusters, clusters), soft_assignment.unsqueeze(2))
        return grad.add_(through_gram.squeeze(2), alpha=2), None
