"""Nodes in blocks of so few edges that what is worked out for a block's edges stays in a core's cache."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

BLOCK_EDGES = 8192
"""Edges of a block: a few rows for each fit into a core's cache, and a block is worth the calls that it takes."""


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive nodes and all edges into them.

    Attributes:
        nodes, edges: which rows of the batch they are.
        source, destination: u and v of each edge, ``[edges of the block]``.
        starts: where the edges into each node begin, counted within the block, and where the last ones end.
        places: 0 to the number of edges of the block, less one.
    """

    nodes: slice
    edges: slice
    source: Tensor
    destination: Tensor
    starts: Tensor
    places: Tensor


def blocks_of(source: Tensor, destination: Tensor, starts: Tensor) -> tuple[Block, ...]:
    """All nodes in blocks of about ``BLOCK_EDGES`` edges, none of them empty of nodes.

    Args:
        source: u of each edge, ``[edges]``.
        destination: v of each edge, ``[edges]``, ascending.
        starts: ``[nodes + 1]``: the edges into node v are ``starts[v]`` to ``starts[v + 1] - 1``.
    """
    num_nodes, num_edges = len(starts) - 1, len(source)
    multiples = torch.tensor(range(BLOCK_EDGES, num_edges, BLOCK_EDGES), device=starts.device)
    inner = torch.searchsorted(starts, multiples, right=True).tolist()
    bounds = sorted({0, *(node for node in inner if node < num_nodes), num_nodes})
    ends = starts[bounds].tolist()
    places = torch.arange(max((last - first for first, last in pairwise(ends)), default=0), device=starts.device)
    return tuple(
        Block(
            nodes=slice(first_node, end_node),
            edges=slice(first_edge, end_edge),
            source=source[first_edge:end_edge],
            destination=destination[first_edge:end_edge],
            starts=starts[first_node : end_node + 1] - first_edge,
            places=places[: end_edge - first_edge],
        )
        for (first_node, end_node), (first_edge, end_edge) in zip(pairwise(bounds), pairwise(ends), strict=True)
    )
