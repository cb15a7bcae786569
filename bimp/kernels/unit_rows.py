"""Rows of length 1, then a ReLU, with a backward pass in few operators (the end of equation S3)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bimp.kernels.room import empty_like_with_room
from bimp.once import differentiable_once

SHORTEST = 1e-12
"""Rows are divided by no less, as ``torch.nn.functional.normalize`` does."""


def positive_unit_rows(rows: Tensor) -> Tensor:
    """``relu(normalize(rows))``, each row ``[width]`` of ``[rows, width]`` divided by its L2 norm."""
    positive: Tensor = _PositiveUnitRows.apply(rows)  # type: ignore[no-untyped-call]
    return positive


class _PositiveUnitRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        unit = rows / lengths.clamp(min=SHORTEST)
        ctx.save_for_backward(unit, lengths)
        positive: Tensor = unit.relu()
        return positive

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        unit, lengths = ctx.saved_tensors
        grad_unit = empty_like_with_room(unit)
        torch.ops.aten.threshold_backward.grad_input(grad, unit, 0, grad_input=grad_unit)
        # What lies along the row changes its length only, unless that is too short to be divided by.
        along = (grad_unit * unit).sum(1, keepdim=True).mul_(lengths > SHORTEST)
        result: Tensor = grad_unit.addcmul_(unit, along, value=-1).div_(lengths.clamp(min=SHORTEST))
        return result
