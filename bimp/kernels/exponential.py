"""The exponential of numbers in place."""

from __future__ import annotations

import math

from torch import Tensor

LOG2_E = 1 / math.log(2)


def exp_(numbers: Tensor) -> Tensor:
    """``numbers.exp_()`` by powers of 2, which PyTorch takes several times faster on a CPU (docs/performance.md)."""
    return numbers.mul_(LOG2_E).exp2_()
