"""Batch normalisation of node rows or edge rows."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class RowNorm(nn.BatchNorm1d):
    """Batch normalisation that also takes a batch of no row or of one row.

    Such a batch has no variance to normalise by: a training step uses the running statistics for it and leaves them
    as they are. It happens where a batch holds a single node or edge.
    """

    def forward(self, rows: Tensor) -> Tensor:
        """Normalise ``rows``, ``[rows, width]``."""
        if self.training and rows.shape[0] < 2:
            return F.batch_norm(rows, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(rows)
