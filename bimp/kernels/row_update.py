"""The end of a layer in one function: normalise, activate, add the rows before (the last terms of S2, S8 and S12).

Written out, these are three or four operators that each read and keep rows of their own. Here the backward pass finds
out from the rows before the normalisation alone where a ReLU lets a gradient through, so that nothing else is kept.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from bimp.kernels.exponential import exp_
from bimp.kernels.room import empty_like_with_room
from bimp.once import differentiable_once
from bimp.row_norm import RowNorm

Activation = Literal["relu", "elu", "none"]


def update_rows(before: Tensor | None, rows: Tensor, norm: RowNorm, activation: Activation) -> Tensor:
    """``before + activation(norm(rows))``, all ``[rows, width]``; None: nothing is added."""
    updated: Tensor = _UpdateRows.apply(before, rows, norm.weight, norm.bias, norm, activation)  # type: ignore[no-untyped-call]
    return updated


def _slope_of_elu_(rows: Tensor) -> Tensor:
    """``exp(min(x, 0))`` in place of ``rows``: the slope of ELU, and below 0 its value plus 1."""
    return exp_(rows.clamp_(max=0))


class _UpdateRows(torch.autograd.Function):
    """All but one operator of each pass write where another has read: to write elsewhere costs several times more."""

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
        updated = torch.addcmul(shift, rows, scale, out=empty_like_with_room(rows))
        if activation == "relu":
            updated.relu_()
        elif activation == "elu":
            below = exp_(updated.clamp(max=0)).sub_(1)
            torch.maximum(updated, below, out=updated)
        if before is not None:
            updated.add_(before)
        ctx.activation, ctx.of_rows = activation, of_rows
        ctx.save_for_backward(rows, mean, inverse_std, scale, shift)
        return updated

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, mean, inverse_std, scale, shift = ctx.saved_tensors
        grad_rows = empty_like_with_room(rows)
        if ctx.activation == "none":
            grad_rows.copy_(grad)
        else:
            torch.addcmul(shift, rows, scale, out=grad_rows)
        if ctx.activation == "relu":
            torch.ops.aten.threshold_backward.grad_input(grad, grad_rows, 0, grad_input=grad_rows)
        elif ctx.activation == "elu":
            _slope_of_elu_(grad_rows).mul_(grad)
        if ctx.of_rows:
            _, grad_weight, grad_bias = torch.ops.aten.native_batch_norm_backward(
                grad_rows, rows, scale, None, None, mean, inverse_std, True, 0.0, [False, True, True]
            )
            # What the statistics passed on: every row has a part in the mean and the variance.
            slope = scale * grad_weight * inverse_std / -len(rows)
            offset = scale * grad_bias / -len(rows) - mean * slope
            torch.addcmul(offset, grad_rows, scale, out=grad_rows).addcmul_(rows, slope)
        else:
            grad_bias = grad_rows.sum(0)
            grad_weight = (grad_rows * (rows - mean)).sum(0) * inverse_std
            grad_rows.mul_(scale)
        return grad if ctx.needs_input_grad[0] else None, grad_rows, grad_weight, grad_bias, None, None
