"""Operators for which the host waits for the device, refused wherever they are called."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
WAITING = {
    aten._local_scalar_dense,  # item, tolist, bool, int, float
    aten.is_nonzero,
    aten.nonzero,
    aten.masked_select,
    aten._unique,
    aten._unique2,
    aten.unique_consecutive,
    aten.unique_dim,
    aten.bincount,
    aten.equal,
    aten.histc,
    aten.lift_fresh,  # a tensor out of Python's numbers, which is copied from unpinned memory
}
BY_MASK = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}
SIZED_BY_DATA = {aten.repeat_interleave}


class NobodyWaits(TorchDispatchMode):
    """Raises where an operator would make the host wait."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        packet = func.overloadpacket
        by_mask = packet in BY_MASK and any(part is not None and part.dtype == torch.bool for part in args[1])
        sized = packet in SIZED_BY_DATA and kwargs.get("output_size") is None
        if packet in WAITING or by_mask or sized:
            raise AssertionError(f"the host would wait for {func}")
        return func(*args, **kwargs)
