"""A stand-in for CUDA graphs on the CPU: the operators of a step, recorded, and run again on the same tensors.

As with a CUDA graph no Python runs at a replay: a number that the host held when the step was recorded is held for
ever. Whatever was made in between is spoilt before each replay, so that nothing can be read that the replay itself has
not written.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from bimp.device.capture import State, Step, unchanged


class Tape(TorchDispatchMode):
    """Records operators; :meth:`replay` runs them again."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any, list[Tensor]]] = []
        self.made: dict[int, Tensor] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = {_storage(value) for value in _tensors((args, kwargs))}
        outputs = _tensors(result)
        fresh = [value for value in outputs if _storage(value) not in given]
        # Detached: no step may hold on to what autograd keeps.
        stored = _detached(args), _detached(kwargs or {})
        self.calls.append((func, *stored, [value.detach() for value in outputs]))
        for value in fresh:
            self.made[_storage(value)] = value.detach()
        return result

    def replay(self) -> None:
        with torch.no_grad():
            for value in self.made.values():
                spoil(value)
            for func, args, kwargs, outputs in self.calls:
                for kept, value in zip(outputs, _tensors(func(*args, **kwargs)), strict=True):
                    if _storage(kept) != _storage(value):
                        kept.copy_(value)


def spoil(tensor: Tensor) -> None:
    """Fill with what is no number; integers with what is no index."""
    if tensor.dtype == torch.bool:
        tensor.logical_not_()
    else:
        tensor.fill_(torch.nan if tensor.is_floating_point() else -(10**6) if tensor.dtype.is_signed else 255)


class TapedSteps:
    """Captures as :class:`bimp.device.capture.CudaGraphs` does, on tapes."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.captures = 0

    def __call__(self, step: Step) -> Step:
        self.captures += 1
        with unchanged(self.state):
            step()
        tape = Tape()
        with unchanged(self.state), tape:
            step()
        return tape.replay


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr() or id(tensor)


def _tensors(tree: Any) -> list[Tensor]:
    # PyTorch's own trees know more kinds of containers, and take longer than the operators.
    if isinstance(tree, Tensor):
        return [tree]
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, tuple | list) else ()
    return [value for part in parts for value in _tensors(part)]


def _detached(tree: Any) -> Any:
    if isinstance(tree, Tensor):
        return tree.detach()
    if isinstance(tree, dict):
        return {key: _detached(value) for key, value in tree.items()}
    return type(tree)(_detached(value) for value in tree) if isinstance(tree, tuple | list) else tree
