"""The same vanilla networks written the usual way with PyTorch Geometric: MessagePassing layers on its own batches.

They hold the same parameters as :class:`bimp.network.Network`, so that their scores and gradients can be compared
with ours before anything is timed.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import MessagePassing, global_mean_pool
from torch_geometric.utils import scatter, softmax

from bimp.config import ModelConfig
from bimp.data import PackedGraphs
from bimp.layers.gated_gcn import EPSILON
from bimp.network import Network
from bimp.semantics import ATTENTION_SLOPE
from bimp.tasks import TaskSpec


class UsualNetwork(nn.Module):
    """A vanilla network with the weights of ``ours``.

    Raises:
        ValueError: ``ours`` is gated, or its readout is not the mean.
    """

    def __init__(self, ours: Network) -> None:
        super().__init__()
        model, task = ours.model, ours.task
        if model.gated_layers or model.readout != "mean":
            raise ValueError(
                f"network: found {model.placement} placement and {model.readout} readout, "
                "expected a vanilla network with a mean readout"
            )
        self.kind = task.kind
        self.node_embedding = _embedding(task.node_input, task.node_dim, model.row_dim)
        if model.backbone == "gated_gcn":
            self.ones_dim = task.edge_dim
            self.edge_embedding = _embedding(task.edge_input, task.edge_dim, model.row_dim)
        self.layers = nn.ModuleList(_layer(model, position) for position in range(1, model.layers + 1))
        self.scorer = _scorer(model, task)
        self.load_state_dict({renamed(name): tensor.clone() for name, tensor in ours.state_dict().items()})

    def forward(self, batch: Batch) -> Tensor:
        """Scores of the graphs, nodes or edges of ``batch``."""
        h: Tensor = self.node_embedding(batch.x)
        if hasattr(self, "edge_embedding"):
            edge_attr = batch.edge_attr
            if edge_attr is None:
                edge_attr = h.new_ones(batch.num_edges, self.ones_dim)
            e_hat = self.edge_embedding(edge_attr)
            for layer in self.layers:
                h, e_hat = layer(h, e_hat, batch.edge_index)
        else:
            for layer in self.layers:
                h = layer(h, batch.edge_index)
        scores: Tensor = self.scorer(self._rows_to_score(h, batch))
        return scores.squeeze(1) if self.kind == "graph_regression" else scores

    def _rows_to_score(self, h: Tensor, batch: Batch) -> Tensor:
        if self.kind == "node_classification":
            return h
        if self.kind == "edge_classification":
            source, destination = batch.edge_index
            return torch.cat([h[source], h[destination]], dim=1)
        pooled: Tensor = global_mean_pool(h, batch.batch)
        return pooled


def renamed(parameter: str) -> str:
    """The name here of a parameter of ours: MessagePassing keeps ``update`` for itself."""
    return parameter.replace(".update.", ".linear.").replace("head.scorer.", "scorer.")


def separate_graphs(graphs: PackedGraphs, indices: Tensor) -> list[Data]:
    """The packed graphs ``indices`` as PyTorch Geometric keeps them, one object each."""
    gathered = [graphs.gather(index.reshape(1)) for index in indices]
    return [Data(x=graph.x, edge_index=graph.edge_index, edge_attr=graph.edge_attr, y=graph.y) for graph in gathered]


class UsualGCN(MessagePassing):  # type: ignore[misc]
    """Equations S1 and S2 without a gate."""

    def __init__(self, row_dim: int) -> None:
        super().__init__(aggr="mean")
        self.linear = nn.Linear(row_dim, row_dim)
        self.norm = nn.BatchNorm1d(row_dim)

    def forward(self, h: Tensor, edge_index: Tensor) -> Tensor:
        """The next node rows."""
        aggregate: Tensor = self.propagate(edge_index, h=h)
        return h + F.relu(self.norm(self.linear(aggregate)))

    def message(self, h_j: Tensor) -> Tensor:
        """What an edge carries: its source's row."""
        return h_j


class UsualGraphSAGE(MessagePassing):  # type: ignore[misc]
    """Equations S3 and S4 without a gate."""

    def __init__(self, row_dim: int) -> None:
        super().__init__(aggr="max")
        self.pool = nn.Linear(row_dim, row_dim)
        self.linear = nn.Linear(2 * row_dim, row_dim)
        self.norm = nn.BatchNorm1d(row_dim)

    def forward(self, h: Tensor, edge_index: Tensor) -> Tensor:
        """The next node rows."""
        largest = self.propagate(edge_index, pooled=F.relu(self.pool(h)))
        updated = F.normalize(self.linear(torch.cat([h, largest], dim=1)), dim=1)
        normalised: Tensor = self.norm(F.relu(updated))
        return h + normalised

    def message(self, pooled_j: Tensor) -> Tensor:
        """What an edge carries: its source's row."""
        return pooled_j


class UsualGAT(MessagePassing):  # type: ignore[misc]
    """Equations S5 to S8 without a gate."""

    def __init__(self, row_dim: int, heads: int) -> None:
        super().__init__(aggr="add", node_dim=0)
        self.heads = heads
        self.projection = nn.Linear(row_dim, row_dim, bias=False)
        self.attention_source = nn.Parameter(torch.empty(heads, row_dim // heads))
        self.attention_destination = nn.Parameter(torch.empty(heads, row_dim // heads))
        self.norm = nn.BatchNorm1d(row_dim)

    def forward(self, h: Tensor, edge_index: Tensor) -> Tensor:
        """The next node rows."""
        projected = self.projection(h).view(h.shape[0], self.heads, -1)
        source = (projected * self.attention_source).sum(dim=-1)
        destination = (projected * self.attention_destination).sum(dim=-1)
        aggregate = self.propagate(edge_index, projected=projected, source=source, destination=destination)
        return h + F.elu(self.norm(aggregate.flatten(1)))

    def message(
        self, projected_j: Tensor, source_j: Tensor, destination_i: Tensor, index: Tensor, size_i: int | None
    ) -> Tensor:
        """What an edge carries: its source's projection times its attention."""
        logits = F.leaky_relu(source_j + destination_i, ATTENTION_SLOPE)
        attention: Tensor = softmax(logits, index, num_nodes=size_i)
        return attention.unsqueeze(-1) * projected_j


class UsualGatedGCN(MessagePassing):  # type: ignore[misc]
    """Equations S9 to S12 without a gate."""

    def __init__(self, row_dim: int) -> None:
        super().__init__(aggr="add")
        self.edge_source = nn.Linear(row_dim, row_dim)
        self.edge_destination = nn.Linear(row_dim, row_dim)
        self.edge_self = nn.Linear(row_dim, row_dim)
        self.node_self = nn.Linear(row_dim, row_dim)
        self.node_source = nn.Linear(row_dim, row_dim)
        self.edge_norm = nn.BatchNorm1d(row_dim)
        self.node_norm = nn.BatchNorm1d(row_dim)

    def forward(self, h: Tensor, e_hat: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        """The next node rows and edge rows."""
        mixed = self.edge_updater(
            edge_index,
            source=self.edge_source(h),
            destination=self.edge_destination(h),
            edge=self.edge_self(e_hat),
        )
        e_hat = e_hat + F.relu(self.edge_norm(mixed))
        aggregate = self.propagate(edge_index, rows=self.node_source(h), gate=torch.sigmoid(e_hat))
        return h + F.relu(self.node_norm(self.node_self(h) + aggregate)), e_hat

    def edge_update(self, source_j: Tensor, destination_i: Tensor, edge: Tensor) -> Tensor:
        """An edge's new row before it is normalised."""
        return source_j + destination_i + edge

    def message(self, rows_j: Tensor, gate: Tensor) -> Tensor:
        """What an edge carries: its source's row times its gate."""
        return gate * rows_j

    def aggregate(self, inputs: Tensor, gate: Tensor, index: Tensor, dim_size: int | None) -> Tensor:
        """Sum of the messages over the sum of the gates."""
        gates: Tensor = scatter(gate, index, dim=0, dim_size=dim_size, reduce="sum")
        messages: Tensor = scatter(inputs, index, dim=0, dim_size=dim_size, reduce="sum")
        return messages / (gates + EPSILON)


def _layer(model: ModelConfig, position: int) -> nn.Module:
    if model.backbone == "gcn":
        return UsualGCN(model.row_dim)
    if model.backbone == "graphsage":
        return UsualGraphSAGE(model.row_dim)
    if model.backbone == "gat":
        return UsualGAT(model.row_dim, heads=1 if position == model.layers else model.heads)
    return UsualGatedGCN(model.row_dim)


def _embedding(kind: str, input_dim: int, row_dim: int) -> nn.Module:
    return nn.Embedding(input_dim, row_dim) if kind == "embedding" else nn.Linear(input_dim, row_dim)


def _scorer(model: ModelConfig, task: TaskSpec) -> nn.Sequential:
    width = model.row_dim * (2 if task.kind == "edge_classification" else 1)
    return nn.Sequential(
        nn.Linear(width, width // 2),
        nn.ReLU(),
        nn.Linear(width // 2, width // 4),
        nn.ReLU(),
        nn.Linear(width // 4, task.num_outputs),
    )
