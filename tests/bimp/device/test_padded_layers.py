"""Layers on padded batches, by functions written out, against the same layers on the real graphs alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from drawn_graphs import drawn, without_kernels
from torch import Tensor, nn
from torch.testing import assert_close

from bimp.data import GraphBatch
from bimp.device.resident import ResidentGraphs
from bimp.device.shapes import Shape
from bimp.layers.gat import GATLayer
from bimp.layers.gated_gcn import GatedGCNLayer
from bimp.layers.gcn import GCNLayer
from bimp.layers.graphsage import GraphSAGELayer
from bimp.padding import take_note
from bimp.row_norm import RowNorm

WIDTH = 6

LAYERS: dict[str, Callable[[], nn.Module]] = {
    "gcn": lambda: GCNLayer(WIDTH),
    "gcn, symmetric": lambda: GCNLayer(WIDTH, normalisation="symmetric"),
    "gcn, narrower": lambda: GCNLayer(WIDTH, 4),
    "graphsage": lambda: GraphSAGELayer(WIDTH),
    "graphsage, pooled": lambda: GraphSAGELayer(WIDTH, concatenated_row="pooled"),
    "gat": lambda: GATLayer(WIDTH, heads=2),
    "gat, with a bias": lambda: GATLayer(WIDTH, heads=3, bias=True),
    "gat, falling slope": lambda: GATLayer(WIDTH, heads=2, slope=-0.5),
    "gat, narrower": lambda: GATLayer(WIDTH, heads=1, out_dim=4),
    "gated_gcn": lambda: GatedGCNLayer(WIDTH),
    "gated_gcn, raw": lambda: GatedGCNLayer(WIDTH, edge_gate="raw"),
    "gated_gcn, narrower": lambda: GatedGCNLayer(WIDTH, 4),
    "gated_gcn, raw and narrower": lambda: GatedGCNLayer(WIDTH, 4, edge_gate="raw"),
}


@dataclass(frozen=True)
class Outcome:
    """Of the real rows: outputs, gradients, and what the layer is afterwards."""

    outputs: list[Tensor]
    of_inputs: list[Tensor]
    of_parameters: dict[str, Tensor | None]
    state: dict[str, Tensor]


def layer_of(name: str) -> nn.Module:
    torch.manual_seed(0)
    layer = LAYERS[name]().double()
    for module in layer.modules():
        if isinstance(module, RowNorm):
            for values in (module.weight, module.bias, module.running_mean):
                nn.init.normal_(values)
    return layer


def outcome(layer: nn.Module, batch: GraphBatch, inputs: list[Tensor], counts: list[int], only_h: bool) -> Outcome:
    """By a loss of fixed factors on the first ``counts`` rows of the outputs, or of the first output alone."""
    given = [value.clone().requires_grad_() for value in inputs]
    rows = 2 if isinstance(layer, GatedGCNLayer) else 1
    result = layer(*given[:rows], batch.adjacency, *given[rows:])
    outputs = list(result) if isinstance(result, tuple) else [result]
    if batch.padding is not None:
        take_note(batch.padding)
        for value, output, count in zip(given, outputs, counts, strict=False):
            kept = value[count:] if value.shape == output.shape else torch.zeros_like(output[count:])
            assert torch.equal(output[count:], kept)  # a layer adds nothing to the padding
    generator = torch.Generator().manual_seed(3)
    real = [output[:count] for output, count in zip(outputs, counts, strict=False)]
    factors = [torch.randn(output.shape, generator=generator, dtype=output.dtype) for output in real]
    products = [(output * factor).sum() for output, factor in zip(real, factors, strict=True)]
    sum(products[:1] if only_h else products).backward()
    # No gradient reaches the padding.
    padded = [value.grad[count:] for value, count in zip(given, [*counts[:rows], counts[1]], strict=False)]
    assert not any(grad.any() for grad in padded)
    return Outcome(
        outputs=[output.detach() for output in real],
        of_inputs=[value.grad[:count] for value, count in zip(given, [*counts[:rows], counts[1]], strict=False)],
        of_parameters={name: parameter.grad for name, parameter in layer.named_parameters()},
        state=layer.state_dict(),
    )


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("gated", [False, True], ids=["vanilla", "gated"])
@pytest.mark.parametrize("spare", [(1, 0), (3, 7)], ids=["one node", "nodes and edges"])
@pytest.mark.parametrize("only_h", [False, True], ids=["all outputs", "nodes alone"])
def test_padding_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str, gated: bool, spare: tuple[int, int], only_h: bool
) -> None:
    without_kernels(monkeypatch)
    graphs = drawn("digits", 9).graphs
    picks = torch.tensor([2, 5, 1, 7])
    alone = graphs.gather(picks)
    shape = Shape(4, alone.num_nodes + spare[0], alone.num_edges + spare[1])
    padded = ResidentGraphs.of(graphs, torch.device("cpu")).gather(picks, shape, padded=True)
    generator = torch.Generator().manual_seed(1)

    def rows(count: int, *width: int) -> Tensor:
        return torch.randn(count, *width, generator=generator, dtype=torch.float64)

    is_gated_gcn = name.startswith("gated_gcn")
    counts = [alone.num_nodes, alone.num_edges]
    inputs = [rows(shape.nodes, WIDTH)]
    inputs += [rows(shape.edges, WIDTH)] if is_gated_gcn else []
    inputs += [rows(shape.edges).sigmoid()] if gated else []
    if is_gated_gcn:
        inputs[1][alone.num_edges :] = 0
    real = [value[: counts[min(number, 1)]] for number, value in enumerate(inputs)]
    expected = outcome(layer_of(name), alone, real, counts, only_h)
    found = outcome(layer_of(name), padded, inputs, counts, only_h)
    assert_close(vars(found), vars(expected))
