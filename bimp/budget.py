"""Parameters counted, and the width that a budget of them allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from bimp.config import ConfigError, ModelConfig
from bimp.head import smallest_hidden_dim
from bimp.network import Network
from bimp.tasks import TaskSpec


def count_parameters(module: nn.Module) -> int:
    """Number of trainable numbers in ``module``."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


def parameters_of(model: ModelConfig, task: TaskSpec) -> int:
    """Number of trainable numbers in the network of ``model``, counted on one that is built without memory.

    Raises:
        ConfigError: the network is too narrow for its head.
    """
    with torch.device("meta"), _LeavesValuesOpen():
        return count_parameters(Network(model, task))


def solve_hidden_dim(model: ModelConfig, task: TaskSpec, budget: int) -> ModelConfig:
    """``model`` with the largest ``hidden_dim`` whose parameter count does not exceed ``budget``.

    For ``gat`` this is the width of one head; the number of heads stays. The count grows with the width, so that
    bisection finds it.

    Args:
        model: everything but the width; its ``hidden_dim`` is not looked at.
        task: inputs and outputs of the network.
        budget: most trainable numbers.

    Raises:
        ConfigError: even the narrowest network exceeds the budget.
    """

    def fits(width: int) -> bool:
        return parameters_of(replace(model, hidden_dim=width), task) <= budget

    widest = smallest_hidden_dim(model, task)
    if not fits(widest):
        smallest = parameters_of(replace(model, hidden_dim=widest), task)
        raise ConfigError(
            "budget",
            f"found {budget}, expected {smallest} or more: the parameters of {model.layers} layers of "
            f"{model.backbone} on {task.dataset} at their narrowest (hidden_dim {widest})",
        )
    too_wide = 2 * widest
    while fits(too_wide):
        widest, too_wide = too_wide, 2 * too_wide
    while too_wide - widest > 1:
        middle = (widest + too_wide) // 2
        if fits(middle):
            widest = middle
        else:
            too_wide = middle
    return replace(model, hidden_dim=widest)


class _LeavesValuesOpen(TorchFunctionMode):
    """Skips the drawing of initial values, which a network without memory has no place for.

    PyTorch draws them there by way of its compiler, which takes 70 MiB and more than a second to load.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        if getattr(func, "__name__", "").endswith(("normal_", "uniform_")):
            return named["tensor"] if "tensor" in named else args[0]
        return func(*args, **named)
