"""The whole network: embeddings, a stack of layers of which some are gated, readout and head."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bimp.config import ModelConfig
from bimp.data.batch import GraphBatch
from bimp.gradient import BilateralGate, GateOutput
from bimp.head import Head
from bimp.layers.gat import GATLayer
from bimp.layers.gated_gcn import GatedGCNLayer
from bimp.layers.gcn import GCNLayer
from bimp.layers.graphsage import GraphSAGELayer
from bimp.tasks import EdgeInput, NodeInput, TaskSpec


@dataclass(frozen=True)
class NetworkOutput:
    """What a network says about a batch.

    Attributes:
        scores: ``[graphs]`` for a regression; else ``[items, classes]``, items being graphs, nodes or edges.
        unsupervised_loss: L_u (equation 6), mean over the gated layers; None for a vanilla network.
        gates: what the gates gave, in the order of the gated layers.
    """

    scores: Tensor
    unsupervised_loss: Tensor | None
    gates: tuple[GateOutput, ...]


class Network(nn.Module):
    """A network of one backbone, its gates at ``model.gated_layers`` (equations 1 to 11, S1 to S12).

    Each gate sees the rows h^l that enter its layer. All layers are ``model.row_dim`` wide.

    Args:
        model: backbone, depth, width, gates, readout and head.
        task: inputs, what is scored and the number of scores.

    Raises:
        ConfigError: the network is too narrow for its head.
    """

    def __init__(self, model: ModelConfig, task: TaskSpec) -> None:
        super().__init__()
        self.model = model
        self.task = task
        self.node_embedding = _embedding(task.node_input, task.node_dim, model.row_dim)
        if model.backbone == "gated_gcn":
            self.edge_embedding = _embedding(task.edge_input, task.edge_dim, model.row_dim)
        self.layers = nn.ModuleList(_layer(model, position) for position in range(1, model.layers + 1))
        self.gates = nn.ModuleDict({str(position): _gate(model) for position in model.gated_layers})
        self.head = Head(model, task)

    def forward(self, batch: GraphBatch) -> NetworkOutput:
        """Score the graphs of ``batch``.

        Raises:
            ValueError: the edges are not sorted by destination (looked at in main memory only, since on an
                accelerator the look would wait for the device), or edge inputs are missing.
        """
        if batch.edge_index.device.type == "cpu" and bool((batch.edge_index[1].diff() < 0).any()):
            raise ValueError("batch.edge_index: found edges out of order, expected them sorted by destination (row 1)")
        h: Tensor = self.node_embedding(batch.x)
        e_hat = self._edge_rows(batch) if self.model.backbone == "gated_gcn" else None
        gates: list[GateOutput] = []
        for position, layer in enumerate(self.layers, start=1):
            beta_hat = None
            if position in self.model.gated_layers:
                gates.append(self.gates[str(position)](h, batch))
                beta_hat = gates[-1].beta_hat
            if e_hat is None:
                h = layer(h, batch.edge_index, beta_hat)
            else:
                h, e_hat = layer(h, e_hat, batch.edge_index, beta_hat)
        return NetworkOutput(
            scores=self.head(h, batch),
            unsupervised_loss=torch.stack([gate.unsupervised_loss for gate in gates]).mean() if gates else None,
            gates=tuple(gates),
        )

    def _edge_rows(self, batch: GraphBatch) -> Tensor:
        if self.task.edge_input == "ones":
            parameter = next(self.edge_embedding.parameters())
            row: Tensor = self.edge_embedding(parameter.new_ones(1, self.task.edge_dim))
            return row.expand(batch.num_edges, -1)
        if batch.edge_attr is None:
            raise ValueError(f"batch.edge_attr: found None, expected the edge inputs of {self.task.dataset}")
        rows: Tensor = self.edge_embedding(batch.edge_attr)
        return rows


def _embedding(kind: NodeInput | EdgeInput, input_dim: int, row_dim: int) -> nn.Module:
    return nn.Embedding(input_dim, row_dim) if kind == "embedding" else nn.Linear(input_dim, row_dim)


def _layer(model: ModelConfig, position: int) -> nn.Module:
    if model.backbone == "gcn":
        return GCNLayer(model.row_dim)
    if model.backbone == "graphsage":
        return GraphSAGELayer(model.row_dim)
    if model.backbone == "gat":
        return GATLayer(model.row_dim, heads=1 if position == model.layers else model.heads)
    return GatedGCNLayer(model.row_dim)


def _gate(model: ModelConfig) -> BilateralGate:
    # ModelConfig holds these three wherever a layer is gated; its type cannot say so.
    assert model.num_clusters is not None
    assert model.sigma_m is not None
    assert model.gate is not None
    return BilateralGate(model.row_dim, model.hidden_dim, model.num_clusters, model.sigma_m, model.gate)
