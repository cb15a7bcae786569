"""Linear maps by the faster of the libraries that PyTorch brings along.

On AMD cores oneDNN, which PyTorch asks in float32 only for compiled models, takes products in half to eleven tenths of
the time of MKL, which it calls otherwise, by core and width; on Intel cores MKL is the faster one (docs/performance.md,
"Targets on different processors"). Gradients of weights, for which oneDNN would have both factors turned first, are
MKL's on both.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bimp.kernels.choice import kernels_serve
from bimp.kernels.processor import maker_of_processor
from bimp.kernels.room import empty_with_room, first_rows, with_room
from bimp.once import differentiable_once

FEWEST_ROWS = 256
FEWEST_COLUMNS = 16
"""Below, a call costs more than the product."""


class Linear(nn.Linear):
    """``nn.Linear`` with the same parameters and results, on the faster way where there is one."""

    def forward(self, input: Tensor) -> Tensor:
        """Map rows ``[rows, in_features]`` to ``[rows, out_features]``."""
        return self.of(input, self.bias)

    def of(self, rows: Tensor, bias: Tensor | None) -> Tensor:
        """Map ``rows`` with ``bias`` in place of the map's own."""
        return linear(rows, self.weight, bias)

    def of_both(self, first: Tensor, second: Tensor) -> Tensor:
        """Map ``first`` and ``second`` side by side, which have ``in_features`` columns together."""
        if _is_large(first, self.in_features) and kernels_serve(first, second, self.weight, self.bias):
            mapped: Tensor = _LinearOfBoth.apply(first, second, self.weight, self.bias)  # type: ignore[no-untyped-call]
            return mapped
        return linear(torch.cat([first, second], dim=1), self.weight, self.bias)


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """``rows @ weight.T + bias``, differentiable: ``[rows, in]`` to ``[rows, out]``.

    Autocast takes the product in half precision; what comes of it is in the weight's all the same.
    """
    if rows.dim() == 2 and _is_large(rows, rows.shape[1]) and kernels_serve(rows, weight, bias):
        mapped: Tensor = _Linear.apply(rows, weight, bias)  # type: ignore[no-untyped-call]
        return mapped
    return F.linear(rows, weight, bias).to(weight.dtype)


def _is_large(rows: Tensor, columns: int) -> bool:
    return rows.shape[0] >= FEWEST_ROWS and columns >= FEWEST_COLUMNS


def product(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``rows @ weight.T + bias`` of two-dimensional tensors in main memory, without a gradient."""
    if _TAKES_ONEDNN and rows.dtype == torch.float32 and rows.numel() > 0:
        return first_rows(by_onednn(with_room(rows), weight, bias), len(rows))
    # In one call PyTorch would lay the bias out in every row first, which takes longer than to add it.
    mapped = rows @ weight.t()
    return mapped if bias is None else mapped.add_(bias)


def add_product(added: Tensor, rows: Tensor, weight: Tensor, out: Tensor) -> None:
    """``added + rows @ weight.T``, written into ``out``, which may be ``added``; without a gradient."""
    if _TAKES_ONEDNN and weight.shape[1] >= FEWEST_COLUMNS:
        torch.add(added, product(rows, weight), out=out)
    else:
        torch.addmm(added, rows, weight.t(), out=out)


def gradient_of_map(grad: Tensor, rows: Tensor) -> Tensor:
    """``grad.T @ rows``, ``[out, in]``: of the weight that mapped ``rows``, given that of what it made of them."""
    return grad.t() @ rows


def by_onednn(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``rows @ weight.T + bias`` as oneDNN takes it, for each size by code of its own."""
    result: Tensor = torch.ops.mkldnn._linear_pointwise(_dense(rows), _dense(weight), bias, "none", [], "")
    return result


def _dense(matrix: Tensor) -> Tensor:
    """The matrix without gaps between its rows or columns, over which oneDNN falls back to a hundred times slower."""
    return matrix if matrix.is_contiguous() or matrix.t().is_contiguous() else matrix.contiguous()


def offers_onednn() -> bool:
    """Whether this PyTorch can be asked for a product by oneDNN."""
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return bool(available) and hasattr(torch.ops.mkldnn, "_linear_pointwise")


_TAKES_ONEDNN = offers_onednn() and maker_of_processor() == "AuthenticAMD"


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(rows, weight)
        return product(rows, weight, bias)

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        wants_rows, wants_weight, wants_bias = ctx.needs_input_grad
        grad = grad.contiguous()
        return (
            product(grad, weight.t()) if wants_rows else None,
            gradient_of_map(grad, rows) if wants_weight else None,
            grad.sum(0) if wants_bias else None,
        )


class _LinearOfBoth(torch.autograd.Function):
    """The rows are laid side by side where the product wants them, once."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        joined = empty_with_room(len(first), weight.shape[1], like=first)
        torch.cat([first, second], dim=1, out=joined)
        ctx.save_for_backward(joined, weight)
        ctx.widths = (first.shape[1], second.shape[1])
        return product(joined, weight, bias)

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        joined, weight = ctx.saved_tensors
        wants_first, wants_second, wants_weight, wants_bias = ctx.needs_input_grad
        grad = grad.contiguous()
        first, second = None, None
        if wants_first or wants_second:
            first, second = torch.split(product(grad, weight.t()), ctx.widths, dim=1)
        return (
            first if wants_first else None,
            second if wants_second else None,
            gradient_of_map(grad, joined) if wants_weight else None,
            grad.sum(0) if wants_bias else None,
        )
