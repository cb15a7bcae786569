"""When the kernels of this package take the place of the plain functions."""

from __future__ import annotations

import torch
from torch import Tensor


def kernels_serve(*tensors: Tensor | None) -> bool:
    """Whether all of ``tensors`` are plain floating point numbers of one type in main memory.

    Elsewhere the plain functions are taken: on an accelerator, under autocast, and where ``torch.compile`` or a
    transform of ``torch.func`` looks through the operators.
    """
    given = [tensor for tensor in tensors if tensor is not None]
    dtype = given[0].dtype
    return (
        dtype in (torch.float32, torch.float64)
        and all(tensor.device.type == "cpu" and tensor.dtype == dtype for tensor in given)
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
        and not torch._C._are_functorch_transforms_active()
    )
