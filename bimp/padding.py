"""Batches that are padded to a size which is known beforehand: what of them is real.

On an accelerator a training step is replayed at one size (:mod:`bimp.device`), so a batch is filled up: behind its
nodes stand padding nodes, behind its edges padding edges, which join padding nodes only. Both belong to one more graph,
the last. They enter no statistic, loss or metric: whatever is taken over nodes, edges or graphs asks here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

UNLABELLED = -100
"""Label of a padding node or edge, which losses and metrics leave out."""


@dataclass(frozen=True, eq=False)
class RealRows:
    """Which rows, of nodes or of edges, are real.

    Attributes:
        mask: ``[rows]`` bool.
    """

    mask: Tensor
    _shares: dict[torch.dtype, Tensor] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def count(self) -> Tensor:
        """How many there are, a scalar on the device."""
        return self.mask.sum()

    @cached_property
    def unbiased(self) -> Tensor:
        """What a variance over the real rows is multiplied by to be unbiased, a scalar."""
        return self.count / (self.count - 1)

    def share(self, dtype: torch.dtype) -> Tensor:
        """``[rows, 1]``: one over the number of real rows, and 0 for a padding row; its product sums to a mean."""
        if dtype not in self._shares:
            self._shares[dtype] = (self.mask.to(dtype) / self.count).unsqueeze(1)
        return self._shares[dtype]

    def only(self, rows: Tensor) -> Tensor:
        """``rows`` with 0 in place of those of the padding."""
        return torch.where(self.mask.view(-1, *[1] * (rows.dim() - 1)), rows, 0)


@dataclass(frozen=True, eq=False)
class Padding:
    """What of a padded batch is real: these nodes, these edges, and all graphs but the last."""

    nodes: RealRows
    edges: RealRows


def labelled(y: Tensor) -> Tensor:
    """Which items carry a label, of integers that are classes: bool, as ``y``."""
    return y >= 0
