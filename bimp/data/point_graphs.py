"""Graphs of points in the plane: whom a point is joined to, and how many such graphs are packed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from bimp.data.packed import LabelLevel, PackedGraphs

PointGraph = tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]
"""x ``[nodes, columns]``, edge_index ``[2, edges]``, edge_attr ``[edges, 1]``."""

WEIGHT_DECIMALS = 6


def heaviest_neighbours(
    points: NDArray[np.float64] | NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Each point to its ``count`` heaviest neighbours.

    Two points at distance d weigh exp(-(d / s_i)^2) as seen from i, where s_i is the mean distance from i to its
    ``count`` nearest, and the mean of the two views together. Weights do not depend on the unit of length.

    Args:
        points: ``[points, 2]``.
        count: edges out of each point; all others where there are fewer.

    Returns:
        edge_index ``[2, edges]`` (the point is the source u, its neighbour the destination v) and weight
        ``[edges, 1]``. Between equal weights the neighbour of the smaller number is taken.
    """
    neighbours = min(count, len(points) - 1)
    if neighbours < 1:
        return np.empty((2, 0), dtype=np.int64), np.empty((0, 1), dtype=np.float32)
    distance = distances(points)
    np.fill_diagonal(distance, np.inf)
    mean_distance = np.sort(distance, axis=1)[:, :neighbours].mean(axis=1)
    # Points may share a place (concentric superpixels do); where all do, each weighs 1.
    mean_distance = np.maximum(mean_distance, np.finfo(np.float64).tiny)
    seen = np.exp(-((distance / mean_distance[:, None]) ** 2))
    # exp differs in its last bits between processors; rounded, ties and checksums are the same everywhere.
    weight = np.round((seen + seen.T) / 2, WEIGHT_DECIMALS)
    np.fill_diagonal(weight, -1.0)
    edge_index = _edges(np.argsort(-weight, axis=1, kind="stable")[:, :neighbours])
    return edge_index, weight[edge_index[0], edge_index[1]].astype(np.float32)[:, None]


def nearest_neighbours(points: NDArray[np.float64], count: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Each point to its ``count`` nearest neighbours.

    Args:
        points: ``[points, 2]``.
        count: edges out of each point; all others where there are fewer.

    Returns:
        edge_index ``[2, edges]`` (the point is the source u, its neighbour the destination v) and distance
        ``[edges, 1]``. Between equal distances the neighbour of the smaller number is taken.
    """
    neighbours = min(count, len(points) - 1)
    distance = distances(points)
    away = distance.copy()
    np.fill_diagonal(away, np.inf)
    edge_index = _edges(np.argsort(away, axis=1, kind="stable")[:, :neighbours])
    return edge_index, distance[edge_index[0], edge_index[1]].astype(np.float32)[:, None]


def pack_point_graphs(graphs: Sequence[PointGraph], y: NDArray[np.integer], labels: LabelLevel) -> PackedGraphs:
    """The graphs one behind the other, with their labels in the same order."""
    most_nodes = max(len(x) for x, _, _ in graphs)
    small = np.int16 if most_nodes <= np.iinfo(np.int16).max else np.int64
    return PackedGraphs.from_arrays(
        node_counts=torch.tensor([len(x) for x, _, _ in graphs]),
        edge_counts=torch.tensor([len(edge_attr) for _, _, edge_attr in graphs]),
        x=torch.from_numpy(np.concatenate([x for x, _, _ in graphs])),
        edge_index=torch.from_numpy(np.concatenate([each.astype(small) for _, each, _ in graphs], axis=1)),
        edge_attr=torch.from_numpy(np.concatenate([edge_attr for _, _, edge_attr in graphs])),
        y=torch.from_numpy(y),
        labels=labels,
    )


def distances(points: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.float64]:
    """Euclidean distances of all pairs, ``[points, points]``."""
    away: NDArray[np.float64] = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=-1), dtype=np.float64)
    return away


def _edges(chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    source = np.repeat(np.arange(len(chosen)), chosen.shape[1])
    return np.stack([source, chosen.ravel()])
