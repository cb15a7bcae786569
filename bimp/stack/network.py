"""Several networks of one configuration as one, in the same memory."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bimp.config import BACKBONES, ModelConfig
from bimp.data.batch import GraphBatch
from bimp.gradient import BilateralGate, GateOutput
from bimp.head import Head
from bimp.kernels.linear import Linear
from bimp.layers.gat import GATLayer
from bimp.layers.gated_gcn import GatedGCNLayer
from bimp.network import Network, NetworkOutput
from bimp.row_norm import RowNorm
from bimp.stack.batch import StackedBatch
from bimp.stack.maps import StackedEmbedding, StackedLinear
from bimp.stack.modules import StackedGate, StackedGatedGCNLayer, StackedGATLayer, StackedHead
from bimp.stack.row_norm import StackedRowNorm
from bimp.stack.vector import ParameterLayout


def can_be_stacked(model: ModelConfig) -> bool:
    """Whether networks of ``model`` can be trained as one: those of the four backbones, not a layer of one's own."""
    return model.backbone in BACKBONES


class StackedNetwork(Network):
    """The networks of several seeds as one; made by :func:`stack`."""

    def forward(self, batch: GraphBatch, keep_rows: bool = False) -> NetworkOutput:
        """Score a :class:`~bimp.stack.batch.StackedBatch`.

        The output's rows and scores hold padding and its losses are ``[seeds]``: see :meth:`outputs_apart`.
        """
        assert isinstance(batch, StackedBatch)
        norms = [(name, module) for name, module in self.named_modules() if isinstance(module, StackedRowNorm)]
        for name, norm in norms:
            norm.parts = batch.edges if name.endswith("edge_norm") else batch.nodes
        output = super().forward(batch, keep_rows)
        for _, norm in norms:
            del norm.parts  # a captured step leaves nothing behind
        return output

    def scores_by_seed(self, output: NetworkOutput, batch: StackedBatch) -> Tensor:
        """``[seeds, items]`` or ``[seeds, items, classes]``: of graphs the real ones, of nodes and edges all rows."""
        scores = output.scores.view(batch.nodes.seeds, -1, *output.scores.shape[1:])
        return scores[:, :-1] if self.task.kind in ("graph_regression", "graph_classification") else scores

    def outputs_apart(self, output: NetworkOutput, batch: StackedBatch) -> tuple[NetworkOutput, ...]:
        """What each seed's own network says of its own batch."""
        items = {"node_classification": batch.nodes, "edge_classification": batch.edges}
        scores = items.get(self.task.kind, batch.graphs).apart(output.scores)
        losses = [None] * len(scores) if output.unsupervised_loss is None else output.unsupervised_loss.unbind()
        gates = [_gates_apart(gate, batch) for gate in output.gates]
        rows = [batch.nodes.apart(kept) for kept in output.rows]
        return tuple(
            NetworkOutput(
                scores=scores[seed],
                unsupervised_loss=losses[seed],
                gates=tuple(gate[seed] for gate in gates),
                rows=tuple(kept[seed] for kept in rows),
            )
            for seed in range(len(scores))
        )

    def _require_graphs(self, batch: GraphBatch) -> None:
        """Nobody joins batches by hand, and graphs that a seed lacks have no node."""

    def _edge_rows(self, batch: GraphBatch) -> Tensor:
        if self.ones_dim is None:
            return super()._edge_rows(batch)
        assert isinstance(batch, StackedBatch)
        seeds, edges = batch.edges.seeds, batch.edges.length
        parameter = next(self.edge_embedding.parameters())
        shared: Tensor = self.edge_embedding(parameter.new_ones(seeds, self.ones_dim))
        return shared.unsqueeze(1).expand(-1, edges, -1).flatten(0, 1)


def _gates_apart(gate: GateOutput, batch: StackedBatch) -> tuple[GateOutput, ...]:
    values = zip(
        batch.edges.apart(gate.beta_hat),
        batch.nodes.apart(gate.soft_assignment),
        gate.min_cut.unbind(),
        gate.orthogonality.unbind(),
        gate.unsupervised_loss.unbind(),
        strict=True,
    )
    return tuple(GateOutput(*of_seed) for of_seed in values)


_STACKED: dict[type[nn.Module], type[nn.Module]] = {
    Network: StackedNetwork,
    nn.Linear: StackedLinear,
    Linear: StackedLinear,
    nn.Embedding: StackedEmbedding,
    RowNorm: StackedRowNorm,
    GATLayer: StackedGATLayer,
    GatedGCNLayer: StackedGatedGCNLayer,
    BilateralGate: StackedGate,
    Head: StackedHead,
}


def stack(networks: Sequence[Network]) -> tuple[StackedNetwork, Tensor]:
    """The networks as one, and all of its parameters as a matrix.

    Afterwards all share their memory: the parameters of ``networks[s]`` are parts of row s of the matrix
    (:class:`~bimp.stack.vector.ParameterLayout`), and so are those of the stacked network, as
    ``[seeds, ...]`` under the same names. Loading weights into one of them changes all.

    Returns:
        The stacked network, and the matrix, ``[seeds, numbers]``.
    """
    layout = ParameterLayout.of(networks[0])
    matrix = torch.stack([layout.joined(list(network.parameters())) for network in networks])
    stacked = copy.deepcopy(networks[0])
    for module in stacked.modules():
        module.__class__ = _STACKED.get(type(module), type(module))
    for (name, _), values in zip(networks[0].named_parameters(), layout.apart(matrix), strict=True):
        owner, attribute = _owner(stacked, name)
        setattr(owner, attribute, nn.Parameter(values))
        for network, of_network in zip(networks, values, strict=True):
            network.get_parameter(name).data = of_network
    for name, _ in networks[0].named_buffers():
        owner, attribute = _owner(stacked, name)
        values = torch.stack([network.get_buffer(name) for network in networks])
        setattr(owner, attribute, values)
        for network, of_network in zip(networks, values, strict=True):
            of, its = _owner(network, name)
            setattr(of, its, of_network)
    assert isinstance(stacked, StackedNetwork)
    return stacked, matrix


def _owner(network: nn.Module, name: str) -> tuple[nn.Module, str]:
    path, _, attribute = name.rpartition(".")
    return network.get_submodule(path), attribute
