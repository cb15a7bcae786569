"""Linear maps and embeddings with parameters of their own for every seed."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bimp.kernels.choice import kernels_serve
from bimp.kernels.linear import FEWEST_COLUMNS, FEWEST_ROWS, Linear, gradient_of_map, product
from bimp.once import differentiable_once


class StackedLinear(Linear):
    """:class:`~bimp.kernels.linear.Linear` with ``weight`` ``[seeds, out, in]`` and ``bias`` ``[seeds, out]``."""

    def of(self, rows: Tensor, bias: Tensor | None) -> Tensor:
        """Map rows ``[seeds * rows, in]`` to ``[seeds * rows, out]``, with ``bias`` in place of the map's own."""
        return stacked_linear(rows, self.weight, bias)

    def of_both(self, first: Tensor, second: Tensor) -> Tensor:
        """Map ``first`` and ``second`` side by side, ``[seeds * rows, ...]`` both."""
        mapped: Tensor = self(torch.cat([first, second], dim=1))
        return mapped


class StackedEmbedding(nn.Embedding):
    """``nn.Embedding`` with ``weight`` ``[seeds, numbers, width]``."""

    def forward(self, input: Tensor) -> Tensor:
        """Rows of the numbers ``[seeds * rows]``, ``[seeds * rows, width]``."""
        seeds, numbers, width = self.weight.shape
        first = numbers * torch.arange(seeds, device=input.device).unsqueeze(1)
        return F.embedding((input.view(seeds, -1) + first).view(-1), self.weight.reshape(-1, width))


def stacked_linear(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """``rows @ weight.T + bias`` of each seed, differentiable.

    Args:
        rows: ``[seeds * rows, in]``.
        weight: ``[seeds, out, in]``.
        bias: ``[seeds, out]`` or None.

    Returns:
        ``[seeds * rows, out]``.
    """
    seeds, out_dim, in_dim = weight.shape
    parts = rows.reshape(seeds, rows.shape[0] // seeds, in_dim)
    is_large = parts.shape[1] >= FEWEST_ROWS and in_dim >= FEWEST_COLUMNS
    if is_large and kernels_serve(rows, weight, bias):
        mapped: Tensor = _EachLinear.apply(parts, weight, bias)  # type: ignore[no-untyped-call]
    elif bias is None:
        mapped = torch.bmm(parts, weight.transpose(1, 2))
    else:
        mapped = torch.baddbmm(bias.unsqueeze(1), parts, weight.transpose(1, 2))
    return mapped.reshape(rows.shape[0], out_dim).to(weight.dtype)


class _EachLinear(torch.autograd.Function):
    """One product a seed, by :func:`bimp.kernels.linear.product`."""

    @staticmethod
    def forward(ctx: Any, parts: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(parts, weight)
        ctx.has_bias = bias is not None
        biases = [None] * len(weight) if bias is None else list(bias)
        return torch.stack([product(*each) for each in zip(parts, weight, biases, strict=True)])

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        parts, weight = ctx.saved_tensors
        wants_rows, wants_weight, _ = ctx.needs_input_grad
        grad = grad.contiguous()
        of_rows = of_weight = None
        if wants_rows:
            of_rows = torch.stack([product(g, w.t()) for g, w in zip(grad, weight, strict=True)])
        if wants_weight:
            of_weight = torch.stack([gradient_of_map(g, rows) for g, rows in zip(grad, parts, strict=True)])
        return of_rows, of_weight, grad.sum(1) if ctx.has_bias else None
