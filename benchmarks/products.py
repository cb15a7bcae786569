"""The products of matrices that a step takes, alone: below their time no way of doing everything else can go."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

PRODUCTS = {"mm", "addmm", "addmm_", "bmm", "baddbmm", "mv", "_linear_pointwise"}
"""The operators that are products, PyTorch's and oneDNN's."""


class Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the products that are taken within, each to be taken again on other numbers that lie alike.

    Attributes:
        again: a call for each product, in the order in which they were taken.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.again: list[Callable[[], object]] = []
        self._drawn: dict[tuple[object, ...], Tensor] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note a product and go on."""
        kwargs = kwargs or {}
        if func.overloadpacket.__name__ in PRODUCTS:
            self.again.append(partial(func, *map(self._alike, args), **kwargs))
        return func(*args, **kwargs)

    def _alike(self, given: object) -> object:
        """Numbers of the same shape that lie in memory as the given ones do; those of a kind are drawn once."""
        if not isinstance(given, Tensor):
            return given
        kind = (*given.shape, *given.stride())
        if kind not in self._drawn:
            self._drawn[kind] = torch.empty_strided(given.shape, given.stride(), dtype=given.dtype).normal_()
        return self._drawn[kind]


def products_of(step: Callable[[int], object]) -> Callable[[int], object]:
    """What takes the products of a first turn of ``step`` again, whatever the turn, and does nothing else."""
    products = Products()
    with products:
        step(0)

    def again(turn: int) -> None:
        with torch.no_grad():
            for product in products.again:
                product()

    return again
