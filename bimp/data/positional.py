"""Laplacian positional encodings: a node's entries in the smoothest eigenvectors of its graph.

Computed once, when a dataset is prepared. An eigenvector is as good as its negative, so training flips signs at random
(:func:`flip_signs`); evaluation takes them as they are stored.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from bimp.data.batch import GraphBatch
from bimp.data.packed import PackedGraphs

EQUAL_WITHIN = 1e-6
"""Entries whose sizes differ by less than this, relative to the largest, count as equal when the sign is chosen."""


def laplacian_eigenvectors(edge_index: NDArray[np.integer], nodes: int, count: int) -> NDArray[np.float32]:
    """Eigenvectors 2 to ``count`` + 1 of the symmetric normalised Laplacian, by ascending eigenvalue.

    The Laplacian is I - D^-1/2 A D^-1/2; a node without edges has a row of I. A directed graph counts as
    (A + A^T) / 2, with its row sums as D. The sign is such that the largest entry (by size; of equal ones the first)
    is positive.

    Args:
        edge_index: ``[2, edges]``, source and destination of each edge.
        nodes: number of nodes, 1 or more.
        count: how many eigenvectors.

    Returns:
        ``[nodes, count]``; a graph of fewer than ``count`` + 1 nodes has zeros in the columns that it lacks.
    """
    adjacency = np.zeros((nodes, nodes))
    np.add.at(adjacency, (edge_index[0], edge_index[1]), 0.5)
    np.add.at(adjacency, (edge_index[1], edge_index[0]), 0.5)
    degree = adjacency.sum(axis=1)
    scale = np.divide(1.0, np.sqrt(degree), out=np.zeros(nodes), where=degree > 0)
    _, vectors = np.linalg.eigh(np.eye(nodes) - scale[:, None] * adjacency * scale)
    chosen = vectors[:, 1 : count + 1]
    size = np.abs(chosen)
    first_largest = (size >= size.max(axis=0, initial=0.0) * (1 - EQUAL_WITHIN)).argmax(axis=0)
    encodings = np.zeros((nodes, count), dtype=np.float32)
    encodings[:, : chosen.shape[1]] = chosen * np.sign(chosen[first_largest, np.arange(chosen.shape[1])])
    return encodings


def positional_encodings(graphs: PackedGraphs, count: int) -> torch.Tensor:
    """The encodings of every node of every graph, ``[nodes, count]`` float32."""
    encodings = np.empty((graphs.x.shape[0], count), dtype=np.float32)
    node_offsets, edge_offsets = graphs.node_offsets.tolist(), graphs.edge_offsets.tolist()
    for number in range(len(graphs)):
        first, last = node_offsets[number : number + 2]
        edges = graphs.edge_index[:, edge_offsets[number] : edge_offsets[number + 1]]
        if last > first:
            encodings[first:last] = laplacian_eigenvectors(edges.numpy(), last - first, count)
    return torch.from_numpy(encodings)


def flip_signs(batch: GraphBatch, generator: torch.Generator, count: int | None = None) -> GraphBatch:
    """The batch with the sign of each eigenvector drawn anew, one draw for all of its nodes.

    Args:
        batch: of a dataset prepared with positional encodings; one without is given back as it is.
        generator: on the CPU, so that the draw is the same whatever the batch's device.
        count: of the eigenvectors, the first so many, which a network reads; the others keep their signs. So the draws
            do not hang on how many the dataset was prepared with. None: all.
    """
    if batch.pos_enc is None:
        return batch
    signs = torch.ones(batch.pos_enc.shape[1], dtype=torch.int64)
    signs[:count] = draw_signs(signs[:count].numel(), generator)
    return replace(batch, pos_enc=batch.pos_enc * signs.to(batch.pos_enc, non_blocking=True))


def draw_signs(count: int, generator: torch.Generator) -> torch.Tensor:
    """``[count]``: 1 or -1 for each encoding of a batch."""
    return torch.randint(2, (count,), generator=generator) * 2 - 1
