"""The whole network: embeddings, a stack of layers of which some are gated, readout and head."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bimp.config import BACKBONES, ModelConfig
from bimp.data.batch import GraphBatch
from bimp.embedded import Embedded, embedded_from, is_table
from bimp.given_graph import require_graphs, require_inputs, require_sorted_edges
from bimp.gradient import BilateralGate, GateOutput
from bimp.head import Head
from bimp.kernels.linear import Linear
from bimp.layers.gat import GATLayer
from bimp.layers.gated_gcn import GatedGCNLayer
from bimp.layers.gcn import GCNLayer
from bimp.layers.graphsage import GraphSAGELayer
from bimp.layers.own import own_layer
from bimp.padded.aggregation import FEW_NUMBERS, embedded
from bimp.padding import take_note
from bimp.tasks import EdgeInput, NodeInput, TaskSpec


@dataclass(frozen=True)
class NetworkOutput:
    """What a network says about a batch.

    Attributes:
        scores: ``[graphs]`` for a regression; else ``[items, classes]``, items being graphs, nodes or edges.
        unsupervised_loss: L_u (equation 6), mean over the gated layers; None for a vanilla network.
        gates: what the gates gave, in the order of the gated layers.
        rows: the nodes' rows where they were asked for: embedded inputs, then each layer's output; else empty.
    """

    scores: Tensor
    unsupervised_loss: Tensor | None
    gates: tuple[GateOutput, ...]
    rows: tuple[Tensor, ...] = ()


class Network(nn.Module):
    """A network of one backbone, its gates at ``model.gated_layers`` (equations 1 to 11, S1 to S12).

    Each gate sees the rows h^l that enter its layer. All rows are ``model.row_dim`` wide, those after the last layer
    ``model.last_dim``.

    Embeddings, layers, gates and the head are called, so that hooks on them (and on the network) run. The maps and
    normalisations inside a layer, a gate or the head are read: several are taken as one product or within a kernel, and
    hooks on them need not run. A parametrisation of their weights counts (``torch.nn.utils.parametrize``).

    Args:
        model: backbone, depth, width, gates, readout and head.
        task: inputs, what is scored and the number of scores.

    Raises:
        ConfigError: the network is too narrow for its head, or ``model.backbone`` names a layer of the user's own
            that is not imported or does not fit (see :mod:`bimp.layers.own`).
    """

    def __init__(self, model: ModelConfig, task: TaskSpec) -> None:
        super().__init__()
        self.model = model
        self.task = task
        self.node_embedding = _embedding(task.node_input, task.node_dim, model.row_dim)
        if model.pos_enc_dim is not None:
            self.pos_enc_embedding = Linear(model.pos_enc_dim, model.row_dim)
        if model.backbone == "gated_gcn":
            self.ones_dim = _ones_dim(model, task)
            edge_input = task.edge_input if self.ones_dim is None else "ones"
            self.edge_embedding = _embedding(edge_input, self.ones_dim or task.edge_dim, model.row_dim)
        self.layers = nn.ModuleList(_layer(model, position) for position in range(1, model.layers + 1))
        self.gates = nn.ModuleDict({str(position): _gate(model, position) for position in model.gated_layers})
        self.head = Head(model, task)

    def forward(self, batch: GraphBatch, keep_rows: bool = False) -> NetworkOutput:
        """Score the graphs of ``batch``; ``keep_rows`` gives the nodes' rows between the layers too.

        Raises:
            TypeError: ``batch`` is no :class:`~bimp.data.GraphBatch`.
            ValueError: the edges are not sorted by destination or lead to nodes that there are not, or the graphs have
                other nodes than the batch, or none (looked at in main memory only, since on an accelerator the look
                would wait for the device, and not in a padded batch), inputs of nodes or edges are not the task's or
                of another type than the network, edge inputs or positional encodings are missing, or a layer of the
                user's own gives rows of another shape.
        """
        if not isinstance(batch, GraphBatch):
            raise TypeError(
                f"batch: found {type(batch).__name__}, expected a GraphBatch; "
                "bimp.data.PackedGraphs.pack(graphs, labels=...).gather(indices) makes one of graphs"
            )
        if batch.padding is None and batch.edge_index.device.type == "cpu":
            self._require_graphs(batch)
            require_sorted_edges(batch)
        h = self._node_rows(batch)
        e_hat = self._edge_rows(batch) if self.model.backbone == "gated_gcn" else None
        # Kept rows lead to the scores: who asks for their gradients gets all of them.
        is_led_by_rows = keep_rows and torch.is_grad_enabled()
        embedded, embedded_edges = (None, None) if is_led_by_rows else self._embedded(batch)
        is_own = self.model.backbone not in BACKBONES
        edge_index = batch.edge_index.contiguous() if is_own else batch.edge_index  # of a batch among several
        gates: list[GateOutput] = []
        rows = [h]
        for position, layer in enumerate(self.layers, start=1):
            beta_hat = None
            if position in self.model.gated_layers:
                gates.append(self.gates[str(position)](h, batch))
                beta_hat = gates[-1].beta_hat
            if is_own:
                h = layer(h, edge_index, beta_hat=beta_hat)
                self._require_rows(h, batch, position)
            elif e_hat is None:
                h = layer(h, batch.adjacency, beta_hat, embedded)
            else:
                are_alike = position == 1 and self.ones_dim is not None
                h, e_hat = layer(h, e_hat, batch.adjacency, beta_hat, embedded, embedded_edges, are_alike)
            embedded, embedded_edges = None, None
            if keep_rows:
                rows.append(h)
        if batch.padding is not None:
            take_note(batch.padding)
        return NetworkOutput(
            scores=self.head(h, batch),
            unsupervised_loss=torch.stack([gate.unsupervised_loss for gate in gates]).mean(0) if gates else None,
            gates=tuple(gates),
            rows=tuple(rows) if keep_rows else (),
        )

    def _require_graphs(self, batch: GraphBatch) -> None:
        require_graphs(batch)

    def _require_rows(self, h: Tensor, batch: GraphBatch, position: int) -> None:
        width = self.model.last_dim if position == self.model.layers else self.model.row_dim
        found = list(h.shape) if isinstance(h, Tensor) else type(h).__name__
        if found != [batch.num_nodes, width]:
            raise ValueError(
                f"{self.model.backbone}: layer {position} gave {found}, expected rows {[batch.num_nodes, width]}"
            )

    def _require_inputs(
        self, name: str, inputs: Tensor, batch: GraphBatch, kind: NodeInput | EdgeInput, dim: int
    ) -> None:
        if batch.padding is None:  # nobody makes a padded batch by hand
            require_inputs(name, inputs, kind, dim, next(self.parameters()).dtype)

    def _node_rows(self, batch: GraphBatch) -> Tensor:
        self._require_inputs("batch.x", batch.x, batch, self.task.node_input, self.task.node_dim)
        rows = _embed("batch.x", self.node_embedding, batch.x, batch, self.task.node_dim)
        wanted = self.model.pos_enc_dim
        if wanted is None:
            return rows
        given = 0 if batch.pos_enc is None else batch.pos_enc.shape[1]
        if batch.pos_enc is None or given < wanted:
            raise ValueError(
                f"batch.pos_enc: found {given} positional encodings, expected {wanted} or more; "
                f"prepare {self.task.dataset} with them"
            )
        self._require_inputs("batch.pos_enc", batch.pos_enc, batch, "linear", given)
        encoded: Tensor = self.pos_enc_embedding(batch.pos_enc[:, :wanted])
        return rows + encoded

    def _embedded(self, batch: GraphBatch) -> tuple[Embedded | None, Embedded | None]:
        """What the nodes' and edges' rows that enter the first layer are an embedding of, where that spares work."""
        of_nodes, of_edges = None, None
        if batch.padding is None and self.model.pos_enc_dim is None:
            of_nodes = embedded_from(self.node_embedding, batch.x)
        if batch.padding is None and self.model.backbone == "gated_gcn" and self.ones_dim is None:
            assert batch.edge_attr is not None
            of_edges = embedded_from(self.edge_embedding, batch.edge_attr)
        return of_nodes, of_edges

    def _edge_rows(self, batch: GraphBatch) -> Tensor:
        if self.ones_dim is not None:
            parameter = next(self.edge_embedding.parameters())
            shared: Tensor = self.edge_embedding(parameter.new_ones(1, self.ones_dim))
            return _masked(shared, batch)
        if batch.edge_attr is None:
            raise ValueError(f"batch.edge_attr: found None, expected the edge inputs of {self.task.dataset}")
        self._require_inputs("batch.edge_attr", batch.edge_attr, batch, self.task.edge_input, self.task.edge_dim)
        rows = _embed("batch.edge_attr", self.edge_embedding, batch.edge_attr, batch, self.task.edge_dim)
        return _masked(rows, batch)


def _embed(name: str, embedding: nn.Module, inputs: Tensor, batch: GraphBatch, dim: int) -> Tensor:
    # A stack of seeds has embeddings of its own kind.
    if batch.padding is not None and is_table(embedding) and embedding.num_embeddings <= FEW_NUMBERS:
        return embedded(inputs, embedding.weight)
    try:
        rows: Tensor = embedding(inputs)
    except IndexError as error:  # raised in main memory only
        least, most = (int(end) for end in inputs.aminmax())
        raise ValueError(f"{name}: found {least} to {most}, expected 0 to {dim - 1}") from error
    return rows


def _masked(edge_rows: Tensor, batch: GraphBatch) -> Tensor:
    """The rows of the edges, 0 for those of the padding; in a padded batch there is one for each edge."""
    return edge_rows if batch.padding is None else edge_rows * batch.padding.edges.column(edge_rows.dtype)


def _embedding(kind: NodeInput | EdgeInput, input_dim: int, row_dim: int) -> nn.Module:
    return nn.Embedding(input_dim, row_dim) if kind == "embedding" else Linear(input_dim, row_dim)


def _ones_dim(model: ModelConfig, task: TaskSpec) -> int | None:
    """How many constant ones stand on each edge; None where the task gives edge inputs that are used."""
    if task.edge_input == "ones":
        return task.edge_dim
    if model.edge_features == "given":
        return None
    return 1 if task.edge_input == "embedding" else task.edge_dim


def _layer(model: ModelConfig, position: int) -> nn.Module:
    is_last = position == model.layers
    out_dim = model.last_dim if is_last else model.row_dim
    if model.backbone == "gcn":
        return GCNLayer(model.row_dim, out_dim, model.gcn_normalisation)
    if model.backbone == "graphsage":
        return GraphSAGELayer(model.row_dim, out_dim, model.concatenated_row)
    if model.backbone == "gat":
        is_gated = position in model.gated_layers
        return GATLayer(
            model.row_dim,
            heads=1 if is_last else model.heads,
            out_dim=out_dim,
            slope=model.gated_attention_slope if is_gated else model.attention_slope,
            bias=model.gated_attention_bias if is_gated else model.attention_bias,
        )
    if model.backbone == "gated_gcn":
        return GatedGCNLayer(model.row_dim, out_dim, model.edge_gate)
    return own_layer(model.backbone, model.row_dim, out_dim)


def _gate(model: ModelConfig, position: int) -> BilateralGate:
    # ModelConfig holds these three wherever a layer is gated; its type cannot say so.
    assert model.num_clusters is not None
    assert model.sigma_m is not None
    assert model.gate is not None
    of_last_head = model.assignment_width == "head" and position == model.layers
    return BilateralGate(
        model.row_dim,
        model.last_dim if of_last_head else model.hidden_dim,
        model.num_clusters,
        model.sigma_m,
        model.gate,
        assignment_bias=model.assignment_bias,
        metric_bias=model.metric_bias,
        metric_relu=model.metric_relu,
        distance_epsilon=model.distance_epsilon,
        normalisation=model.gate_normalisation,
        epsilon=model.gate_epsilon,
        cut_scope=model.cut_scope,
        cut_adjacency=model.cut_adjacency,
        cut_epsilon=model.cut_epsilon,
    )
