"""Batch normalisation by the real rows of each seed."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from bimp.kernels.choice import kernels_serve
from bimp.padding import RealRows
from bimp.row_norm import RowNorm, normalise_by_real
from bimp.stack.parts import Parts


class StackedRowNorm(RowNorm):
    """:class:`~bimp.row_norm.RowNorm` with parameters and running statistics ``[seeds, width]``.

    A seed with no row or one row is normalised by its running statistics, and they stay as they are, as there.

    Attributes:
        parts: how the rows of the batch lie; the network says so before it is called.
    """

    fits_kernels: ClassVar[bool] = False
    parts: Parts

    def forward(self, rows: Tensor, real: RealRows | None = None) -> Tensor:
        """Normalise ``[seeds * rows, width]``; what stands on padding afterwards means nothing, but is small."""
        if torch.amp.is_autocast_available(rows.device.type) and torch.is_autocast_enabled(rows.device.type):
            with torch.autocast(rows.device.type, enabled=False):  # which would take means in half precision
                return self.forward(rows.to(self.weight.dtype))
        return self._normalised(rows.view(self.parts.seeds, self.parts.length, rows.shape[1])).view(rows.shape)

    def without_rest(self, shift: Tensor, num_rows: int) -> Tensor:
        """As there, of each seed, ``[seeds, ...]``; how many rows there are is known already."""
        if not self.training:
            return shift
        if self.parts.all_have_a_variance:
            return shift.detach()
        has_mean = (self.parts.counted > 1).view(-1, *[1] * (shift.dim() - 1))
        return torch.where(has_mean, shift.detach(), shift)

    def _normalised(self, by_seed: Tensor) -> Tensor:
        normalised: Tensor
        if not (self.training and self.parts.all_have_a_variance):
            return self._by_running_statistics(by_seed)
        # In main memory the operator that goes over a seed's rows once is faster; elsewhere, fewer calls are.
        if self.parts.counts is not None and kernels_serve(by_seed, self.weight):
            normalised = _OneByOne.apply(by_seed, self.weight, self.bias, self)  # type: ignore[no-untyped-call]
            return normalised
        shares = self.parts.shares(by_seed.dtype)
        normalised, mean, variance = normalise_by_real(
            by_seed, self.weight.unsqueeze(1), self.bias.unsqueeze(1), self.parts.real, shares, self.eps
        )
        self._note(mean.squeeze(1), variance.squeeze(1))
        return normalised

    def _note(self, mean: Tensor, variance: Tensor) -> None:
        """Move the running statistics towards those of the rows."""
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        moved: Tensor | int = 1
        weight: Tensor | float = self.momentum
        if not self.parts.all_have_a_variance:
            moved = self.parts.counted > 1
            weight = (self.momentum * moved.unsqueeze(1)).to(mean.dtype)
        self.running_mean.lerp_(mean, weight)
        self.running_var.lerp_(variance * self.parts.unbiased, weight)
        self.num_batches_tracked.add_(moved)

    def _by_running_statistics(self, by_seed: Tensor) -> Tensor:
        """In evaluation; and in training where a seed has no variance, while the others have their own."""
        assert self.running_mean is not None
        assert self.running_var is not None
        mean, variance = self.running_mean.unsqueeze(1), self.running_var.unsqueeze(1)
        if self.training:
            has_variance = (self.parts.counted > 1).view(-1, 1, 1)
            shares = self.parts.shares(by_seed.dtype).unsqueeze(1)
            own_mean = torch.bmm(shares, by_seed)
            own_variance = torch.bmm(shares, (by_seed - own_mean).square())
            mean = torch.where(has_variance, own_mean, mean)
            variance = torch.where(has_variance, own_variance, variance)
            self._note(own_mean.squeeze(1).detach(), own_variance.squeeze(1).detach())
        scale = (variance + self.eps).rsqrt() * self.weight.unsqueeze(1)
        normalised = torch.addcmul(self.bias.unsqueeze(1) - mean * scale, by_seed, scale)
        return torch.where(self.parts.real.unsqueeze(2), normalised, 0) if self.training else normalised


class _OneByOne(torch.autograd.Function):
    """Each seed, of two rows or more, by PyTorch's own batch normalisation of its real rows."""

    @staticmethod
    def forward(ctx: Any, by_seed: Tensor, weight: Tensor, bias: Tensor, norm: StackedRowNorm) -> Tensor:
        assert norm.running_mean is not None
        assert norm.running_var is not None
        assert norm.num_batches_tracked is not None
        assert norm.parts.counts is not None
        normalised = torch.empty_like(by_seed)
        means, inverse_stds = torch.empty_like(weight), torch.empty_like(weight)
        for seed, count in enumerate(norm.parts.counts):
            torch.ops.aten.native_batch_norm.out(
                by_seed[seed, :count],
                weight[seed],
                bias[seed],
                norm.running_mean[seed],
                norm.running_var[seed],
                True,
                norm.momentum,
                norm.eps,
                out=normalised[seed, :count],
                save_mean=means[seed],
                save_invstd=inverse_stds[seed],
            )
            normalised[seed, count:] = 0
        norm.num_batches_tracked.add_(1)
        ctx.counts, ctx.eps = norm.parts.counts, norm.eps
        ctx.save_for_backward(by_seed, weight, means, inverse_stds)
        return normalised

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        by_seed, weight, means, inverse_stds = ctx.saved_tensors
        grad = grad.contiguous()
        grad_rows = torch.empty_like(by_seed)
        grad_weight, grad_bias = torch.empty_like(weight), torch.empty_like(weight)
        for seed, count in enumerate(ctx.counts):
            grad_rows[seed, :count], grad_weight[seed], grad_bias[seed] = torch.ops.aten.native_batch_norm_backward(
                grad[seed, :count],
                by_seed[seed, :count],
                weight[seed],
                None,
                None,
                means[seed],
                inverse_stds[seed],
                True,
                ctx.eps,
                [True, True, True],
            )
            grad_rows[seed, count:] = 0
        return grad_rows, grad_weight, grad_bias, None
