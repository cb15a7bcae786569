"""From the node rows of the last layer to the scores of the task."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bimp.config import ConfigError, ModelConfig, Readout
from bimp.data.batch import GraphBatch
from bimp.kernels.choice import kernels_serve
from bimp.kernels.edge_scores import edge_scores
from bimp.kernels.linear import Linear, linear
from bimp.neighbourhood import sum_along_edges
from bimp.padded import aggregation
from bimp.tasks import TaskSpec


def read_out(rows: Tensor, batch: GraphBatch, readout: Readout) -> Tensor:
    """One row for each real graph out of its nodes' (equation 4 for the mean): ``[graphs, width]``."""
    if readout != "max" and batch.padding is not None:
        summed = aggregation.sum_of_graphs(rows, batch)
        counts = batch.ptr.diff()[: batch.num_graphs]
        return summed if readout == "sum" else summed / counts.clamp(min=1).unsqueeze(1)
    each_row = torch.arange(batch.num_nodes, device=rows.device)
    of_graphs = F.embedding_bag(each_row, rows, batch.ptr, mode=readout, include_last_offset=True)
    return of_graphs if batch.padding is None else of_graphs[:-1]


class Head(nn.Module):
    """Readout, then one or three linear layers (equations 2, 3).

    Node rows are scored as they are, edges by the rows of their source and destination side by side, graphs by their
    readout. ``mlp`` halves the width twice, with ReLU between, as the paper's parameter counts need; ``linear`` is
    the single layer that the paper's text describes.

    Args:
        model: its width, head and readout.
        task: what is scored, and the number of scores.

    Raises:
        ConfigError: the network is too narrow to be halved twice.
    """

    def __init__(self, model: ModelConfig, task: TaskSpec) -> None:
        super().__init__()
        smallest = smallest_hidden_dim(model, task)
        if model.out_dim is None and model.hidden_dim < smallest:
            raise ConfigError(
                "hidden_dim", f"found {model.hidden_dim}, expected {smallest} or more: the mlp head halves rows twice"
            )
        least = _smallest_last_dim(model, task)
        if model.last_dim < least:
            raise ConfigError(
                "out_dim", f"found {model.out_dim}, expected {least} or more: the mlp head halves rows twice"
            )
        self.kind = task.kind
        self.readout = model.readout
        width = model.last_dim * _rows_scored_together(task)
        if model.head == "linear":
            self.scorer = nn.Sequential(Linear(width, task.num_outputs))
        else:
            self.scorer = nn.Sequential(
                Linear(width, width // 2),
                nn.ReLU(),
                Linear(width // 2, width // 4),
                nn.ReLU(),
                Linear(width // 4, task.num_outputs),
            )

    def forward(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """Scores of the node rows ``h``: ``[graphs]`` for a regression, else ``[items, classes]``."""
        scores: Tensor
        if self.kind == "edge_classification":
            scores = self._scores_of_edges(h, batch)
        else:
            rows = h if self.kind == "node_classification" else read_out(h, batch, self.readout)
            scores = self.scorer(rows)
        return scores.squeeze(1) if self.kind == "graph_regression" else scores

    def _scores_of_edges(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """The scorer on both ends' rows side by side, whose first map is a map of each end and a sum.

        Mapping the nodes before taking them to the edges spares a product there.
        """
        first, *others = self.scorer
        assert isinstance(first, Linear)
        of_source, of_destination = first.weight.chunk(2, dim=1)
        if others and kernels_serve(h, first.weight):
            _, second, _, third = others
            assert isinstance(second, Linear)
            assert isinstance(third, Linear)
            bias = torch.cat([torch.zeros_like(first.bias), first.bias])
            mapped = linear(h, torch.cat([of_source, of_destination]), bias)
            return edge_scores(mapped, batch.adjacency, second.weight, second.bias, third.weight, third.bias)
        at_destination = linear(h, of_destination, first.bias)
        scores: Tensor = self.scorer[1:](sum_along_edges(linear(h, of_source, None), at_destination, batch.adjacency))
        return scores


def smallest_hidden_dim(model: ModelConfig, task: TaskSpec) -> int:
    """The smallest ``hidden_dim`` that leaves every layer of the head one unit; the model's own is not looked at."""
    if model.out_dim is not None:
        return 1
    heads = 1 if model.last_width == "hidden_dim" else model.heads
    return -(-_smallest_last_dim(model, task) // heads)


def _smallest_last_dim(model: ModelConfig, task: TaskSpec) -> int:
    return 1 if model.head == "linear" else -(-4 // _rows_scored_together(task))


def _rows_scored_together(task: TaskSpec) -> int:
    return 2 if task.kind == "edge_classification" else 1
