"""Batch normalisation of node rows or edge rows."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bimp.once import differentiable_once
from bimp.padding import RealRows


class RowNorm(nn.BatchNorm1d):
    """Batch normalisation that also takes a batch of no row or of one row.

    Such a batch has no variance to normalise by: a training step uses the running statistics for it and leaves them
    as they are. It happens where a batch holds a single node or edge.

    Attributes:
        fits_kernels: whether all rows are normalised alike, as the kernels of :mod:`bimp.kernels` do.
    """

    fits_kernels: ClassVar[bool] = True

    def forward(self, rows: Tensor, real: RealRows | None = None) -> Tensor:
        """Normalise ``rows``, ``[rows, width]``; those that are not ``real`` become the bias in a training step.

        Of real rows there must be two or more.
        """
        if self.training and real is not None:
            return self._of_real_rows(rows, real)
        if self.training and rows.shape[0] < 2:
            return F.batch_norm(rows, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(rows)

    def without_rest(self, shift: Tensor, num_rows: int) -> Tensor:
        """``shift``, which all of the ``num_rows`` rows that come here hold, without a gradient where it has none.

        Rows that are normalised by their own mean lose what they have in common. The gradient of that is 0, of which
        a sum of floats leaves a rest; Adam divides by its size and makes whole steps of it, at random, behind which
        the running mean lags.
        """
        return shift.detach() if self.training and num_rows > 1 else shift

    def _of_real_rows(self, rows: Tensor, real: RealRows) -> Tensor:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        if torch.amp.is_autocast_available(rows.device.type) and torch.is_autocast_enabled(rows.device.type):
            with torch.autocast(rows.device.type, enabled=False):  # which would take means in half precision
                return self._of_real_rows(rows.to(self.weight.dtype), real)
        shares = real.share(self.weight.dtype).view(1, -1)
        normalised, mean, variance = normalise_by_real(
            rows.unsqueeze(0),
            self.weight.view(1, 1, -1),
            self.bias.view(1, 1, -1),
            real.mask.unsqueeze(0),
            shares,
            self.eps,
        )
        mean, variance = mean.view(-1), variance.view(-1)
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance * real.unbiased(variance.dtype), self.momentum)
        self.num_batches_tracked.add_(1)
        return normalised.squeeze(0)

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


def normalise_by_real(
    rows: Tensor, weight: Tensor, bias: Tensor, real: Tensor, shares: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """``weight (rows - mean) / std + bias`` with mean and variance of the real rows; padding becomes the bias.

    Args:
        rows: of one network or of several, ``[networks, rows, width]``.
        weight: of each network, ``[networks, 1, width]``.
        bias: likewise.
        real: which rows are, ``[networks, rows]`` bool, two or more of each network.
        shares: one over the number of real rows, 0 for padding, ``[networks, rows]``.
        eps: added to the variance.

    Returns:
        The rows, ``[networks, rows, width]``, and mean and variance, ``[networks, 1, width]``, without gradients.
    """
    outputs: tuple[Tensor, Tensor, Tensor] = _NormalisedByReal.apply(  # type: ignore[no-untyped-call]
        rows, weight, bias, real.unsqueeze(2), shares, eps
    )
    return outputs


class _NormalisedByReal(torch.autograd.Function):
    """Written out for the number of its operators, which is what a step of small graphs costs on an accelerator."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor, real: Tensor, shares: Tensor, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        mean = torch.bmm(shares.unsqueeze(1), rows)
        # Without this, what stands on padding could grow from layer to layer until it is no number.
        centred = torch.where(real, rows - mean, 0)
        variance = torch.bmm(shares.unsqueeze(1), centred.square())
        inverse_std = (variance + eps).rsqrt()
        normalised = centred * inverse_std
        ctx.save_for_backward(normalised, weight, inverse_std, real, shares)
        ctx.mark_non_differentiable(mean, variance)
        return torch.addcmul(bias, normalised, weight), mean, variance

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        normalised, weight, inverse_std, real, shares = ctx.saved_tensors
        grad = torch.where(real, grad, 0)
        grad_bias = grad.sum(1, keepdim=True)
        grad_weight = (grad * normalised).sum(1, keepdim=True)
        through_statistics = torch.addcmul(grad_bias, normalised, grad_weight)
        centred = torch.addcmul(grad, through_statistics, shares.unsqueeze(2), value=-1)
        return centred * (weight * inverse_std), grad_weight, grad_bias, None, None, None
