"""The end of a layer in one function: normalise, activate, add the rows before (the last terms of S2, S8 and S12).

Written out, these are three or four operators that each read and keep rows of their own. Here the backward pass finds
out from the rows before the normalisation alone where a ReLU lets a gradient through, so that nothing else is kept.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from bimp.kernels.exponential import exp_
from bimp.layers.row_norm import RowNorm

Activation = Literal["relu", "elu", "none"]


def update_rows(before: Tensor | None, rows: Tensor, norm: RowNorm, activation: Activation) -> Tensor:
    """``before + activation(norm(rows))``, all ``[rows, width]``; None: nothing is added."""
    updated: Tensor = _UpdateRows.apply(before, rows, norm.weight, norm.bias, norm, activation)  # type: ignore[no-untyped-call]
    return updated


def _elu(rows: Tensor) -> Tensor:
    """ELU: ``exp(x) - 1`` below 0, where it is above x."""
    return torch.maximum(rows, exp_(rows.clamp(max=0)).sub_(1))


class _UpdateRows(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        before: Tensor | None,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor,
        norm: RowNorm,
        activation: Activation,
    ) -> Tensor:
        mean, inverse_std, of_rows = norm.statistics(rows)
        scale = weight * inverse_std
        shift = bias - mean * scale
        activated = torch.addcmul(shift, rows, scale)
        kept = None
        if activation == "relu":
            activated.relu_()
        elif activation == "elu":
            kept = activated = _elu(activated)  # from the result follows the slope
        ctx.activation, ctx.of_rows, ctx.eps = activation, of_rows, norm.eps
        ctx.save_for_backward(rows, weight, mean, inverse_std, scale, shift, kept)
        if before is None:
            return activated
        return activated.add_(before) if kept is None else activated + before

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight, mean, inverse_std, scale, shift, kept = ctx.saved_tensors
        grad_normalised = grad
        if ctx.activation == "relu":
            normalised = torch.addcmul(shift, rows, scale)
            grad_normalised = torch.ops.aten.threshold_backward.grad_input(grad, normalised, 0, grad_input=normalised)
        elif ctx.activation == "elu":
            grad_normalised = torch.ops.aten.elu_backward(grad, 1, 1, 1, True, kept)
        if ctx.of_rows:
            grad_rows, grad_weight, grad_bias = torch.ops.aten.native_batch_norm_backward(
                grad_normalised, rows, weight, None, None, mean, inverse_std, True, ctx.eps, [True, True, True]
            )
        else:
            grad_rows, grad_bias = grad_normalised * scale, grad_normalised.sum(0)
            grad_weight = (grad_normalised * (rows - mean)).sum(0) * inverse_std
        return grad if ctx.needs_input_grad[0] else None, grad_rows, grad_weight, grad_bias, None, None
