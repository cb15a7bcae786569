"""All parameters of a network in one vector, for an optimizer that moves them in one go."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor, nn

ALIGNMENT = 16
"""Parameters begin at multiples of so many numbers, as products on matrices in odd places are slower."""

MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class ParameterLayout:
    """Where each parameter lies in the vector; numbers between them are 0.

    Attributes:
        shapes: of the parameters, in the order of ``Module.parameters()``.
    """

    shapes: tuple[torch.Size, ...]

    @classmethod
    def of(cls, network: nn.Module) -> ParameterLayout:
        """That of ``network``."""
        return cls(tuple(parameter.shape for parameter in network.parameters()))

    def joined(self, values: Sequence[Tensor]) -> Tensor:
        """One vector of a value for each parameter."""
        vector = values[0].new_zeros(sum(self._lengths))
        for place, value in zip(self.apart(vector), values, strict=True):
            place.copy_(value.detach())
        return vector

    def apart(self, vectors: Tensor) -> list[Tensor]:
        """The parameters in ``vectors``, ``[..., numbers]``: a view ``[..., *shape]`` for each."""
        bounds = pairwise(accumulate(self._lengths, initial=0))
        return [
            vectors[..., start : start + shape.numel()].view(*vectors.shape[:-1], *shape)
            for (start, _), shape in zip(bounds, self.shapes, strict=True)
        ]

    def state_joined(self, state: dict[str, Any]) -> dict[str, Any]:
        """The state of an Adam over the parameters as that of an Adam over the vector.

        A parameter that never had a gradient has none, which is one of zeros.
        """
        by_parameter: dict[int, dict[str, Tensor]] = state["state"]
        whole: dict[int, dict[str, Tensor]] = {}
        for of_parameter in list(by_parameter.values())[:1]:
            vector = of_parameter["exp_avg"].new_zeros(sum(self._lengths))
            whole[0] = {"step": of_parameter["step"], **{name: vector.clone() for name in MOMENTS}}
        for name in MOMENTS if whole else ():
            places = self.apart(whole[0][name])
            for number, of_parameter in by_parameter.items():
                places[number].copy_(of_parameter[name])
        return {"state": whole, "param_groups": [{**group, "params": [0]} for group in state["param_groups"]]}

    def state_apart(self, state: dict[str, Any]) -> dict[str, Any]:
        """The other way round; nothing in it shares memory with the optimizer."""
        parameters = list(range(len(self.shapes)))
        by_parameter: dict[int, dict[str, Tensor]] = {number: {} for number in parameters} if state["state"] else {}
        for name in MOMENTS if by_parameter else ():
            for number, value in enumerate(self.apart(state["state"][0][name])):
                by_parameter[number] |= {"step": state["state"][0]["step"].clone(), name: value.clone()}
        return {
            "state": by_parameter,
            "param_groups": [{**group, "params": parameters} for group in state["param_groups"]],
        }

    @property
    def _lengths(self) -> list[int]:
        return [math.ceil(shape.numel() / ALIGNMENT) * ALIGNMENT for shape in self.shapes]


def keep(grads: Sequence[Tensor | None], places: Sequence[Tensor]) -> None:
    """Copy gradients to their places; a frozen parameter has none, and 0 stays there."""
    given = [(place, grad) for place, grad in zip(places, grads, strict=True) if grad is not None]
    torch._foreach_copy_([place for place, _ in given], [grad for _, grad in given])
