"""Batch normalisation of node rows or edge rows."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class RowNorm(nn.BatchNorm1d):
    """Batch normalisation that also takes a batch of no row or of one row.

    Such a batch has no variance to normalise by: a training step uses the running statistics for it and leaves them
    as they are. It happens where a batch holds a single node or edge.

    Attributes:
        fits_kernels: whether all rows are normalised alike, as the kernels of :mod:`bimp.kernels` do.
    """

    fits_kernels: ClassVar[bool] = True

    def forward(self, rows: Tensor) -> Tensor:
        """Normalise ``rows``, ``[rows, width]``."""
        if self.training and rows.shape[0] < 2:
            return F.batch_norm(rows, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(rows)

    def statistics(self, rows: Tensor) -> tuple[Tensor, Tensor, bool]:
        """What :meth:`forward` would normalise ``rows`` by, which a training step also takes note of.

        Returns:
            Means, inverse standard deviations, and whether both are those of ``rows``.
        """
        assert self.running_mean is not None
        assert self.running_var is not None
        of_rows = self.training and rows.shape[0] > 1
        mean, variance = self.running_mean, self.running_var
        if of_rows:
            assert self.num_batches_tracked is not None
            assert self.momentum is not None
            self.num_batches_tracked.add_(1)
            mean, variance = torch.batch_norm_update_stats(rows, mean, variance, self.momentum)
        else:
            mean, variance = mean.clone(), variance.clone()
        return mean, (variance + self.eps).rsqrt(), of_rows
