"""Functions whose backward pass is written out, and cannot be differentiated itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")


def differentiable_once(backward: Callable[P, R]) -> Callable[P, R]:
    """As :func:`torch.autograd.function.once_differentiable`, which refuses ``Tensor.backward()`` alone.

    ``torch.autograd.grad`` follows the ways to the inputs that it is asked for. None led through its refusal, so that
    second derivatives lacked whatever went through such a function, without a word.
    """

    @wraps(backward)
    def once(*args: P.args, **kwargs: P.kwargs) -> R:
        with torch.no_grad():
            grads = backward(*args, **kwargs)
        if not torch.is_grad_enabled():  # it is, where a graph of the backward pass is asked for
            return grads
        ctx: Any = args[0]
        led_from = [given for given in (*args[1:], *ctx.saved_tensors) if _leads_on(given)]
        if not led_from:
            return grads
        of_inputs = grads if isinstance(grads, tuple) else (grads,)
        refusing: Any = _Refused.apply(len(of_inputs), *of_inputs, *led_from)  # type: ignore[no-untyped-call]
        told: R = refusing if isinstance(grads, tuple) else refusing[0]
        return told

    return once


def _leads_on(given: object) -> bool:
    return isinstance(given, Tensor) and given.requires_grad


class _Refused(torch.autograd.Function):
    """Gives the gradients as they are; they seem to follow from whatever the backward pass read."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
        return tuple(None if grad is None else grad.view_as(grad) for grad in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, ...]:
        raise RuntimeError(
            "second derivative: found a network or layer of bimp, which has none, expected the first alone"
        )
