"""Batch normalisation by the real rows of each seed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bimp.layers.row_norm import RowNorm
from bimp.stack.parts import Parts


class StackedRowNorm(RowNorm):
    """:class:`~bimp.layers.row_norm.RowNorm` with parameters and running statistics ``[seeds, width]``.

    A seed with no row or one row is normalised by its running statistics, and they stay as they are, as there.

    Attributes:
        parts: how the rows of the batch lie; the network says so before it is called.
    """

    parts: Parts

    def forward(self, rows: Tensor) -> Tensor:
        """Normalise ``[seeds * rows, width]``; padding becomes the bias."""
        by_seed = rows.view(self.parts.seeds, self.parts.length, -1)
        normalised: Tensor = _Normalise.apply(by_seed, self.weight, self.bias, self)  # type: ignore[no-untyped-call]
        return normalised.view(rows.shape)

    def moments(self, by_seed: Tensor) -> tuple[Tensor, Tensor]:
        """Means and variances to normalise by, ``[seeds, 1, width]`` each; a training step notes them."""
        assert self.running_mean is not None
        assert self.running_var is not None
        running_mean, running_var = self.running_mean.unsqueeze(1), self.running_var.unsqueeze(1)
        if not self.training:
            return running_mean, running_var
        shares = self.parts.shares(by_seed.dtype).unsqueeze(1)
        mean = torch.bmm(shares, by_seed)
        variance = torch.bmm(shares, (by_seed - mean).square())
        if min(self.parts.counts) > 1:
            self._note(mean, variance)
            return mean, variance
        of_rows = self.of_rows
        kept_mean, kept_variance = torch.where(of_rows, mean, running_mean), torch.where(of_rows, variance, running_var)
        self._note(mean, variance)
        return kept_mean, kept_variance

    @property
    def of_rows(self) -> Tensor:
        """Which seeds have rows enough to normalise by, ``[seeds, 1, 1]`` bool."""
        return (self.parts.counted > 1).view(-1, 1, 1)

    def _note(self, mean: Tensor, variance: Tensor) -> None:
        """Move the running statistics towards those of the rows."""
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        counts = self.parts.counted.to(mean.dtype)
        has_moments = counts > 1
        weight = (self.momentum * has_moments).unsqueeze(1).to(mean.dtype)
        unbiased = variance.squeeze(1) * (counts / (counts - 1).clamp(min=1)).unsqueeze(1)
        self.running_mean.lerp_(mean.squeeze(1), weight)
        self.running_var.lerp_(unbiased, weight)
        self.num_batches_tracked.add_(has_moments)


class _Normalise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, by_seed: Tensor, weight: Tensor, bias: Tensor, norm: StackedRowNorm) -> Tensor:
        mean, variance = norm.moments(by_seed)
        real = norm.parts.real.unsqueeze(2)
        inverse_std = (variance + norm.eps).rsqrt()
        # Without this, what stands on padding could grow from layer to layer until it is no number.
        centred = torch.where(real, by_seed - mean, 0)
        ctx.norm, ctx.of_batch = norm, norm.training
        ctx.parts = norm.parts
        ctx.save_for_backward(centred, inverse_std, weight)
        return torch.addcmul(bias.unsqueeze(1), centred, inverse_std * weight.unsqueeze(1))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        centred, inverse_std, weight = ctx.saved_tensors
        parts: Parts = ctx.parts
        ones = parts.real.to(grad.dtype).unsqueeze(1)
        grad_bias = torch.bmm(ones, grad)
        grad_weight = torch.bmm(ones, grad * centred) * inverse_std
        scale = inverse_std * weight.unsqueeze(1)
        rows = grad * scale
        if ctx.of_batch:
            counts = parts.counted.view(-1, 1, 1)
            by_rows = (counts > 1) / counts.clamp(min=1)
            slope = -scale * grad_weight * inverse_std * by_rows
            offset = -scale * grad_bias * by_rows
            rows = torch.addcmul(rows, centred, slope).add_(offset)
        return torch.where(parts.real.unsqueeze(2), rows, 0), grad_weight.squeeze(1), grad_bias.squeeze(1), None
