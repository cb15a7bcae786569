"""A graph as a user has it, its edges in any order: looked at, so that a mistake is one line, and made a batch."""

from __future__ import annotations

import torch
from torch import Tensor

from bimp.data.batch import GraphBatch


def require_rows(x: Tensor, row_dim: int, dtype: torch.dtype) -> None:
    """See that ``x`` holds rows that a gate of ``row_dim`` whose parameters are ``dtype`` reads.

    Raises:
        ValueError: it is anything else.
    """
    expected = f"expected one tensor [nodes, {row_dim}], of one node or more"
    if not isinstance(x, Tensor):
        raise ValueError(f"x: found {type(x).__name__}, {expected}")
    if x.dim() != 2 or x.shape[0] == 0 or x.shape[1] != row_dim:
        raise ValueError(f"x: found {list(x.shape)}, {expected}")
    device = x.device.type
    autocasts = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
    if x.dtype != dtype and not (autocasts and x.is_floating_point()):
        raise ValueError(f"x: found {x.dtype}, expected {dtype} as the gate has it; move either with .to(dtype)")


def require_columns(edge_index: Tensor) -> None:
    """See that ``edge_index`` has a column for each edge; its numbers are not looked at.

    Raises:
        ValueError: it is anything else.
    """
    expected = "expected a dense tensor [2, edges]"
    if not isinstance(edge_index, Tensor):
        raise ValueError(f"edge_index: found {type(edge_index).__name__}, {expected}")
    if edge_index.layout != torch.strided or edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise ValueError(f"edge_index: found {edge_index.layout} {list(edge_index.shape)}, {expected}")


def require_edges(edge_index: Tensor, x: Tensor) -> None:
    """See that ``edge_index`` holds edges between the nodes of ``x``.

    Raises:
        ValueError: it is anything else.
    """
    require_columns(edge_index)
    _require_numbers("edge_index", edge_index, x)
    if edge_index.numel() > 0:
        least, most = (int(end) for end in edge_index.aminmax())
        if least < 0 or most >= len(x):
            raise ValueError(f"edge_index: found nodes {least} to {most}, expected 0 to {len(x) - 1} as x has them")


def graph_batch(x: Tensor, edge_index: Tensor, batch: Tensor | None) -> GraphBatch:
    """A batch without inputs of edges or labels.

    Args:
        x: ``[nodes, row_dim]``.
        edge_index: ``[2, edges]`` int64, sorted by destination.
        batch: ``[nodes]``, the graph of each node; None: all are of one.

    Raises:
        ValueError: ``batch`` is not ascending from 0 without gaps, or an edge joins two graphs.
    """
    if batch is None:
        batch = torch.zeros(len(x), dtype=torch.long, device=x.device)
    if not isinstance(batch, Tensor) or batch.shape != (len(x),):
        found = list(batch.shape) if isinstance(batch, Tensor) else type(batch).__name__
        raise ValueError(
            f"batch: found {found}, expected the graph of each of {len(x)} nodes; "
            "what else the convolution takes is given by its name"
        )
    _require_numbers("batch", batch, x)
    batch = batch.long()
    steps = batch.diff()
    if int(batch[0]) != 0 or bool(((steps < 0) | (steps > 1)).any()):
        raise ValueError("batch: found graphs out of order, expected their numbers ascending from 0 without gaps")
    of_source, of_destination = batch.index_select(0, edge_index.flatten()).view(2, -1)
    if bool((of_source != of_destination).any()):
        raise ValueError("batch: found an edge from one graph to another, expected every edge within a graph")
    counts = batch.bincount()
    ptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return GraphBatch(x=x, edge_index=edge_index, edge_attr=None, y=x.new_empty(0), batch=batch, ptr=ptr)


def _require_numbers(name: str, numbers: Tensor, x: Tensor) -> None:
    if numbers.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"{name}: found {numbers.dtype}, expected torch.int64")
    if numbers.device != x.device:
        raise ValueError(f"{name}: found on {numbers.device}, expected on {x.device} as x is")
