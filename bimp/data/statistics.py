"""What a table says about a dataset, and whether the graphs fit the dataset's task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from bimp.data.errors import DataError
from bimp.data.packed import PackedGraphs
from bimp.data.source import SPLIT_NAMES, SplitName, Splits
from bimp.tasks import EdgeInput, NodeInput, TaskKind, TaskSpec

LABELS_OF: Mapping[TaskKind, str] = {
    "graph_regression": "graph",
    "graph_classification": "graph",
    "node_classification": "node",
    "edge_classification": "edge",
}


@dataclass(frozen=True, kw_only=True)
class DatasetStatistics:
    """A row of the paper's Tables 1 and S2, with what it takes to read it; means are over all graphs of all splits.

    Attributes:
        title: the dataset's name in a table.
        task: what is predicted.
        graphs: number of graphs.
        split_graphs: graphs of each split; of fold 0 where the dataset has folds.
        mean_nodes: nodes of a graph.
        max_nodes: nodes of the largest graph.
        mean_edges: directed edges of a graph: an undirected edge counts twice.
        mean_counted_edges: the same as the paper counts them for this dataset, see ``counted``.
        counted: ``directed`` (each direction) or ``undirected`` (each undirected edge once).
        node_features: what the nodes' inputs are.
        node_dim: their number, or of an embedded integer the number of its values.
        edge_features: what the edges' inputs are; None where they have none.
        edge_dim: as ``node_dim``; None where the edges have no inputs.
        outputs: number of classes; 1 for a regression.
    """

    title: str
    task: TaskKind
    graphs: int
    split_graphs: Mapping[SplitName, int]
    mean_nodes: float
    max_nodes: int
    mean_edges: float
    mean_counted_edges: float
    counted: Literal["directed", "undirected"]
    node_features: str
    node_dim: int
    edge_features: str | None
    edge_dim: int | None
    outputs: int


def statistics_of(graphs: PackedGraphs, splits: Splits, task: TaskSpec) -> DatasetStatistics:
    """Statistics of the graphs of ``task``."""
    count = len(graphs)
    mean_edges = graphs.edge_index.shape[1] / count
    return DatasetStatistics(
        title=task.title,
        task=task.kind,
        graphs=count,
        split_graphs={name: splits[name][0].numel() for name in SPLIT_NAMES},
        mean_nodes=graphs.x.shape[0] / count,
        max_nodes=int(graphs.node_counts.max()),
        mean_edges=mean_edges,
        mean_counted_edges=mean_edges if task.directed else mean_edges / 2,
        counted="directed" if task.directed else "undirected",
        node_features=task.node_features,
        node_dim=task.node_dim,
        edge_features=task.edge_features,
        edge_dim=None if task.edge_features is None else task.edge_dim,
        outputs=task.num_outputs,
    )


def require_fit(graphs: PackedGraphs, task: TaskSpec, place: object) -> None:
    """See that networks of ``task`` can be trained on ``graphs``.

    Args:
        graphs: what a source made.
        task: of the dataset.
        place: the files or the dataset, for the error.

    Raises:
        DataError: inputs of another width or beyond the embedding, labels of another level or beyond the classes, or
            a number that is not finite.
    """
    if graphs.labels != LABELS_OF[task.kind]:
        raise DataError(
            f"{place}: found a label for each {graphs.labels}, expected one for each {LABELS_OF[task.kind]}"
        )
    _require_input(f"{place}: node inputs", graphs.x, task.node_input, task.node_dim)
    if task.edge_input != "ones":
        if graphs.edge_attr is None:
            raise DataError(f"{place}: edge inputs: found none, expected {task.edge_features}")
        _require_input(f"{place}: edge inputs", graphs.edge_attr, task.edge_input, task.edge_dim)
    if task.kind == "graph_regression":
        _require_finite(f"{place}: labels", graphs.y)
    else:
        _require_below(f"{place}: labels", graphs.y, task.num_outputs)


def _require_input(what: str, values: Tensor, kind: NodeInput | EdgeInput, dim: int) -> None:
    if kind == "embedding":
        _require_below(what, values, dim)
        return
    if values.dim() != 2 or values.shape[1] != dim:
        raise DataError(f"{what}: found shape {list(values.shape)}, expected {dim} columns")
    _require_finite(what, values)


def _require_below(what: str, values: Tensor, limit: int) -> None:
    if values.is_floating_point() or values.dim() != 1:
        raise DataError(f"{what}: found {values.dtype} of shape {list(values.shape)}, expected one whole number each")
    if values.numel() and (int(values.min()) < 0 or int(values.max()) >= limit):
        raise DataError(f"{what}: found {int(values.min())} to {int(values.max())}, expected 0 to {limit - 1}")


def _require_finite(what: str, values: Tensor) -> None:
    if not values.is_floating_point():
        raise DataError(f"{what}: found {values.dtype}, expected numbers with a fraction")
    if not bool(torch.isfinite(values).all()):
        raise DataError(f"{what}: found a number that is not finite, expected finite ones")
