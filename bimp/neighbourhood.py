"""How the rows or messages of a node's in-neighbours become one row: the only aggregation of the package.

An edge ``u -> v`` is a column ``(u, v)`` of ``edge_index``; ``u`` is an in-neighbour of ``v``. Columns must be sorted
by ``v``, as :class:`~bimp.data.batch.GraphBatch` promises: three of the functions read each neighbourhood as one run
of columns. A node without in-neighbours gets a row of zeros everywhere.

Where the message is a neighbour's row, at most times one number, the ``..._neighbour_rows`` functions never write the
messages out. On dense graphs this is several times faster than gathering them first; nothing else differs.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor


def degrees(edge_index: Tensor, num_nodes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """In-degree of every node, ``[nodes]``, as numbers of type ``dtype``."""
    ones = torch.ones(edge_index.shape[1], dtype=dtype, device=edge_index.device)
    return ones.new_zeros(num_nodes).index_add_(0, edge_index[1], ones)


def sum_over_neighbours(messages: Tensor, edge_index: Tensor, num_nodes: int) -> Tensor:
    """Sum of the messages that reach each node.

    Args:
        messages: ``[edges, ...]``.
        edge_index: ``[2, edges]``.
        num_nodes: number of nodes.

    Returns:
        ``[nodes, ...]``.
    """
    return messages.new_zeros(num_nodes, *messages.shape[1:]).index_add(0, edge_index[1], messages)


def max_over_neighbours(messages: Tensor, edge_index: Tensor, num_nodes: int) -> Tensor:
    """Largest message that reaches each node, entry by entry; of equal ones the first takes the gradient.

    Args:
        messages: ``[edges, width]``.
        edge_index: ``[2, edges]``, sorted by destination.
        num_nodes: number of nodes.

    Returns:
        ``[nodes, width]``.
    """
    each_message = torch.arange(messages.shape[0], device=messages.device)
    return _reduce_runs(messages, each_message, edge_index, num_nodes, "max")


def softmax_over_neighbours(logits: Tensor, edge_index: Tensor, num_nodes: int) -> Tensor:
    """Softmax of the logits of the edges that reach the same node, each column for itself.

    Args:
        logits: ``[edges, heads]``.
        edge_index: ``[2, edges]``.
        num_nodes: number of nodes.

    Returns:
        ``[edges, heads]``; sums to 1 over the edges into a node.
    """
    destination = edge_index[1]
    with torch.no_grad():  # the shift keeps exp from overflowing and cancels out, so it needs no gradient
        index = destination.unsqueeze(1).expand_as(logits)
        largest = logits.new_zeros(num_nodes, logits.shape[1])
        largest = largest.scatter_reduce(0, index, logits, "amax", include_self=False)
    exponentials = (logits - largest.index_select(0, destination)).exp()
    return exponentials / sum_over_neighbours(exponentials, edge_index, num_nodes).index_select(0, destination)


def sum_neighbour_rows(rows: Tensor, edge_index: Tensor, weights: Tensor | None = None) -> Tensor:
    """Sum of the rows of each node's in-neighbours, each times the weight of its edge.

    Args:
        rows: ``[nodes, width]``.
        edge_index: ``[2, edges]``, sorted by destination.
        weights: ``[edges]``, or None for 1 everywhere.

    Returns:
        ``[nodes, width]``.
    """
    return _reduce_runs(rows, edge_index[0], edge_index, rows.shape[0], "sum", weights)


def mean_neighbour_rows(rows: Tensor, edge_index: Tensor, weights: Tensor | None = None) -> Tensor:
    """:func:`sum_neighbour_rows` over the number of in-neighbours (not over the sum of the weights)."""
    counts = degrees(edge_index, rows.shape[0], rows.dtype).clamp(min=1)
    return sum_neighbour_rows(rows, edge_index, weights) / counts.unsqueeze(1)


def max_neighbour_rows(rows: Tensor, edge_index: Tensor) -> Tensor:
    """Entry by entry the largest of the rows ``[nodes, width]`` of each node's in-neighbours."""
    return _reduce_runs(rows, edge_index[0], edge_index, rows.shape[0], "max")


def _reduce_runs(
    rows: Tensor,
    picks: Tensor,
    edge_index: Tensor,
    num_nodes: int,
    mode: Literal["sum", "max"],
    weights: Tensor | None = None,
) -> Tensor:
    """Reduce ``rows[picks]`` over each run of columns of ``edge_index`` that share a destination."""
    starts = torch.zeros(num_nodes + 1, dtype=torch.long, device=rows.device)
    starts = starts.index_add_(0, edge_index[1] + 1, torch.ones_like(edge_index[1])).cumsum(0)
    return F.embedding_bag(picks, rows, starts, mode=mode, per_sample_weights=weights, include_last_offset=True)
