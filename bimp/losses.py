"""What a network is trained on: the unsupervised loss of the assignments and the loss of the task."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bimp.data.batch import GraphBatch
from bimp.neighbourhood import sum_neighbour_rows
from bimp.padding import UNLABELLED, labelled
from bimp.semantics import CutAdjacency, CutScope
from bimp.tasks import TaskKind


def min_cut_loss(
    soft_assignment: Tensor, batch: GraphBatch, scope: CutScope = "graph", adjacency: CutAdjacency = "normalised"
) -> Tensor:
    """Spectral clustering loss L_c (first term of equation 7), ``-Tr(S^T A~ S) / Tr(S^T D~ S)``.

    A graph without edges contributes 0. Copies of an edge count as its weight.

    Args:
        soft_assignment: S, ``[nodes, K]``.
        batch: its graphs.
        scope: each ``graph`` alone, then the mean over them; or the whole ``batch`` as one graph.
        adjacency: ``normalised`` A~ = D^-1/2 A D^-1/2, with its row sums as D~; a directed graph counts as
            (A + A^T) / 2, which keeps the loss within -1 and 0. Or ``raw``: A itself, with out-degrees as D~.

    Returns:
        A scalar.
    """
    if batch.padding is not None and scope == "batch":
        soft_assignment = batch.padding.nodes.only(soft_assignment)
    cut, volume = cut_and_volume(soft_assignment, batch, adjacency)
    if scope == "batch":
        total = volume.sum()
        return -cut.sum() / torch.where(total > 0, total, 1)
    cut_of_graph = _sum_over_graphs(cut, batch)
    volume_of_graph = _sum_over_graphs(volume, batch)
    return -(cut_of_graph / torch.where(volume_of_graph > 0, volume_of_graph, 1)).mean()


def cut_and_volume(soft_assignment: Tensor, batch: GraphBatch, adjacency: CutAdjacency) -> tuple[Tensor, Tensor]:
    """What each node adds to ``Tr(S^T A~ S)`` and to ``Tr(S^T D~ S)``, ``[nodes]`` each; see :func:`min_cut_loss`."""
    dtype = soft_assignment.dtype
    weights, degree = (None, batch.adjacency.out_degree) if adjacency == "raw" else batch.adjacency.normalised(dtype)
    cut = (soft_assignment * sum_neighbour_rows(soft_assignment, batch.adjacency, weights)).sum(1)
    return cut, degree * soft_assignment.square().sum(1)


def orthogonality_loss(
    soft_assignment: Tensor, batch: GraphBatch, scope: CutScope = "graph", epsilon: float = 0.0
) -> Tensor:
    """Orthogonality loss L_o (second term of equation 7), ``|| S^T S / ||S^T S||_F - I / sqrt(K) ||_F``.

    It is 0 where the clusters are of one size and do not overlap.

    Args:
        soft_assignment: S, ``[nodes, K]``.
        batch: its graphs, each of one node or more.
        scope: each ``graph`` alone, then the mean over them; or the whole ``batch`` as one graph.
        epsilon: added to every entry of S^T S, in the norm that it is divided by alone.

    Returns:
        A scalar.
    """
    if scope == "graph":
        padded = _pad_by_graph(soft_assignment, batch)
    else:
        real = soft_assignment if batch.padding is None else batch.padding.nodes.only(soft_assignment)
        padded = real.unsqueeze(0)
    return distance_from_orthogonal(padded, epsilon).mean()


def distance_from_orthogonal(padded: Tensor, epsilon: float = 0.0) -> Tensor:
    """The orthogonality loss of each of several assignments, ``[assignments]``; see :func:`orthogonality_loss`.

    Args:
        padded: ``[assignments, most nodes, K]``, each with zeros behind its rows, and not of zeros alone.
        epsilon: as there.
    """
    num_clusters = padded.shape[2]
    gram = torch.bmm(padded.transpose(1, 2), padded)
    direction = gram / torch.linalg.vector_norm(gram + epsilon if epsilon > 0 else gram, dim=(1, 2), keepdim=True)
    target = torch.eye(num_clusters, dtype=gram.dtype, device=gram.device) / num_clusters**0.5
    distance: Tensor = torch.linalg.vector_norm(direction - target, dim=(1, 2))
    return distance


def supervised_loss(kind: TaskKind, scores: Tensor, y: Tensor) -> Tensor:
    """The loss of the task: L1, cross entropy, or class-weighted cross entropy for ``node_classification``.

    Args:
        kind: of the task.
        scores: ``[graphs]`` for a regression, else ``[items, classes]``.
        y: ``[graphs]`` float for a regression, else ``[items]`` int64; items of a negative label are left out.

    Returns:
        A scalar, the mean over the items; 0 where there are none, as edges in a batch of graphs without.

    Raises:
        ValueError: scores and labels of a regression have different shapes, which would be spread over each other.
    """
    if y.shape[0] == 0:
        return scores.sum() * 0
    if kind == "graph_regression":
        if scores.shape != y.shape:
            raise ValueError(f"y: found {list(y.shape)}, expected {list(scores.shape)}, one label a graph")
        return F.l1_loss(scores, y)
    if kind == "node_classification":
        return _class_weighted_cross_entropy(scores, y)
    return F.cross_entropy(scores, y, ignore_index=UNLABELLED)


def _class_weighted_cross_entropy(scores: Tensor, y: Tensor) -> Tensor:
    """Cross entropy with weight (V - n_c) / V for each class c present among the V labels; 0 if only one is."""
    present = labelled(y).to(scores.dtype)
    classes = y.clamp(min=0)
    counts = scores.new_zeros(scores.shape[1]).index_add_(0, classes, present)
    labels = present.sum()
    class_weights = torch.where(counts > 0, (labels - counts) / labels, 0)
    total_weight = (class_weights.index_select(0, classes) * present).sum()
    loss = F.cross_entropy(scores, y, weight=class_weights, reduction="sum", ignore_index=UNLABELLED)
    return loss / torch.where(total_weight > 0, total_weight, 1)


def _sum_over_graphs(values: Tensor, batch: GraphBatch) -> Tensor:
    summed = values.new_zeros(batch.ptr.numel() - 1).index_add(0, batch.batch, values)
    return summed if batch.padding is None else summed[:-1]


def _pad_by_graph(rows: Tensor, batch: GraphBatch) -> Tensor:
    """``[graphs, most nodes, width]``: the rows of each real graph, then zeros."""
    most_nodes = int(batch.ptr.diff().max()) if batch.most_nodes is None else batch.most_nodes
    position = torch.arange(batch.num_nodes, device=rows.device) - batch.ptr.index_select(0, batch.batch)
    places = batch.batch * most_nodes + position
    filled = batch.num_graphs * most_nodes
    if batch.padding is None:
        padded = rows.new_zeros(filled, rows.shape[1]).index_copy(0, places, rows)
    else:  # one more row takes what is not real
        places = torch.where(batch.padding.nodes.mask, places, filled)
        padded = rows.new_zeros(filled + 1, rows.shape[1]).index_copy(0, places, rows)[:-1]
    return padded.view(batch.num_graphs, most_nodes, -1)
