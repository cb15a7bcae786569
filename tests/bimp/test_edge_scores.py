"""The head of edges in one function against the same written out."""

from __future__ import annotations

import pytest
import torch
from graph_batches import ONE_NODE, SmallGraph, batch_of, small_graphs
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from bimp.config import ModelConfig
from bimp.data import GraphBatch
from bimp.head import Head
from bimp.kernels.edge_scores import edge_scores
from bimp.kernels.room import empty_with_room
from bimp.losses import supervised_loss
from bimp.network import Network
from bimp.tasks import task_of


def written_out(mapped: Tensor, batch: GraphBatch, weights: list[Tensor]) -> Tensor:
    """Edge by edge."""
    second_weight, second_bias, third_weight, third_bias = weights
    width = mapped.shape[1] // 2
    scores = [third_bias.new_empty(0, len(third_bias))]
    for u, v in batch.edge_index.t().tolist():
        first = (mapped[u, :width] + mapped[v, width:]).clamp(min=0)
        scores.append((third_weight @ (second_weight @ first + second_bias).clamp(min=0) + third_bias).unsqueeze(0))
    return torch.cat(scores)


@given(st.lists(small_graphs(), min_size=1, max_size=5), st.integers(1, 9), st.integers(0, 9))
def test_scores_and_gradients(graphs: list[SmallGraph], block: int, seed: int) -> None:
    batch = batch_of(*graphs)
    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()

    mapped, weights = drawn(batch.num_nodes, 10), [drawn(3, 5), drawn(3), drawn(2, 3), drawn(2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bimp.kernels.edge_scores.BLOCK_EDGES", block)
        found = edge_scores(mapped, batch.adjacency, *weights)
        expected = written_out(mapped, batch, weights)
        assert_close(found, expected)
        with torch.no_grad():
            assert torch.equal(edge_scores(mapped, batch.adjacency, *weights), found)
        towards = drawn(*found.shape).detach()
        of_found = torch.autograd.grad(found, [mapped, *weights], towards)
        # So that something depends on them without an edge too.
        expected = expected + 0 * sum(given.sum() for given in (mapped, *weights))
        of_expected = torch.autograd.grad(expected, [mapped, *weights], towards)
    for one, other in zip(of_found, of_expected, strict=True):
        assert_close(one, other)


def test_what_is_no_number_shows_in_its_edges_alone() -> None:
    batch = batch_of(SmallGraph(3, ((0, 1), (1, 0), (1, 2), (2, 1))))
    mapped = torch.ones(3, 4)
    mapped[0] = torch.nan
    weights = [torch.ones(2, 2), torch.zeros(2), torch.ones(1, 2), torch.zeros(1)]
    scores = edge_scores(mapped, batch.adjacency, *weights)
    assert scores.isnan().flatten().tolist() == [0 in edge for edge in batch.edge_index.t().tolist()]


@pytest.mark.parametrize("trains", [True, False])
def test_rows_of_all_edges_are_kept_for_a_gradient_alone(monkeypatch: pytest.MonkeyPatch, trains: bool) -> None:
    batch = batch_of(SmallGraph(3, ((0, 1), (1, 0), (1, 2), (2, 1), (0, 2))))
    made: list[int] = []

    def noted(num_rows: int, width: int, like: Tensor) -> Tensor:
        made.append(num_rows)
        return empty_with_room(num_rows, width, like)

    monkeypatch.setattr("bimp.kernels.edge_scores.BLOCK_EDGES", 2)
    monkeypatch.setattr("bimp.kernels.edge_scores.empty_with_room", noted)
    mapped = torch.ones(3, 4, requires_grad=True)
    with torch.set_grad_enabled(trains):
        edge_scores(mapped, batch.adjacency, torch.ones(2, 2), torch.zeros(2), torch.ones(1, 2), torch.zeros(1))
    assert made == [5 if trains else 2]


def test_the_head_s_scores_are_those_of_both_ends_side_by_side() -> None:
    batch = batch_of(SmallGraph(3, ((0, 1), (1, 2), (2, 1))), ONE_NODE)
    torch.manual_seed(0)
    head = Head(ModelConfig(backbone="gcn", layers=2, hidden_dim=8, placement="none"), task_of("tsp"))
    h = torch.randn(4, 8)
    source, destination = batch.edge_index
    assert_close(head(h, batch), head.scorer(torch.cat([h[source], h[destination]], dim=1)))


@pytest.mark.parametrize("backbone", ["gcn", "gated_gcn"])
def test_ten_training_steps_equal_the_plain_ones(backbone: str) -> None:
    generator = torch.Generator().manual_seed(0)
    edges = {tuple(pair) for pair in torch.randint(40, (400, 2), generator=generator).tolist()}
    graph = SmallGraph(40, tuple(sorted((u, v) for u, v in edges if u != v)))
    of_edges = len(graph.edges)
    batch = batch_of(
        graph,
        x=torch.rand(40, 2, generator=generator),
        edge_attr=torch.rand(of_edges, 1, generator=generator),
        y=torch.randint(2, (of_edges,), generator=generator),
    )
    model = ModelConfig(backbone=backbone, layers=2, hidden_dim=12, placement="none")  # type: ignore[arg-type]

    def ten_steps() -> tuple[list[float], dict[str, Tensor]]:
        torch.manual_seed(0)
        network, losses = Network(model, task_of("tsp")).double().train(), []
        optimizer = torch.optim.Adam(network.parameters(), lr=0.01, eps=1e-3)
        given = GraphBatch(**{**vars_of(batch), "x": batch.x.double(), "edge_attr": batch.edge_attr.double()})
        for _ in range(10):
            loss = supervised_loss("edge_classification", network(given).scores, given.y)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.append(loss.item())
        return losses, network.state_dict()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bimp.kernels.edge_scores.BLOCK_EDGES", 64)
        losses, state = ten_steps()
        patch.setattr("bimp.head.kernels_serve", lambda *_: False)
        plain_losses, plain_state = ten_steps()
    assert losses == pytest.approx(plain_losses, rel=1e-9)
    assert losses[-1] < losses[0]
    assert_close(state, plain_state, rtol=1e-6, atol=1e-9)


def vars_of(batch: GraphBatch) -> dict[str, object]:
    return {name: getattr(batch, name) for name in ("edge_index", "y", "batch", "ptr")}
