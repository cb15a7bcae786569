"""Graphs and batches of a user's own making: looked at, so that a mistake in them is one line."""

from __future__ import annotations

import torch
from torch import Tensor

from bimp.data.batch import GraphBatch
from bimp.tasks import EdgeInput, NodeInput


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
    if x.dtype != dtype and not _autocasts(x):
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


def require_graphs(batch: GraphBatch) -> None:
    """See that ``batch`` tells the same graphs twice, each of one node or more.

    Raises:
        ValueError: the graphs have other nodes than the batch, or one has none, or ``batch.batch`` tells others than
            ``batch.ptr``.
    """
    if len(batch.batch) != batch.num_nodes or int(batch.ptr[-1]) != batch.num_nodes:
        of_graphs = f"{len(batch.batch)} by batch.batch and {int(batch.ptr[-1])} by batch.ptr"
        raise ValueError(f"batch.x: found {batch.num_nodes} nodes, expected those of its graphs, {of_graphs}")
    counts = batch.ptr.diff()
    if int(batch.ptr[0]) != 0 or bool((counts < 0).any()):
        raise ValueError(f"batch.ptr: found {int(batch.ptr[0])} first or a descent, expected offsets ascending from 0")
    if bool((counts == 0).any()):  # nothing to read out, and an unsupervised loss that is no number
        number = int((counts == 0).nonzero()[0])
        raise ValueError(f"batch.ptr: found no node of graph {number}, expected one or more; leave such graphs out")
    # Some read the graphs of the nodes from the one, some from the other.
    if not torch.equal(batch.batch.long(), torch.arange(len(counts)).repeat_interleave(counts)):
        raise ValueError("batch.batch: found other graphs than batch.ptr tells, expected the same, in ascending order")


def require_sorted_edges(batch: GraphBatch) -> None:
    """See that the edges of ``batch`` stand as it promises: kernels read and write beyond their memory otherwise.

    Raises:
        ValueError: they are not sorted by destination, lead to nodes that there are not, or have inputs for others;
            or the positional encodings are of other nodes.
    """
    source, destination = batch.edge_index
    if batch.edge_attr is not None and len(batch.edge_attr) != batch.num_edges:
        raise ValueError(f"batch.edge_attr: found {len(batch.edge_attr)} rows, expected {batch.num_edges}, one an edge")
    if batch.pos_enc is not None and len(batch.pos_enc) != batch.num_nodes:
        raise ValueError(f"batch.pos_enc: found {len(batch.pos_enc)} rows, expected {batch.num_nodes}, one a node")
    if source.dtype != torch.int64:
        raise ValueError(f"batch.edge_index: found {source.dtype}, expected torch.int64")
    if bool((destination[1:] < destination[:-1]).any()):
        raise ValueError("batch.edge_index: found edges out of order, expected them sorted by destination (row 1)")
    if source.numel() == 0:
        return
    least, most = (int(end) for end in source.aminmax())
    least, most = min(least, int(destination[0])), max(most, int(destination[-1]))
    if least < 0 or most >= batch.num_nodes:
        raise ValueError(f"batch.edge_index: found nodes {least} to {most}, expected 0 to {batch.num_nodes - 1}")


def require_inputs(name: str, inputs: Tensor, kind: NodeInput | EdgeInput, dim: int, dtype: torch.dtype) -> None:
    """See that a network whose parameters are ``dtype`` can embed ``inputs``, of nodes or edges.

    Raises:
        ValueError: they are of another kind, width or type.
    """
    if kind == "embedding":
        if inputs.dim() != 1 or inputs.dtype not in (torch.int64, torch.int32):
            found = f"{inputs.dtype} {list(inputs.shape)}"
            raise ValueError(f"{name}: found {found}, expected one whole number each, torch.int64 and below {dim}")
    elif inputs.dim() != 2 or inputs.shape[1] != dim:
        raise ValueError(f"{name}: found {list(inputs.shape)}, expected {dim} columns")
    elif inputs.dtype != dtype and not _autocasts(inputs):
        raise ValueError(f"{name}: found {inputs.dtype}, expected {dtype} as the network has it")


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


def _autocasts(rows: Tensor) -> bool:
    """Whether a product with ``rows`` is taken in a type of autocast's, whatever theirs is."""
    device = rows.device.type
    if not (torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)):
        return False
    return rows.is_floating_point()


def _require_numbers(name: str, numbers: Tensor, x: Tensor) -> None:
    if numbers.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"{name}: found {numbers.dtype}, expected torch.int64")
    if numbers.device != x.device:
        raise ValueError(f"{name}: found on {numbers.device}, expected on {x.device} as x is")
