"""The residual connection of a layer."""

from __future__ import annotations

from torch import Tensor


def add_residual(before: Tensor, after: Tensor) -> Tensor:
    """The rows before a layer plus those after it where they are equally wide, else the rows after it."""
    return before + after if before.shape[1] == after.shape[1] else after
