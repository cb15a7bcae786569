"""Layers of a user's own that want more memory than there is.

A study names one as its backbone. Each is a graph convolution with a mean over neighbours, and one fault.
"""

from __future__ import annotations

import os
import time
import uuid
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor, nn

APPETITE = "BIMP_FAULTS_BYTES"
"""Environment variable: the bytes that :class:`Large` takes."""

CROWD = "BIMP_FAULTS_CROWD"
"""Environment variable: a folder in which trials of :class:`LargeInACrowd` leave a file each."""

HELD_S = 1.5
"""How long it keeps them in an epoch: longer than Ray's memory monitor takes to look."""


class Modest(nn.Module):
    """Asks for no more than any layer: its neighbours' mean."""

    def __init__(self, row_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(row_dim, row_dim)

    def forward(self, h: Tensor, edge_index: Tensor, beta_hat: Tensor | None = None) -> Tensor:
        source, destination = edge_index
        summed = torch.zeros_like(h).index_add(0, destination, h[source])
        degree = torch.zeros(h.shape[0]).index_add(0, destination, torch.ones(source.shape[0])).clamp(min=1)
        return torch.relu(self.linear(h + summed / degree.unsqueeze(1)))


class Impossible(Modest):
    """Asks for more memory than any machine has: PyTorch's allocator for the host refuses."""

    def forward(self, h: Tensor, edge_index: Tensor, beta_hat: Tensor | None = None) -> Tensor:
        """Never comes to its end."""
        torch.empty(2**46)
        return super().forward(h, edge_index, beta_hat)


class Large(Modest):
    """Fills so many bytes as :data:`APPETITE` says at the first step of each evaluation, and keeps them for a while."""

    def __init__(self, row_dim: int) -> None:
        super().__init__(row_dim)
        self.evaluated = False

    def forward(self, h: Tensor, edge_index: Tensor, beta_hat: Tensor | None = None) -> Tensor:
        """Once each epoch it is large."""
        if not self.training and not self.evaluated:
            filled = torch.ones(int(os.environ.get(APPETITE, "0")), dtype=torch.uint8)
            time.sleep(HELD_S)
            del filled
        self.evaluated = not self.training
        return super().forward(h, edge_index, beta_hat)


class LargeInACrowd(Large):
    """Runs out of memory once, in one of three trials that train side by side."""

    def forward(self, h: Tensor, edge_index: Tensor, beta_hat: Tensor | None = None) -> Tensor:
        """Where :data:`CROWD` is set, the first to see three trials begun is the one."""
        told = os.environ.get(CROWD)
        if told and not self.evaluated and not self.training:
            crowd = Path(told)
            (crowd / f"{uuid.uuid4()}.trial").touch()
            if len(list(crowd.glob("*.trial"))) >= 3:
                with suppress(FileExistsError):
                    (crowd / "told").touch(exist_ok=False)
                    raise MemoryError
        return super().forward(h, edge_index, beta_hat)
