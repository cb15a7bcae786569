"""Batch normalisation by the real rows of each seed."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from bimp.kernels.choice import kernels_serve
from bimp.once import differentiable_once
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
        if not self.training:
            return self._by_running_statistics(by_seed)
        # In main memory the operator that goes over a seed's rows once is faster; elsewhere, fewer calls are.
        is_in_main_memory = self.parts.counts is not None and kernels_serve(by_seed, self.weight)
        if is_in_main_memory or not self.parts.all_have_a_variance:
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
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance * self.parts.unbiased, self.momentum)
        self.num_batches_tracked.add_(1)

    def _by_running_statistics(self, by_seed: Tensor) -> Tensor:
        assert self.running_mean is not None
        assert self.running_var is not None
        mean, variance = self.running_mean.unsqueeze(1), self.running_var.unsqueeze(1)
        scale = (variance + self.eps).rsqrt() * self.weight.unsqueeze(1)
        return torch.addcmul(self.bias.unsqueeze(1) - mean * scale, by_seed, scale)


class _OneByOne(torch.autograd.Function):
    """Each seed by PyTorch's own batch normalisation of its real rows, of one row by its running statistics."""

    @staticmethod
    def forward(ctx: Any, by_seed: Tensor, weight: Tensor, bias: Tensor, norm: StackedRowNorm) -> Tensor:
        assert norm.running_mean is not None
        assert norm.running_var is not None
        assert norm.num_batches_tracked is not None
        assert norm.parts.counts is not None
        normalised = torch.empty_like(by_seed)
        means, inverse_stds = torch.empty_like(weight), torch.empty_like(weight)
        for seed, count in enumerate(norm.parts.counts):
            normalised[seed, count:] = 0
            if count == 0:
                continue
            has_variance = count > 1
            torch.ops.aten.native_batch_norm.out(
                by_seed[seed, :count],
                weight[seed],
                bias[seed],
                norm.running_mean[seed],
                norm.running_var[seed],
                has_variance,
                norm.momentum,
                norm.eps,
                out=normalised[seed, :count],
                save_mean=means[seed] if has_variance else means.new_empty(0),
                save_invstd=inverse_stds[seed] if has_variance else means.new_empty(0),
            )
        norm.num_batches_tracked.add_(norm.parts.counted > 1)
        ctx.counts, ctx.eps = norm.parts.counts, norm.eps
        ctx.save_for_backward(by_seed, weight, means, inverse_stds, norm.running_mean, norm.running_var)
        return normalised

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        by_seed, weight, means, inverse_stds, running_mean, running_var = ctx.saved_tensors
        grad = grad.contiguous()
        grad_rows = torch.empty_like(by_seed)
        grad_weight, grad_bias = torch.zeros_like(weight), torch.zeros_like(weight)
        for seed, count in enumerate(ctx.counts):
            grad_rows[seed, count:] = 0
            if count == 0:
                continue
            grad_rows[seed, :count], grad_weight[seed], grad_bias[seed] = torch.ops.aten.native_batch_norm_backward(
                grad[seed, :count],
                by_seed[seed, :count],
                weight[seed],
                running_mean[seed],
                running_var[seed],
                means[seed],
                inverse_stds[seed],
                count > 1,
                ctx.eps,
                [True, True, True],
            )
        return grad_rows, grad_weight, grad_bias, None
