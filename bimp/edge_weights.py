"""Weights of edges that follow from the graphs alone, not from what a network has learned."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class EdgeWeights:
    """What :class:`bimp.adjacency.Adjacency` would work out in one type, found beforehand.

    All tensors may have a dimension more in front, ``[batches, ...]``.

    Attributes:
        shares, normalised, row_sums, inverse_roots: as there.
        shares_by_source, normalised_by_source: the weights of the edges in the order of ``by_source``.
    """

    shares: Tensor
    shares_by_source: Tensor
    normalised: Tensor
    normalised_by_source: Tensor
    row_sums: Tensor
    inverse_roots: Tensor

    @property
    def dtype(self) -> torch.dtype:
        """In which they are."""
        return self.shares.dtype
