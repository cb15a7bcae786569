"""How the rows or messages of a node's in-neighbours become one row: the only aggregation of the package.

An edge ``u -> v`` is a column ``(u, v)`` of ``edge_index``; ``u`` is an in-neighbour of ``v``. Columns must be sorted
by ``v``, as :class:`~bimp.data.batch.GraphBatch` promises: a neighbourhood is read as one run of columns. A node
without in-neighbours gets a row of zeros everywhere.

Where the message is a neighbour's row, at most times one number, the ``..._neighbour_rows`` functions never write the
messages out; in main memory :mod:`bimp.kernels` takes their place, on padded batches :mod:`bimp.padded`.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bimp.adjacency import Adjacency
from bimp.kernels.aggregation import edge_sums, neighbour_sum, rectified_neighbour_max
from bimp.kernels.choice import kernels_serve
from bimp.padded import aggregation


def sum_over_neighbours(messages: Tensor, adjacency: Adjacency) -> Tensor:
    """Sum of the messages ``[edges, ...]`` that reach each node, ``[nodes, ...]``."""
    if adjacency.padding is not None:
        return aggregation.sum_over_neighbours(messages, adjacency)
    summed = messages.new_zeros(adjacency.num_nodes, *messages.shape[1:])
    return summed.index_add(0, adjacency.destination, messages)


def sum_along_edges(at_source: Tensor, at_destination: Tensor, adjacency: Adjacency) -> Tensor:
    """``at_source[u] + at_destination[v]`` for each edge u -> v: twice ``[nodes, width]`` to ``[edges, width]``."""
    if adjacency.padding is not None or kernels_serve(at_source, at_destination):
        return edge_sums(at_source, at_destination, adjacency)
    return at_source.index_select(0, adjacency.source) + at_destination.index_select(0, adjacency.destination)


def softmax_over_neighbours(logits: Tensor, adjacency: Adjacency) -> Tensor:
    """Softmax of the logits of the edges that reach the same node, each column for itself.

    Args:
        logits: ``[edges, heads]``.
        adjacency: of the edges.

    Returns:
        ``[edges, heads]``; sums to 1 over the edges into a node.
    """
    destination = adjacency.destination
    with torch.no_grad():  # the shift keeps exp from overflowing and cancels out, so it needs no gradient
        index = destination.unsqueeze(1).expand_as(logits)
        largest = logits.new_zeros(adjacency.num_nodes, logits.shape[1])
        largest = largest.scatter_reduce(0, index, logits, "amax", include_self=False)
    exponentials = (logits - largest.index_select(0, destination)).exp()
    return exponentials / sum_over_neighbours(exponentials, adjacency).index_select(0, destination)


def sum_neighbour_rows(rows: Tensor, adjacency: Adjacency, weights: Tensor | None = None) -> Tensor:
    """Sum of the rows of each node's in-neighbours, each times the weight of its edge.

    Args:
        rows: ``[nodes, width]``.
        adjacency: of the edges.
        weights: ``[edges]``, or None for 1 everywhere.

    Returns:
        ``[nodes, width]``.
    """
    if kernels_serve(rows, weights):
        return neighbour_sum(rows, adjacency, weights)
    if adjacency.padding is not None:
        return aggregation.neighbour_sum(rows, adjacency, weights)
    return F.embedding_bag(
        adjacency.source, rows, adjacency.starts, mode="sum", per_sample_weights=weights, include_last_offset=True
    )


def mean_neighbour_rows(rows: Tensor, adjacency: Adjacency, weights: Tensor | None = None) -> Tensor:
    """:func:`sum_neighbour_rows` over the number of in-neighbours (not over the sum of the weights)."""
    shares = adjacency.shares(rows.dtype)
    return sum_neighbour_rows(rows, adjacency, shares if weights is None else weights * shares)


def max_rectified_neighbour_rows(rows: Tensor, adjacency: Adjacency, weights: Tensor | None = None) -> Tensor:
    """Largest of ``relu(rows)`` of each node's in-neighbours, each times the weight of its edge, entry by entry.

    Of equal ones the first takes the gradient. Where one of them is not a number, the largest is not finite, wherever
    in the neighbourhood it stands: a run that diverged is seen by its loss.

    Args:
        rows: ``[nodes, width]``.
        adjacency: of the edges.
        weights: ``[edges]``, above 0, and of a neighbourhood all of them numbers or none; None for 1 everywhere.

    Returns:
        ``[nodes, width]``.
    """
    if kernels_serve(rows, weights):
        return rectified_neighbour_max(rows, adjacency, weights)
    if adjacency.padding is not None:
        rows, picks = aggregation.rectified_to_compare(rows), adjacency.source
    else:  # the operator passes over what is not a number, unless it comes first
        rows, picks = torch.relu(torch.where(rows.isnan(), torch.inf, rows)), adjacency.source
    if weights is not None:
        rows, picks = weights.unsqueeze(1) * rows.index_select(0, picks), adjacency.each_edge
    return F.embedding_bag(picks, rows, adjacency.starts, mode="max", include_last_offset=True)
