"""Batch normalisation by the real rows, activation and residual: the end of a layer, and the middle of GatedGCN.

Statistics are products of a row of shares with the rows: one launch where a masked sum takes three.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bimp.kernels.row_update import Activation
from bimp.once import differentiable_once
from bimp.padding import Noted, RealRows
from bimp.row_norm import RowNorm

aten = torch.ops.aten


@dataclass(frozen=True)
class Normalised:
    """Rows by their normalisation, and what its backward pass needs.

    Attributes:
        rows: ``(rows - mean) / std``, ``[rows, width]``, 0 on padding.
        inverse_std: ``[1, width]``.
        activated: the activation of ``rows * weight + bias``, ``[rows, width]``.
    """

    rows: Tensor
    inverse_std: Tensor
    activated: Tensor


def normalise_(
    rows: Tensor, real: RealRows, norm: RowNorm, activation: Activation, *, is_masked: bool, shift: Tensor | None = None
) -> Normalised:
    """Normalise and activate ``rows``, ``[rows, width]``, which are overwritten if they are ``is_masked``.

    Args:
        rows: of which those of the padding are finite.
        real: which of them are.
        norm: their normalisation, whose statistics are noted.
        activation: entry by entry.
        is_masked: whether rows of the padding are 0.
        shift: ``[width]``, what every row lacks, which shows in the mean alone.
    """
    column = real.column(rows.dtype)
    mean = real.means(rows)
    centred = rows.addmm_(column, mean, alpha=-1) if is_masked else (rows - mean).mul_(column)
    # The shares sum to 1, so that the epsilon comes out of the product as it went in.
    variance = real.means(torch.addcmul(real.constant(norm.eps, rows.dtype), centred, centred))
    real.noted.append(Noted(norm, mean.view(-1), variance.view(-1), shift))
    inverse_std = variance.rsqrt()
    normalised = centred.mul_(inverse_std)
    activated = torch.addcmul(norm.bias, normalised, norm.weight)
    if activation == "relu":
        activated.relu_()
    elif activation == "elu":
        aten.elu_(activated)
    return Normalised(normalised, inverse_std, activated)


def backward_through(
    normalised: Normalised,
    grad: Tensor,
    real: RealRows,
    weight: Tensor,
    activation: Activation,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """From the gradient of the activated rows, 0 on padding, to those of the rows, the weight and the bias.

    The first of them is written to ``out`` where that is given.
    """
    width = grad.shape[1]
    both = grad.new_empty(grad.shape[0], 2 * width)
    through_activation, times_normalised = both[:, :width], both[:, width:]
    if activation == "relu":
        aten.threshold_backward.grad_input(grad, normalised.activated, 0, grad_input=through_activation)
    elif activation == "elu":
        aten.elu_backward.grad_input(grad, 1, 1, 1, True, normalised.activated, grad_input=through_activation)
    else:
        through_activation.copy_(grad)
    torch.mul(through_activation, normalised.rows, out=times_normalised)
    sums, means = real.sums_and_means(both).unbind()
    rows = torch.addcmul(through_activation, normalised.rows, means[width:], value=-1, out=out)
    rows.addmm_(real.column(grad.dtype), means[:width].unsqueeze(0), alpha=-1)
    rows.mul_(normalised.inverse_std * weight)
    return rows, sums[width:], sums[:width]


def update_real_rows(
    before: Tensor | None, rows: Tensor, norm: RowNorm, activation: Activation, real: RealRows
) -> Tensor:
    """``before + activation(norm(rows))``, all ``[rows, width]``; None: nothing is added.

    Rows of the padding are those ``before``, or 0.
    """
    updated: Tensor = _UpdateRealRows.apply(before, rows, norm.weight, norm.bias, norm, activation, real)  # type: ignore[no-untyped-call]
    return updated


class _UpdateRealRows(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        before: Tensor | None,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor,
        norm: RowNorm,
        activation: Activation,
        real: RealRows,
    ) -> Tensor:
        normalised = normalise_(rows, real, norm, activation, is_masked=False)
        ctx.activation, ctx.real = activation, real
        ctx.save_for_backward(normalised.rows, normalised.inverse_std, normalised.activated, weight)
        return add_real(before, normalised.activated, real)

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        *kept, weight = ctx.saved_tensors
        rows, grad_weight, grad_bias = backward_through(Normalised(*kept), grad, ctx.real, weight, ctx.activation)
        return grad if ctx.needs_input_grad[0] else None, rows, grad_weight, grad_bias, None, None, None


def add_real(before: Tensor | None, after: Tensor, real: RealRows) -> Tensor:
    """``before + after`` for real rows, ``before`` for padding; None: 0."""
    column = real.column(after.dtype)
    return after * column if before is None else torch.addcmul(before, after, column)
