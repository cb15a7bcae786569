"""Tensors of several steps in memory that keeps its place, of which a step takes its own in a launch for each type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")

ALIGNMENT = 32
"""Tensors begin at multiples of so many elements, as products on matrices in odd places are slower."""


@dataclass(frozen=True)
class _Place:
    """Where a tensor lies in the rows of its type, and its shape in a step."""

    start: int
    shape: torch.Size


class Slots(Generic[T]):
    """Room for the tensors of ``most`` steps.

    Args:
        sample: tensors of some steps, ``[steps, ...]``, in a dataclass.
        most: steps that are filled in at once.
        device: of the tensors.
    """

    def __init__(self, sample: T, most: int, device: torch.device) -> None:
        self._places: list[_Place] = []
        lengths: dict[torch.dtype, int] = {}

        def reserve(tensor: Tensor) -> Tensor:
            start = lengths.get(tensor.dtype, 0)
            self._places.append(_Place(start, tensor.shape[1:]))
            lengths[tensor.dtype] = start + -(-tensor.shape[1:].numel() // ALIGNMENT) * ALIGNMENT
            return tensor.new_empty(0)

        self._form = changed(sample, reserve)
        self._rows = {dtype: torch.zeros(most, length, dtype=dtype, device=device) for dtype, length in lengths.items()}

    def fill(self, content: T) -> None:
        """Put the tensors of the next steps, ``most`` or fewer, where :meth:`take` finds them."""
        places = iter(self._places)

        def put(tensor: Tensor) -> Tensor:
            place = next(places)
            end = place.start + place.shape.numel()
            self._rows[tensor.dtype][: len(tensor), place.start : end].view(tensor.shape).copy_(tensor)
            return tensor

        changed(content, put)

    def take(self, step: Tensor) -> T:
        """What was filled in for the ``step``-th of them, a scalar on the device: a copy, ``[...]`` each."""
        rows = {dtype: rows.index_select(0, step.view(1)).view(-1) for dtype, rows in self._rows.items()}
        places = iter(self._places)

        def cut(tensor: Tensor) -> Tensor:
            place = next(places)
            return rows[tensor.dtype][place.start : place.start + place.shape.numel()].view(place.shape)

        return changed(self._form, cut)


def changed(tree: T, change: Callable[[Tensor], Tensor]) -> T:
    """``tree``, a dataclass of tensors and of such dataclasses, with each tensor changed, field by field."""
    of_fields: dict[str, Any] = {field.name: getattr(tree, field.name) for field in fields(tree)}  # type: ignore[arg-type]
    for name, value in of_fields.items():
        if isinstance(value, Tensor):
            of_fields[name] = change(value)
        elif is_dataclass(value):
            of_fields[name] = changed(value, change)
    return replace(tree, **of_fields)  # type: ignore[type-var]
