"""The kernels against the plain functions whose place they take: a whole training, and what only they can get wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

from bimp.adjacency import Adjacency
from bimp.config import BACKBONES, Backbone, ModelConfig
from bimp.data import GraphBatch
from bimp.data.cluster import block_model_graph, pack_block_models
from bimp.kernels import aggregation
from bimp.kernels.attention import HeadColumns
from bimp.kernels.choice import kernels_serve
from bimp.kernels.linear import linear
from bimp.kernels.segments import dots_of_runs
from bimp.losses import supervised_loss
from bimp.neighbourhood import max_rectified_neighbour_rows
from bimp.network import Network
from bimp.semantics import Semantics, preset
from bimp.tasks import task_of

CHOOSERS = (
    "bimp.embedded",
    "bimp.head",
    "bimp.neighbourhood",
    "bimp.kernels.linear",
    "bimp.layers.gat",
    "bimp.layers.gated_gcn",
    "bimp.layers.graphsage",
    "bimp.layers.residual",
)
EVERY_BACKBONE = pytest.mark.parametrize("backbone", BACKBONES)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bimp.edge_blocks.BLOCK_EDGES", 2048)


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
        return list(torch.autograd.grad(loss, list(network.parameters()), materialize_grads=True))

    found, again = gradients(), gradients()
    assert all(torch.equal(one, other) for one, other in zip(found, again, strict=True))  # the same bits
    with plainly():
        expected = gradients()
    largest = max(gradient.abs().max().item() for gradient in expected)
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, rtol=1e-3, atol=1e-4 * largest)


@pytest.mark.parametrize("edges_a_node", [2, 30], ids=["few edges", "many edges"])
@pytest.mark.parametrize("is_weighted", [False, True], ids=["rows", "weighed rows"])
def test_of_equal_messages_the_first_takes_the_gradient(edges_a_node: int, is_weighted: bool) -> None:
    rng = torch.Generator().manual_seed(0)
    nodes = 50
    source = torch.randint(0, nodes, (nodes * edges_a_node,), generator=rng)
    destination = torch.randint(1, nodes, (nodes * edges_a_node,), generator=rng).sort().values  # none reaches node 0
    adjacency = Adjacency(torch.stack([source, destination]), nodes)
    rows = torch.randint(-2, 3, (nodes, 7), generator=rng).double().requires_grad_()
    weights = torch.randint(1, 3, (source.numel(),), generator=rng).double().requires_grad_() if is_weighted else None
    grad = torch.randn(nodes, 7, generator=rng, dtype=torch.float64)
    largest = max_rectified_neighbour_rows(rows, adjacency, weights)
    leaves = [rows] if weights is None else [rows, weights]
    found = torch.autograd.grad(largest, leaves, grad.t().contiguous().t())  # as it may come from a product
    factors = torch.ones(source.numel()) if weights is None else weights.detach()
    expected, expected_weights = np.zeros((nodes, 7)), np.zeros(source.numel())
    for node in range(1, nodes):
        edges = [edge for edge in range(source.numel()) if destination[edge] == node]
        for column in range(7):
            messages = [(factors[edge] * rows[source[edge], column]).item() for edge in edges]
            if messages and max(messages) > 0:
                first = edges[messages.index(max(messages))]
                assert largest[node, column].item() == max(messages)
                expected[source[first], column] += (factors[first] * grad[node, column]).item()
                expected_weights[first] += (rows[source[first], column] * grad[node, column]).item()
    assert_close(found[0], torch.from_numpy(expected))
    if is_weighted:
        assert_close(found[1], torch.from_numpy(expected_weights))


@pytest.mark.parametrize("edges_a_node", [2, 30], ids=["few edges", "many edges"])
def test_places_of_maxima_are_looked_for_where_a_gradient_is_asked_for(
    edges_a_node: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    def noted(name: str) -> Callable[..., object]:
        original = getattr(aggregation, name)
        return lambda *given: looked.append(name) or original(*given)

    for name in ("_largest_and_its_edge", "_first_edge_that_gave"):
        monkeypatch.setattr(aggregation, name, noted(name))
    source, destination = torch.arange(10 * edges_a_node) % 7, torch.arange(10).repeat_interleave(edges_a_node)
    adjacency, rows = Adjacency(torch.stack([source, destination]), 10), torch.rand(10, 3).requires_grad_()
    with torch.no_grad():
        without = max_rectified_neighbour_rows(rows, adjacency)
    assert looked == []
    assert torch.equal(max_rectified_neighbour_rows(rows, adjacency), without)
    assert len(looked) == 1


def test_dots_of_more_copies_of_edges_than_there_are_pairs_of_nodes() -> None:
    rows, others = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[5.0, 6.0], [7.0, 8.0]])
    dots = dots_of_runs(rows, others, torch.tensor([0, 1, 1, 1, 0]), torch.tensor([0, 4, 5]))
    assert dots.tolist() == [17.0, 23.0, 23.0, 23.0, 39.0]


def test_runs_of_each_head_hold_the_edges_of_their_end() -> None:
    edge_index = torch.tensor([[2, 0, 2, 1, 3, 0], [0, 1, 1, 1, 2, 2]])
    adjacency = Adjacency(edge_index, 4)
    into, out_of = adjacency.runs_into(2, slots=2), adjacency.runs_out_of(2, slots=2)
    assert into.starts.tolist() == [0, 1, 2, 5, 8, 10, 12, 12, 12]
    # Edge 0 into node 0, for head 0 and 1; edges 1 to 3 into node 1; edges 4 and 5 into node 2.
    assert into.order.tolist() == [0, 1, 2, 4, 6, 3, 5, 7, 8, 10, 9, 11]
    assert into.rows.tolist() == [4, 5, 0, 4, 2, 1, 5, 3, 6, 0, 7, 1]
    assert into.order.index_select(0, into.place).tolist() == list(range(12))
    assert out_of.starts.tolist() == [0, 2, 4, 5, 6, 8, 10, 11, 12]
    assert out_of.rows.tolist() == [2, 4, 3, 5, 2, 3, 0, 2, 1, 3, 4, 5]
    # A third row of a node, of no head: it is not read, and nothing is summed to it.
    into, out_of = adjacency.runs_into(2, slots=3), adjacency.runs_out_of(2, slots=3)
    assert into.starts.tolist() == [0, 1, 2, 5, 8, 10, 12, 12, 12]
    assert into.rows.tolist() == [6, 7, 0, 6, 3, 1, 7, 4, 9, 0, 10, 1]
    assert out_of.starts.tolist() == [0, 2, 4, 4, 5, 6, 6, 8, 10, 10, 11, 12, 12]
    assert out_of.rows.tolist() == [2, 4, 3, 5, 2, 3, 0, 2, 1, 3, 4, 5]


@pytest.mark.parametrize(
    ("heads", "width", "unused", "slots"), [(8, 21, 5, 9), (8, 16, 0, 9), (2, 4, 0, 3), (1, 168, 0, 1), (2, 5, 1, 3)]
)
def test_columns_of_heads(heads: int, width: int, unused: int, slots: int) -> None:
    columns = HeadColumns(heads=heads, width=width)
    assert (columns.unused, columns.slots) == (unused, slots)


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
