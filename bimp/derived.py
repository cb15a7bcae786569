"""What is worked out of a batch when it is first asked for, and kept with it for all later calls.

The first call may stand under ``torch.inference_mode`` and a later one train, which PyTorch refuses with tensors that
were made under that mode: these are made outside of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, wraps
from typing import Any, TypeVar

import torch

Value = TypeVar("Value")


def derived(work_out: Callable[[Any], Value]) -> cached_property[Value]:
    """As ``functools.cached_property``, of what training may need."""

    @wraps(work_out)
    def worked_out(owner: Any) -> Value:
        with to_keep():
            return work_out(owner)

    return cached_property(worked_out)


def to_keep() -> AbstractContextManager[None]:
    """Within it tensors are made that may be kept beyond ``torch.inference_mode``."""
    return torch.inference_mode(False) if torch.is_inference_mode_enabled() else nullcontext()
