"""How the rows of several seeds lie in one tensor: parts of equal length, each beginning with the rows that count."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from bimp.padding import RowShares


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows ``[seeds * length, ...]``, of which seed s owns ``s * length`` to ``(s + 1) * length``.

    Attributes:
        real: which rows are, ``[seeds, length]`` bool: the first ones of each part. The rest is padding.
        counts: real rows of each seed; None: known to the device alone, and two or more everywhere.
        known: what follows from which rows are real, found beforehand; None: nothing is.
    """

    real: Tensor
    counts: tuple[int, ...] | None = None
    known: RowShares | None = None

    @classmethod
    def of(cls, counts: tuple[int, ...], length: int) -> Parts:
        """So many real rows of each seed in parts of ``length``, in main memory."""
        return cls(torch.arange(length) < torch.tensor(counts).unsqueeze(1), counts)

    @property
    def seeds(self) -> int:
        """Number of parts."""
        return self.real.shape[0]

    @property
    def length(self) -> int:
        """Rows of a part."""
        return self.real.shape[1]

    @property
    def all_have_a_variance(self) -> bool:
        """Whether every seed has two real rows or more."""
        return self.counts is None or min(self.counts) > 1

    @cached_property
    def counted(self) -> Tensor:
        """Real rows of each seed, ``[seeds]`` int64."""
        return self.real.sum(1)

    @cached_property
    def unbiased(self) -> Tensor:
        """What a variance over a seed's real rows is multiplied by to be unbiased, ``[seeds, 1]``; of one row: 1."""
        if self.known is not None:
            return self.known.unbiased
        return (self.counted / (self.counted - 1).clamp(min=1)).unsqueeze(1)

    @cached_property
    def _shares(self) -> dict[torch.dtype, Tensor]:
        return {} if self.known is None else {self.known.dtype: self.known.ones_and_shares[:, 1]}

    def shares(self, dtype: torch.dtype) -> Tensor:
        """Weights whose sum over a part's rows is their mean, ``[seeds, length]``: 0 on padding."""
        if dtype not in self._shares:
            self._shares[dtype] = self.real.to(dtype) / self.counted.clamp(min=1).unsqueeze(1)
        return self._shares[dtype]

    def slice(self, seed: int) -> slice:
        """The real rows of ``seed``; for parts whose ``counts`` are known."""
        assert self.counts is not None
        start = seed * self.length
        return slice(start, start + self.counts[seed])

    def apart(self, rows: Tensor) -> tuple[Tensor, ...]:
        """The real rows of each seed; for parts whose ``counts`` are known."""
        return tuple(rows[self.slice(seed)] for seed in range(self.seeds))

    def mean(self, values: Tensor) -> Tensor:
        """Mean of the real ones of ``values``, ``[seeds * length]``, of each seed, ``[seeds]``; 0 where none is."""
        return (values.view(self.seeds, self.length) * self.shares(values.dtype)).sum(1)

    def sum(self, values: Tensor) -> Tensor:
        """Sum of the real ones of ``values``, ``[seeds * length]``, of each seed, ``[seeds]``."""
        return (values.view(self.seeds, self.length) * self.real).sum(1)
