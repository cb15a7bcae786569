"""The kernels against the plain functions whose place they take: a whole training, and what only they can get wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

from bimp.config import BACKBONES, Backbone, ModelConfig
from bimp.data import GraphBatch
from bimp.data.cluster import block_model_graph, pack_block_models
from bimp.kernels.choice import kernels_serve
from bimp.kernels.linear import linear
from bimp.losses import supervised_loss
from bimp.network import Network
from bimp.semantics import Semantics, preset
from bimp.tasks import task_of

CHOOSERS = ("bimp.neighbourhood", "bimp.kernels.linear", "bimp.layers.gat", "bimp.layers.gated_gcn")
EVERY_BACKBONE = pytest.mark.parametrize("backbone", BACKBONES)


@contextmanager
def plainly() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in CHOOSERS:
            patch.setattr(f"{module}.kernels_serve", lambda *_: False)
        yield


def cluster_batch() -> GraphBatch:
    """Large enough for several blocks of edges and for products of many rows."""
    packed = pack_block_models(block_model_graph(np.random.default_rng(seed)) for seed in range(3))
    return packed.gather(torch.arange(3))


def model_of(backbone: Backbone, semantics: Semantics) -> ModelConfig:
    settings = preset(semantics, dataset="cluster", backbone=backbone, gated=True)
    of_model = {name: value for name, value in settings.items() if name in ModelConfig.__dataclass_fields__}
    heads, hidden_dim = (4, 5) if backbone == "gat" else (1, 20)
    gate = {"placement": "boosting", "gate": "bilateral", "num_clusters": 4, "sigma_m": 1.0}
    return ModelConfig(backbone=backbone, layers=3, hidden_dim=hidden_dim, heads=heads, **gate, **of_model)  # type: ignore[arg-type]


def ten_steps(model: ModelConfig, batch: GraphBatch) -> tuple[list[float], dict[str, Tensor]]:
    torch.manual_seed(0)
    network = Network(model, task_of("cluster")).double().train()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    losses = []
    for _ in range(10):
        output = network(batch)
        assert output.unsupervised_loss is not None
        loss = supervised_loss("node_classification", output.scores, batch.y) + output.unsupervised_loss
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    return losses, network.state_dict()


@EVERY_BACKBONE
@pytest.mark.parametrize("semantics", ["paper", "released"])
def test_ten_training_steps_equal_the_plain_ones(backbone: Backbone, semantics: Semantics) -> None:
    batch = cluster_batch()
    model = model_of(backbone, semantics)
    losses, state = ten_steps(model, batch)
    with plainly():
        plain_losses, plain_state = ten_steps(model, batch)
    assert len(batch.adjacency.blocks) > 2
    assert losses == pytest.approx(plain_losses, rel=1e-9)
    assert losses[-1] < losses[0]
    assert_close(state, plain_state, rtol=1e-6, atol=1e-9)


@EVERY_BACKBONE
def test_gradients_in_single_precision_are_near_the_plain_ones(backbone: Backbone) -> None:
    batch = cluster_batch()
    torch.manual_seed(0)
    network = Network(model_of(backbone, "paper"), task_of("cluster")).train()

    def gradients() -> list[Tensor]:
        output = network(batch)
        loss = supervised_loss("node_classification", output.scores, batch.y) + output.unsupervised_loss
        return list(torch.autograd.grad(loss, list(network.parameters())))

    found, again = gradients(), gradients()
    assert all(torch.equal(one, other) for one, other in zip(found, again, strict=True))  # the same bits
    with plainly():
        expected = gradients()
    largest = max(gradient.abs().max().item() for gradient in expected)
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, rtol=1e-3, atol=1e-4 * largest)


@pytest.mark.parametrize("gaps", [False, True], ids=["dense", "a part of a wider matrix"])
def test_linear_map_of_many_rows(gaps: bool) -> None:
    torch.manual_seed(0)
    rows, weight, bias = torch.randn(300, 20), torch.randn(24, 40 if gaps else 20)[:, :20], torch.randn(24)
    leaves = [leaf.requires_grad_() for leaf in (rows, weight, bias)]
    found, expected = linear(*leaves), F.linear(*leaves)
    assert_close(found, expected)
    grad = torch.randn(300, 24)
    for one, other in zip(
        torch.autograd.grad(found, leaves, grad), torch.autograd.grad(expected, leaves, grad), strict=True
    ):
        assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_kernels_serve_numbers_of_one_type_outside_of_transforms() -> None:
    rows = torch.zeros(2, 2)
    assert kernels_serve(rows, None, rows)
    assert not kernels_serve(rows, rows.double())
    assert not kernels_serve(rows.half())
    assert not kernels_serve(rows.to("meta"))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not kernels_serve(rows)
    seen: list[bool] = []
    torch.func.vmap(lambda row: seen.append(kernels_serve(row)) or row)(rows)
    assert seen == [False]
