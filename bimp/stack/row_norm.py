"""Batch normalisation by the real rows of each seed."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from bimp.kernels.choice import kernels_serve
from bimp.layers.row_norm import RowNorm
from bimp.padding import RealRows
from bimp.stack.parts import Parts


class StackedRowNorm(RowNorm):
    """:class:`~bimp.layers.row_norm.RowNorm` with parameters and running statistics ``[seeds, width]``.

    A seed with no row or one row is normalised by its running statistics, and they stay as they are, as there.

    Attributes:
        parts: how the rows of the batch lie; the network says so before it is called.
    """

    fits_kernels: ClassVar[bool] = False
    parts: Parts

    def forward(self, rows: Tensor, real: RealRows | None = None) -> Tensor:
        """Normalise ``[seeds * rows, width]``; what stands on padding afterwards means nothing, but is small."""
        by_seed = rows.view(self.parts.seeds, self.parts.length, rows.shape[1])
        # In main memory the operator that goes over a seed's rows once is faster; elsewhere, fewer calls are.
        of_rows = self.training and min(self.parts.counts) > 1
        way = _OneByOne if of_rows and kernels_serve(rows, self.weight) else _AllAtOnce
        with torch.autocast(rows.device.type, enabled=False):  # which would take means in half precision
            normalised: Tensor = way.apply(by_seed, self.weight, self.bias, self)  # type: ignore[no-untyped-call]
        return normalised.view(rows.shape)

    def moments(self, by_seed: Tensor) -> tuple[Tensor, Tensor]:
        """Means and variances to normalise by, ``[seeds, 1, width]`` each; a training step takes note of them."""
        assert self.running_mean is not None
        assert self.running_var is not None
        running_mean, running_var = self.running_mean.unsqueeze(1), self.running_var.unsqueeze(1)
        if not self.training:
            return running_mean, running_var
        shares = self.parts.shares(by_seed.dtype).unsqueeze(1)
        mean = torch.bmm(shares, by_seed)
        variance = torch.bmm(shares, (by_seed - mean).square())
        chosen = mean, variance
        if min(self.parts.counts) < 2:
            enough = (self.parts.counted > 1).view(-1, 1, 1)
            chosen = torch.where(enough, mean, running_mean), torch.where(enough, variance, running_var)
        self._note(mean.squeeze(1), variance.squeeze(1))
        return chosen

    def _note(self, mean: Tensor, variance: Tensor) -> None:
        """Move the running statistics towards those of the rows."""
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        counts = self.parts.counted.unsqueeze(1)
        weight = (self.momentum * (counts > 1)).to(mean.dtype)
        self.running_mean.lerp_(mean, weight)
        self.running_var.lerp_(variance * (counts / (counts - 1).clamp(min=1)).to(mean.dtype), weight)
        self.num_batches_tracked.add_(self.parts.counted > 1)


class _AllAtOnce(torch.autograd.Function):
    """All seeds by the same few operators, whatever their number."""

    @staticmethod
    def forward(ctx: Any, by_seed: Tensor, weight: Tensor, bias: Tensor, norm: StackedRowNorm) -> Tensor:
        mean, variance = norm.moments(by_seed)
        inverse_std = (variance + norm.eps).rsqrt()
        # Without this, what stands on padding could grow from layer to layer until it is no number.
        centred = torch.where(norm.parts.real.unsqueeze(2), by_seed - mean, 0)
        ctx.parts, ctx.training = norm.parts, norm.training
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
        if ctx.training:
            counts = parts.counted.view(-1, 1, 1)
            by_rows = (counts > 1) / counts.clamp(min=1).to(grad.dtype)
            rows = torch.addcmul(rows, centred, -scale * grad_weight * inverse_std * by_rows)
            rows = rows.add_(-scale * grad_bias * by_rows)
        return torch.where(parts.real.unsqueeze(2), rows, 0), grad_weight.squeeze(1), grad_bias.squeeze(1), None


class _OneByOne(torch.autograd.Function):
    """Each seed, of two rows or more, by PyTorch's own batch normalisation of its real rows."""

    @staticmethod
    def forward(ctx: Any, by_seed: Tensor, weight: Tensor, bias: Tensor, norm: StackedRowNorm) -> Tensor:
        assert norm.running_mean is not None
        assert norm.running_var is not None
        assert norm.num_batches_tracked is not None
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
