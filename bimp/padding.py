"""Batches that are padded to a size which is known beforehand: what of them is real.

On an accelerator a training step is replayed at one size (:mod:`bimp.device`), so a batch is filled up: behind its
nodes stand padding nodes, behind its edges padding edges, which join padding nodes only. Both belong to one more graph,
the last. They enter no statistic, loss or metric: whatever is taken over nodes, edges or graphs asks here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor, nn

UNLABELLED = -100
"""Label of a padding node or edge, which losses and metrics leave out."""


@dataclass(frozen=True, eq=False)
class Noted:
    """Statistics of real rows, by which a normalisation is to move its running ones (:func:`take_note`).

    Attributes:
        norm: the normalisation.
        mean, variance: ``[width]``; of the variance the biased one, the norm's ``eps`` added.
        shift: ``[width]``, to be added to the mean; None: nothing.
    """

    norm: nn.BatchNorm1d
    mean: Tensor
    variance: Tensor
    shift: Tensor | None


@dataclass(frozen=True, eq=False)
class RowShares:
    """What follows from which rows are real, in one type; of several batches ``[batches, ...]``.

    Attributes:
        ones_and_shares: ``[..., 2, rows]``: 1 and one over the number of real rows, both 0 for a padding row.
        unbiased: ``[..., 1]``, what a variance over the real rows is multiplied by to be unbiased; of one row: 1.
    """

    ones_and_shares: Tensor
    unbiased: Tensor

    @classmethod
    def of(cls, real: Tensor, dtype: torch.dtype) -> RowShares:
        """Of ``[..., rows]`` bool."""
        ones, count = real.to(dtype), real.sum(-1, keepdim=True)
        return cls(
            ones_and_shares=torch.stack([ones, ones / count.clamp(min=1)], dim=-2),
            unbiased=(count / (count - 1).clamp(min=1)).to(dtype),
        )

    @property
    def dtype(self) -> torch.dtype:
        """In which they are."""
        return self.unbiased.dtype


@dataclass(frozen=True, eq=False)
class RealRows:
    """Which rows, of nodes or of edges, are real; what follows from it is worked out once a batch.

    Attributes:
        mask: ``[rows]`` bool.
        known: what follows, found beforehand, of this batch alone; None: nothing is.
        noted: statistics of real rows that the normalisations have not taken note of yet.
    """

    mask: Tensor
    known: RowShares | None = None
    noted: list[Noted] = field(default_factory=list, init=False, repr=False)
    _shares: dict[torch.dtype, RowShares] = field(default_factory=dict, init=False, repr=False)
    _constants: dict[tuple[float, torch.dtype], Tensor] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.known is not None:
            self._shares[self.known.dtype] = self.known

    @cached_property
    def count(self) -> Tensor:
        """How many there are, a scalar on the device."""
        return self.mask.sum()

    def unbiased(self, dtype: torch.dtype) -> Tensor:
        """What a variance over the real rows is multiplied by to be unbiased, a scalar."""
        return self._shares_in(dtype).unbiased.view(())

    def column(self, dtype: torch.dtype) -> Tensor:
        """``[rows, 1]``: 1, and 0 for a padding row."""
        return self._ones_and_shares(dtype)[0].unsqueeze(1)

    def share(self, dtype: torch.dtype) -> Tensor:
        """``[rows, 1]``: one over the number of real rows, and 0 for a padding row; its product sums to a mean."""
        return self._ones_and_shares(dtype)[1].unsqueeze(1)

    def means(self, rows: Tensor) -> Tensor:
        """``[1, width]``: of the real rows of ``[rows, width]``; those of the padding must be finite."""
        return self._ones_and_shares(rows.dtype)[1:] @ rows

    def sums_and_means(self, rows: Tensor) -> Tensor:
        """``[2, width]``: of the real rows of ``[rows, width]``; those of the padding must be finite."""
        return self._ones_and_shares(rows.dtype) @ rows

    def constant(self, value: float, dtype: torch.dtype) -> Tensor:
        """``value`` as a scalar on the device, made once a batch."""
        if (value, dtype) not in self._constants:
            self._constants[value, dtype] = self.mask.new_full((), value, dtype=dtype)
        return self._constants[value, dtype]

    def only(self, rows: Tensor) -> Tensor:
        """``rows`` with 0 in place of those of the padding."""
        return torch.where(self.mask.view(-1, *[1] * (rows.dim() - 1)), rows, 0)

    def _ones_and_shares(self, dtype: torch.dtype) -> Tensor:
        """``[2, rows]``, as :class:`RowShares` has them."""
        return self._shares_in(dtype).ones_and_shares.view(2, -1)

    def _shares_in(self, dtype: torch.dtype) -> RowShares:
        if dtype not in self._shares:
            self._shares[dtype] = RowShares.of(self.mask, dtype)
        return self._shares[dtype]


@dataclass(frozen=True, eq=False)
class Padding:
    """What of a padded batch is real: these nodes, these edges, and all graphs but the last.

    Attributes:
        nodes, edges: which are.
        members: as :func:`bimp.padded.aggregation.members` makes them.
    """

    nodes: RealRows
    edges: RealRows
    members: dict[torch.dtype, Tensor] = field(default_factory=dict, init=False, repr=False)


def labelled(y: Tensor) -> Tensor:
    """Which items carry a label, of integers that are classes: bool, as ``y``."""
    return y >= 0


def take_note(padding: Padding) -> None:
    """Move the running statistics of all normalisations by what they saw of the batch, all of them at once."""
    for real in (padding.nodes, padding.edges):
        _take_note(real)
        real.noted.clear()


@torch.no_grad()
def _take_note(real: RealRows) -> None:
    noted = real.noted
    if not noted:
        return
    norms = [each.norm for each in noted]
    shifted = [(each.mean, each.shift) for each in noted if each.shift is not None]
    if shifted:
        torch._foreach_add_(*zip(*shifted, strict=True))
    variances = torch._foreach_sub([each.variance for each in noted], [norm.eps for norm in norms])
    torch._foreach_mul_(variances, real.unbiased(variances[0].dtype))
    running_means = [norm.running_mean for norm in norms if norm.running_mean is not None]
    running_variances = [norm.running_var for norm in norms if norm.running_var is not None]
    momenta = [norm.momentum for norm in norms if norm.momentum is not None]
    torch._foreach_lerp_(running_means, [each.mean for each in noted], momenta)
    torch._foreach_lerp_(running_variances, variances, momenta)
    torch._foreach_add_([norm.num_batches_tracked for norm in norms if norm.num_batches_tracked is not None], 1)
