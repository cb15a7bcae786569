"""How the rows of several seeds lie in one tensor: parts of equal length, each beginning with the rows that count."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows ``[seeds * length, ...]``, of which seed s owns ``s * length`` to ``(s + 1) * length``.

    Attributes:
        counts: real rows of each seed, the first ones of its part; the rest is padding.
        length: rows of a part.
        device: where masks are made.
    """

    counts: tuple[int, ...]
    length: int
    device: torch.device

    @property
    def seeds(self) -> int:
        """Number of parts."""
        return len(self.counts)

    @cached_property
    def counted(self) -> Tensor:
        """Real rows of each seed, ``[seeds]`` int64."""
        return torch.tensor(self.counts, device=self.device)

    @cached_property
    def real(self) -> Tensor:
        """Which rows are real, ``[seeds, length]`` bool."""
        return torch.arange(self.length, device=self.device) < self.counted.unsqueeze(1)

    def shares(self, dtype: torch.dtype) -> Tensor:
        """Weights whose sum over a part's rows is their mean, ``[seeds, length]``: 0 on padding."""
        return self.real.to(dtype) / self.counted.clamp(min=1).unsqueeze(1)

    def slice(self, seed: int) -> slice:
        """The real rows of ``seed``."""
        start = seed * self.length
        return slice(start, start + self.counts[seed])

    def apart(self, rows: Tensor) -> tuple[Tensor, ...]:
        """The real rows of each seed."""
        return tuple(rows[self.slice(seed)] for seed in range(self.seeds))

    def mean(self, values: Tensor) -> Tensor:
        """Mean of the real ones of ``values``, ``[seeds * length]``, of each seed, ``[seeds]``; 0 where none is."""
        return (values.view(self.seeds, self.length) * self.shares(values.dtype)).sum(1)

    def sum(self, values: Tensor) -> Tensor:
        """Sum of the real ones of ``values``, ``[seeds * length]``, of each seed, ``[seeds]``."""
        return (values.view(self.seeds, self.length) * self.real).sum(1)
