"""A step down the gradients by Adam, on the state of PyTorch's optimizer but without what its ``step`` does around it.

On a CPU the optimizer takes several times as long to look through its parameters as the update does; on a GPU it would
take the learning rate as a number, which a capture holds on to.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim.adam import adam


class AdamUpdate:
    """The update of ``optimizer``, on its own state.

    Args:
        optimizer: fused Adam of one group.
        device: where captured steps read the learning rate, as it was at the last :meth:`follow_schedule`; None: it is
            read from the optimizer at every update.
    """

    def __init__(self, optimizer: torch.optim.Adam, device: torch.device | None = None) -> None:
        (self._group,) = optimizer.param_groups
        self._optimizer = optimizer
        self._learning_rate = None if device is None else torch.zeros((), dtype=torch.float32, device=device)

    @property
    def parameters(self) -> list[Tensor]:
        """What is updated."""
        parameters: list[Tensor] = self._group["params"]
        return parameters

    @property
    def state(self) -> list[Tensor]:
        """The parameters and what Adam keeps of them, as far as there is any yet."""
        kept = (self._optimizer.state.get(parameter, {}) for parameter in self.parameters)
        return [*self.parameters, *(tensor for state in kept for tensor in state.values())]

    def follow_schedule(self) -> None:
        """Take over the optimizer's learning rate."""
        if self._learning_rate is not None:
            self._learning_rate.fill_(float(self._group["lr"]))

    @torch.no_grad()
    def __call__(self, grads: Sequence[Tensor | None]) -> None:
        """Update each parameter by its gradient; those without stay."""
        given = [(parameter, grad) for parameter, grad in zip(self.parameters, grads, strict=True) if grad is not None]
        states = [self._state_of(parameter) for parameter, _ in given]
        beta1, beta2 = self._group["betas"]
        adam(
            [parameter for parameter, _ in given],
            [_as_it_lies(grad, parameter) for parameter, grad in given],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=True,
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=self._group["lr"] if self._learning_rate is None else self._learning_rate,
            weight_decay=self._group["weight_decay"],
            eps=self._group["eps"],
            maximize=False,
        )

    def _state_of(self, parameter: Tensor) -> dict[str, Tensor]:
        state: dict[str, Tensor] = self._optimizer.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        return state


def _as_it_lies(grad: Tensor, parameter: Tensor) -> Tensor:
    """``grad`` in the order of ``parameter`` in memory, for the update goes through both as they lie.

    Parameters of one's own need not be contiguous; what Adam keeps of them lies as they do.
    """
    return grad if grad.stride() == parameter.stride() else torch.empty_like(parameter).copy_(grad)


def descend(update: AdamUpdate, clip_norm: float | None, grads: Sequence[Tensor | None]) -> None:
    """Move the parameters of ``update`` by ``grads``, clipped to a norm of ``clip_norm`` over all of them."""
    update(grads if clip_norm is None else clipped(grads, clip_norm))


def gradients(loss: Tensor, parameters: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
    """Of ``loss`` by each parameter, 0 where it does not depend on one; None for those that are frozen.

    One on which some batches depend and others do not moves on by what Adam keeps of it, alone or among others.
    """
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    found = iter(torch.autograd.grad(loss, trained, allow_unused=True))
    zeros: dict[tuple[torch.Size, torch.dtype], Tensor] = {}
    return tuple(_or_zero(next(found), each, zeros) if each.requires_grad else None for each in parameters)


def _or_zero(grad: Tensor | None, parameter: Tensor, zeros: dict[tuple[torch.Size, torch.dtype], Tensor]) -> Tensor:
    """``grad``, or where there is none one of the ``zeros``, which serves all parameters of a shape."""
    if grad is not None:
        return grad
    key = (parameter.shape, parameter.dtype)
    if key not in zeros:
        zeros[key] = torch.zeros_like(parameter)
    return zeros[key]


@torch.no_grad()
def clipped(grads: Sequence[Tensor | None], norm: float) -> tuple[Tensor | None, ...]:
    """As :func:`torch.nn.utils.clip_grad_norm_`, in new tensors: gradients of two parameters may be one tensor."""
    given = [grad for grad in grads if grad is not None]
    total = torch.nn.utils.get_total_norm(given)
    scaled = iter(torch._foreach_mul(given, torch.clamp(norm / (total + 1e-6), max=1.0)))
    return tuple(None if grad is None else next(scaled) for grad in grads)
