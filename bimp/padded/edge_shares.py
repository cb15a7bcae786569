"""From mapped assignments to beta_hat (equations 8 to 10) in one function."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bimp.adjacency import Adjacency
from bimp.kernels.segments import sum_of_runs
from bimp.once import differentiable_once

aten = torch.ops.aten

SHORTEST = 1e-12
"""Of a distance the gradient is taken as if it were no shorter, so that of 0 it is 0."""


def beta_hat_of(mapped: Tensor, adjacency: Adjacency, sigma_m: float, epsilon: float) -> Tensor:
    """``sigmoid(beta)`` over its sum at the destination plus ``epsilon``, ``[edges]``.

    Args:
        mapped: S W_m, ``[nodes, K]``; the distance of two nodes is that of their rows.
        adjacency: of the edges.
        sigma_m: ``beta = exp(-distance / (2 sigma_m^2))``.
        epsilon: as above.
    """
    shares: Tensor = _EdgeShares.apply(mapped, adjacency, -1 / (2 * sigma_m**2), epsilon)  # type: ignore[no-untyped-call]
    return shares


class _EdgeShares(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, mapped: Tensor, adjacency: Adjacency, factor: float, epsilon: float) -> Tensor:
        differences = mapped.index_select(0, adjacency.source)
        differences.sub_(mapped.index_select(0, adjacency.destination))
        distances = torch.linalg.vector_norm(differences, dim=1, keepdim=True)
        beta = (distances * factor).exp_()
        sigmoids = beta.sigmoid()
        totals = sum_of_runs(sigmoids, adjacency.each_edge, adjacency.starts)
        if epsilon > 0:
            totals.add_(epsilon)
        totals = totals.index_select(0, adjacency.destination)
        shares = sigmoids / totals
        ctx.adjacency, ctx.factor = adjacency, factor
        ctx.save_for_backward(differences, distances, beta, sigmoids, totals, shares)
        of_edges: Tensor = shares.squeeze(1)
        return of_edges

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        differences, distances, beta, sigmoids, totals, shares = ctx.saved_tensors
        adjacency: Adjacency = ctx.adjacency
        grad = grad.unsqueeze(1)
        of_totals = sum_of_runs(grad * shares, adjacency.each_edge, adjacency.starts)
        grad = grad.sub(of_totals.index_select(0, adjacency.destination)).div_(totals)
        grad = aten.sigmoid_backward(grad, sigmoids).mul_(beta)
        of_edges = differences * grad.div_(distances.clamp(min=SHORTEST))
        of_edges.mul_(ctx.factor)
        at_sources = sum_of_runs(of_edges, adjacency.by_source, adjacency.source_starts)
        return at_sources.sub_(sum_of_runs(of_edges, adjacency.each_edge, adjacency.starts)), None, None, None
