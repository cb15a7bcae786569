"""Each layer against a plain loop over nodes and edges, written from the paper's equations."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from graph_batches import GRAPHS, ONE_NODE, batch_of, in_edges
from torch import Tensor, nn
from torch.func import functional_call
from torch.testing import assert_close

from bimp.layers.gat import GATLayer
from bimp.layers.gated_gcn import GatedGCNLayer
from bimp.layers.gcn import GCNLayer
from bimp.layers.graphsage import GraphSAGELayer
from bimp.row_norm import RowNorm

WIDTH = 4
BATCH = batch_of(*GRAPHS)
NODES, EDGES = BATCH.num_nodes, BATCH.num_edges

LAYERS: dict[str, Callable[[], nn.Module]] = {
    "gcn": lambda: GCNLayer(WIDTH),
    "graphsage": lambda: GraphSAGELayer(WIDTH),
    "gat": lambda: GATLayer(WIDTH, heads=2),
    "gat_last": lambda: GATLayer(WIDTH, heads=1),
    "gated_gcn": lambda: GatedGCNLayer(WIDTH),
}
EVERY_LAYER = pytest.mark.parametrize("name", list(LAYERS))
GATED_OR_NOT = pytest.mark.parametrize("gated", [False, True], ids=["vanilla", "gated"])


def layer_of(name: str, seed: int = 0) -> nn.Module:
    """A layer in float64 whose normalisation is far from the identity."""
    torch.manual_seed(seed)
    layer = LAYERS[name]().double()
    for module in layer.modules():
        if isinstance(module, RowNorm):
            for values in (module.weight, module.bias, module.running_mean):
                nn.init.normal_(values)
            nn.init.uniform_(module.running_var, 0.5, 2)
    return layer


def inputs_of(name: str, gated: bool) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(1)
    h = torch.randn(NODES, WIDTH, dtype=torch.float64, generator=generator)
    e_hat = torch.randn(EDGES, WIDTH, dtype=torch.float64, generator=generator)
    beta_hat = torch.rand(EDGES, dtype=torch.float64, generator=generator)
    return (h, *((e_hat,) if name == "gated_gcn" else ()), *((beta_hat,) if gated else ()))


def run(layer: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The layer's outputs as a tuple; rows before the edges, beta_hat after it."""
    rows = 2 if isinstance(layer, GatedGCNLayer) else 1
    output = layer(*inputs[:rows], BATCH.adjacency, *inputs[rows:])
    return output if isinstance(output, tuple) else (output,)


def normalised(norm: RowNorm, rows: list[Tensor]) -> list[Tensor]:
    """Batch normalisation, column by column, as its definition says."""
    stacked = torch.stack(rows)
    mean, variance = norm.running_mean, norm.running_var
    if norm.training:
        mean = stacked.sum(0) / len(rows)
        variance = (stacked - mean).square().sum(0) / len(rows)
    return [(row - mean) / (variance + 1e-5).sqrt() * norm.weight + norm.bias for row in rows]


def linear(layer: nn.Linear, row: Tensor) -> Tensor:
    result = torch.stack([(weights * row).sum() for weights in layer.weight])
    return result if layer.bias is None else result + layer.bias


def relu(row: Tensor) -> Tensor:
    return torch.stack([value if value > 0 else 0 * value for value in row])


def gcn_by_loop(layer: GCNLayer, h: Tensor, beta_hat: Tensor) -> list[Tensor]:
    rows = []
    for v in range(NODES):
        aggregate = torch.zeros(WIDTH, dtype=torch.float64)
        for number, u in in_edges(BATCH, v):
            aggregate = aggregate + beta_hat[number] * h[u] / len(in_edges(BATCH, v))
        rows.append(linear(layer.update, aggregate))
    return [h[v] + relu(row) for v, row in enumerate(normalised(layer.norm, rows))]


def graphsage_by_loop(layer: GraphSAGELayer, h: Tensor, beta_hat: Tensor) -> list[Tensor]:
    rows = []
    for v in range(NODES):
        largest = torch.zeros(WIDTH, dtype=torch.float64)  # messages are not negative, so 0 changes no maximum
        for number, u in in_edges(BATCH, v):
            largest = torch.maximum(largest, beta_hat[number] * relu(linear(layer.pool, h[u])))
        row = linear(layer.update, torch.cat([h[v], largest]))
        rows.append(relu(row / row.square().sum().sqrt()))
    return [h[v] + row for v, row in enumerate(normalised(layer.norm, rows))]


def gat_by_loop(layer: GATLayer, h: Tensor, beta_hat: Tensor) -> list[Tensor]:
    width = WIDTH // layer.heads
    rows = []
    for v in range(NODES):
        heads = []
        for k in range(layer.heads):
            projected = [linear(layer.projection, row)[k * width : (k + 1) * width] for row in h]
            exponentials = []
            for _, u in in_edges(BATCH, v):
                logit = layer.attention_destination[k] @ projected[v] + layer.attention_source[k] @ projected[u]
                exponentials.append((logit if logit > 0 else 0.2 * logit).exp())
            head = torch.zeros(width, dtype=torch.float64)
            for (number, u), exponential in zip(in_edges(BATCH, v), exponentials, strict=True):
                head = head + beta_hat[number] * exponential / sum(exponentials) * projected[u]
            heads.append(head)
        rows.append(torch.cat(heads))
    elu = [torch.where(row > 0, row, row.exp() - 1) for row in normalised(layer.norm, rows)]
    return [h[v] + row for v, row in enumerate(elu)]


def gated_gcn_by_loop(layer: GatedGCNLayer, h: Tensor, e_hat: Tensor, beta_hat: Tensor) -> list[Tensor]:
    ends = BATCH.edge_index.t().tolist()
    updates = [
        linear(layer.edge_source, h[u]) + linear(layer.edge_destination, h[v]) + linear(layer.edge_self, e_hat[number])
        for number, (u, v) in enumerate(ends)
    ]
    new_e_hat = [e_hat[number] + relu(row) for number, row in enumerate(normalised(layer.edge_norm, updates))]
    sigmoids = [1 / (1 + (-row).exp()) for row in new_e_hat]
    rows = []
    for v in range(NODES):
        row = linear(layer.node_self, h[v])
        total = sum(sigmoids[number] for number, _ in in_edges(BATCH, v))
        for number, u in in_edges(BATCH, v):
            row = row + sigmoids[number] / (total + 1e-6) * beta_hat[number] * linear(layer.node_source, h[u])
        rows.append(row)
    new_h = [h[v] + relu(row) for v, row in enumerate(normalised(layer.node_norm, rows))]
    return [*new_h, *new_e_hat]


LOOPS = {
    "gcn": gcn_by_loop,
    "graphsage": graphsage_by_loop,
    "gat": gat_by_loop,
    "gat_last": gat_by_loop,
    "gated_gcn": gated_gcn_by_loop,
}


@EVERY_LAYER
@GATED_OR_NOT
@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
def test_layer_equals_plain_loop(name: str, gated: bool, training: bool) -> None:
    layer = layer_of(name).train(training)
    inputs = inputs_of(name, gated)
    beta_hat = () if gated else (torch.ones(EDGES, dtype=torch.float64),)
    with torch.no_grad():
        expected = torch.stack(LOOPS[name](layer, *inputs, *beta_hat))
        found = torch.cat(run(layer, inputs))
    assert_close(found, expected, rtol=1e-10, atol=1e-10)


@EVERY_LAYER
@GATED_OR_NOT
def test_gradients_against_finite_differences(name: str, gated: bool) -> None:
    layer = layer_of(name)
    names = [name for name, _ in layer.named_parameters()]
    inputs = inputs_of(name, gated)

    class Runner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
            return run(self.layer, inputs)

    def outputs(*values: Tensor) -> tuple[Tensor, ...]:
        parameters = {f"layer.{name}": value for name, value in zip(names, values[len(inputs) :], strict=True)}
        return functional_call(Runner(), parameters, values[: len(inputs)])

    leaves = [value.detach().clone().requires_grad_() for value in (*inputs, *layer.parameters())]
    assert torch.autograd.gradcheck(outputs, leaves)


@EVERY_LAYER
def test_gate_of_ones_is_the_vanilla_layer(name: str) -> None:
    layer = layer_of(name).eval()
    ones = torch.ones(EDGES, dtype=torch.float64)
    vanilla = inputs_of(name, gated=False)
    for found, expected in zip(run(layer, (*vanilla, ones)), run(layer, vanilla), strict=True):
        assert_close(found, expected, rtol=0, atol=1e-12)


def test_gat_attention_is_not_normalised_after_the_gate() -> None:
    # Twice the gate is twice the sum before normalisation: nothing divides it out again.
    layer = layer_of("gat").eval()
    layer.norm.reset_parameters()  # now the identity, up to its epsilon
    h, beta_hat = inputs_of("gat", gated=True)
    small, large = (layer(h, BATCH.adjacency, scale * beta_hat) - h for scale in (1e-4, 2e-4))
    assert_close(large, 2 * small, rtol=1e-3, atol=0)


@EVERY_LAYER
def test_one_node_without_edges_can_be_trained_on(name: str) -> None:
    layer = layer_of(name).float()
    batch = batch_of(ONE_NODE)
    h = torch.randn(1, WIDTH, requires_grad=True)
    rows = (h, torch.empty(0, WIDTH)) if name == "gated_gcn" else (h,)
    output = layer(*rows, batch.adjacency, torch.empty(0))
    new_h = output[0] if isinstance(output, tuple) else output
    new_h.sum().backward()
    assert h.grad is not None
    assert new_h.isfinite().all()
    assert h.grad.isfinite().all()
    assert all(value.isfinite().all() for value in layer.state_dict().values())


def test_row_norm_of_one_row_uses_running_statistics_and_keeps_them() -> None:
    norm = RowNorm(2).train()
    norm.running_mean.copy_(torch.tensor([1.0, 2.0]))
    norm.running_var.copy_(torch.tensor([4.0, 9.0]))
    found = norm(torch.tensor([[3.0, -1.0]]))
    assert found.tolist()[0] == pytest.approx([2 / math.sqrt(4 + 1e-5), -3 / math.sqrt(9 + 1e-5)])
    assert norm.running_mean.tolist() == [1, 2]
    assert norm.num_batches_tracked == 0
