"""Sums and dot products along the edges that never write a row for each edge."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from bimp.adjacency import Adjacency

with warnings.catch_warnings():
    # The first sparse tensor of a process is greeted with a warning that says nothing about these uses.
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 0], [], torch.empty(0), (1, 1), check_invariants=False)


def sum_of_runs(rows: Tensor, picks: Tensor, starts: Tensor, weights: Tensor | None = None) -> Tensor:
    """Sum of ``weights * rows[picks]`` over each run of ``picks``: ``[runs, width]``, without a gradient.

    Args:
        rows: ``[rows, width]``.
        picks: which row stands at each place.
        starts: ``[runs + 1]``, where the runs of places begin and end.
        weights: the factor at each place; None: 1.
    """
    summed, *_ = torch.embedding_bag(rows, picks, starts, mode=0, per_sample_weights=weights, include_last_offset=True)
    return summed


def sum_of_both_ends(mapped: Tensor, rows_a_node: int, adjacency: Adjacency, edges: slice) -> Tensor:
    """The first row of u plus the second of v, for each edge u -> v of a block: ``[edges of the block, width]``.

    Args:
        mapped: ``[nodes, rows_a_node * width]``, contiguous: the rows of a node side by side.
        rows_a_node: two or more.
        adjacency: of all edges.
        edges: which of them.
    """
    pairs = adjacency.rows_of_both_ends(rows_a_node)[2 * edges.start : 2 * edges.stop]
    rows = mapped.view(-1, mapped.shape[1] // rows_a_node)
    return sum_of_runs(rows, pairs, adjacency.pair_starts[: pairs.numel() // 2 + 1])


def sum_from_sources(rows: Tensor, adjacency: Adjacency, weights: Tensor | None = None) -> Tensor:
    """For each node the sum of its in-neighbours' rows, each times the weight of its edge."""
    return sum_of_runs(rows, adjacency.source, adjacency.starts, weights)


def sum_from_destinations(rows: Tensor, adjacency: Adjacency, weights: Tensor | None = None) -> Tensor:
    """For each node the sum of its out-neighbours' rows, each times the weight of its edge."""
    in_order = None if weights is None else adjacency.in_order_of_source(weights)
    return sum_of_runs(rows, adjacency.destination_by_source, adjacency.source_starts, in_order)


def dots_along_edges(at_destination: Tensor, at_source: Tensor, adjacency: Adjacency) -> Tensor:
    """Dot product of ``at_destination[v]`` and ``at_source[u]`` for each edge u -> v, ``[edges]``."""
    return dots_of_runs(at_destination, at_source, adjacency.source, adjacency.starts)


def dots_of_runs(rows: Tensor, others: Tensor, picks: Tensor, starts: Tensor) -> Tensor:
    """Dot product of row r and ``others[p]`` for each place p of run r, ``[places]``, without a gradient.

    Args:
        rows: ``[runs, width]``.
        others: ``[others, width]``.
        picks: which of the others stands at each place.
        starts: ``[runs + 1]``, where the runs of places begin and end.
    """
    if picks.numel() > len(rows) * len(others):  # copies of edges beyond what a sparse matrix may hold
        row = torch.arange(len(rows)).repeat_interleave(starts.diff())
        return (rows.index_select(0, row) * others.index_select(0, picks)).sum(1)
    size = (len(rows), len(others))
    pattern = torch.sparse_csr_tensor(starts, picks, rows.new_zeros(picks.numel()), size, check_invariants=False)
    dots: Tensor = torch.sparse.sampled_addmm(pattern, rows, others.t(), beta=0.0).values()
    return dots


def sparse(values: Tensor, adjacency: Adjacency) -> Tensor:
    """The matrix whose row v holds ``values`` of the edges into v, one entry an edge."""
    size = (adjacency.num_nodes, adjacency.num_nodes)
    return torch.sparse_csr_tensor(adjacency.starts, adjacency.source, values, size, check_invariants=False)
