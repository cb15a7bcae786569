"""How many trials share a GPU: decided from what a probe of each cell measured (``resources.gpus_per_trial: auto``)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

FREE_SHARE = 0.1
"""Of a GPU's memory, that is left free: no two batches are alike."""

CONTEXT_BYTES = 600 * 2**20
"""What a process takes of a GPU's memory beside PyTorch's tensors: CUDA's context and the code of its kernels."""

BUSY_ENOUGH = 1.2
"""Trials are packed until together they would keep the GPU busy so much: what NVIDIA calls its utilisation counts every
moment in which anything runs, however small a part of the GPU that takes."""

COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Of trials on a GPU, few: Ray's workers start anew where a trial asks for another share."""


@dataclass(frozen=True, kw_only=True)
class Probed:
    """What one trial of a cell took of a GPU.

    Attributes:
        memory_bytes: at most; None: more than the GPU has.
        utilisation: share of the time in which the GPU did anything; None where nobody could tell.
        gpu: its name, and gpu_memory: all that it has, in bytes.
    """

    memory_bytes: int | None
    utilisation: float | None
    gpu: str
    gpu_memory: int


@dataclass(frozen=True, kw_only=True)
class Packing:
    """How many trials share a GPU, and why no more do."""

    trials: int
    reason: str

    @property
    def share(self) -> float:
        """The part of a GPU that a trial asks for: rounded down to what Ray counts in, so that all of them fit."""
        return math.floor(10_000 / self.trials) / 10_000


def packing(cells: Mapping[str, Probed], most: int) -> Packing:
    """One share for all cells of a study, that of the cell that needs the most.

    Args:
        cells: what was measured, by cell; at least one.
        most: trials that may share a GPU.
    """
    smallest = min(probed.gpu_memory for probed in cells.values())
    limits = [(most, f"resources.max_trials_per_gpu: {most}")]
    for cell, probed in cells.items():
        limits.append(_by_memory(cell, probed, smallest))
        if probed.utilisation:
            busy = f"{cell} keeps it busy {100 * probed.utilisation:.0f}% of the time"
            limits.append((max(1, int(min(most, BUSY_ENOUGH / probed.utilisation))), busy))
    limit, reason = min(limits, key=lambda limit: limit[0])
    return Packing(trials=max(count for count in COUNTS if count <= limit), reason=reason)


def _by_memory(cell: str, probed: Probed, gpu_memory: int) -> tuple[int, str]:
    if probed.memory_bytes is None:
        return 1, f"{cell} fills it"
    needed = probed.memory_bytes + CONTEXT_BYTES
    fit = int((1 - FREE_SHARE) * gpu_memory / needed)
    return max(1, fit), f"{cell} takes {needed / 2**30:.1f} GiB of {gpu_memory / 2**30:.0f}"
