"""Adam's update with the learning rate in a tensor, so that a captured step follows the schedule."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim.adam import adam


class AdamUpdate:
    """The update of ``optimizer``, on its own state; its learning rate is read from ``learning_rate`` instead.

    The optimizer's :meth:`step` would take the rate as a number, which a capture holds on to.

    Args:
        optimizer: Adam of one group.
        device: where its parameters lie.
    """

    def __init__(self, optimizer: torch.optim.Adam, device: torch.device) -> None:
        (self._group,) = optimizer.param_groups
        self._optimizer = optimizer
        self._learning_rate = torch.zeros((), dtype=torch.float32, device=device)

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
        self._learning_rate.fill_(float(self._group["lr"]))

    def __call__(self) -> None:
        """Update the parameters that have a gradient."""
        updated = [parameter for parameter in self.parameters if parameter.grad is not None]
        states = [self._state_of(parameter) for parameter in updated]
        beta1, beta2 = self._group["betas"]
        with torch.no_grad():
            adam(
                updated,
                # The update goes through both as they lie in memory, whatever their strides.
                [parameter.grad.contiguous() for parameter in updated if parameter.grad is not None],
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [],
                [state["step"] for state in states],
                fused=True,
                amsgrad=False,
                beta1=beta1,
                beta2=beta2,
                lr=self._learning_rate,
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


@torch.no_grad()
def clipped(grads: Sequence[Tensor | None], norm: float) -> tuple[Tensor | None, ...]:
    """As :func:`torch.nn.utils.clip_grad_norm_`, in new tensors: gradients of two parameters may be one tensor."""
    given = [grad for grad in grads if grad is not None]
    total = torch.nn.utils.get_total_norm(given)
    scaled = iter(torch._foreach_mul(given, torch.clamp(norm / (total + 1e-6), max=1.0)))
    return tuple(None if grad is None else next(scaled) for grad in grads)
