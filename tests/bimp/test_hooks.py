"""Which modules of a network are called, and that of the others the parameters count, whoever makes them."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization
from torch.testing import assert_close

from bimp.config import BACKBONES, Backbone
from bimp.data import GraphBatch
from bimp.device.resident import ResidentGraphs
from bimp.device.shapes import Shape
from bimp.network import Network
from bimp.tasks import task_of
from tests.bimp.device.drawn_graphs import drawn, trial

EVERY_BACKBONE = pytest.mark.parametrize("backbone", BACKBONES)
EVERY_KIND = pytest.mark.parametrize("dataset", ["zinc", "tsp"])  # rows of numbers and graphs, of inputs and edges


def network_and_batch(backbone: Backbone, dataset: str, *, padded: bool = False) -> tuple[Network, GraphBatch]:
    config = trial(dataset, backbone, model={"hidden_dim": 6 if backbone == "gat" else 12})
    torch.manual_seed(0)
    split = drawn(dataset, 30)
    batch = next(iter(split.batches(30)))
    if padded:
        size = Shape(30, batch.num_nodes + 5, batch.num_edges + 7)
        batch = ResidentGraphs.of(split.graphs, torch.device("cpu")).gather(split.indices, size, padded=True)
    return Network(config.model, task_of(dataset)), batch


@pytest.mark.parametrize("padded", [False, True])
@EVERY_KIND
@EVERY_BACKBONE
def test_embeddings_layers_gates_and_head_are_called(backbone: Backbone, dataset: str, padded: bool) -> None:
    network, batch = network_and_batch(backbone, dataset, padded=padded)
    parts = [name for name, _ in network.named_modules() if name and "." not in name.removeprefix("layers.")]
    names = [name for name in parts if name not in ("layers", "gates")] + [f"gates.{key}" for key in network.gates]
    assert {"node_embedding", "layers.0", "gates.2", "head"} <= set(names)
    called: list[str] = []
    for name in names:
        network.get_submodule(name).register_forward_hook(lambda *_, name=name: called.append(name))
    network(batch)
    assert sorted(called) == sorted(names)


class Doubled(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return 2 * weight


@EVERY_KIND
@EVERY_BACKBONE
def test_parametrised_weights_count_everywhere(backbone: Backbone, dataset: str) -> None:
    parametrised, batch = network_and_batch(backbone, dataset)
    doubled = deepcopy(parametrised)
    before = parametrised(batch).scores
    maps = [name for name, module in doubled.named_modules() if isinstance(module, nn.Linear)]
    assert maps
    for name in maps:
        register_parametrization(parametrised.get_submodule(name), "weight", Doubled())
        with torch.no_grad():
            doubled.get_submodule(name).weight.mul_(2)
    assert_close(parametrised(batch).scores, doubled(batch).scores)
    assert not torch.allclose(before, doubled(batch).scores, rtol=1e-2)
