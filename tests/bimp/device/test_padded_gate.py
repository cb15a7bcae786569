"""The gate on padded batches, by functions written out, against the plain one on the real graphs alone."""

from __future__ import annotations

import pytest
import torch
from drawn_graphs import drawn, without_kernels
from torch.testing import assert_close

from bimp.device.resident import ResidentGraphs
from bimp.device.shapes import Shape
from bimp.gradient import BilateralGate
from bimp.padded.assignment_losses import min_cut_and_orthogonality
from bimp.padded.edge_shares import beta_hat_of


@pytest.mark.parametrize("clusters", [1, 2, 5])
@pytest.mark.parametrize("settings", [{}, {"epsilon": 0.1}, {"metric_bias": True}, {"distance_epsilon": 0.1}], ids=str)
@pytest.mark.parametrize("spare", [(1, 0), (4, 6)], ids=["one node", "nodes and edges"])
def test_padding_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, clusters: int, settings: dict[str, float], spare: tuple[int, int]
) -> None:
    without_kernels(monkeypatch)
    graphs = drawn("digits", 30).graphs
    picks = torch.arange(12)
    alone = graphs.gather(picks)
    assert bool((graphs.edge_counts[picks] == 0).any())
    shape = Shape(12, alone.num_nodes + spare[0], alone.num_edges + spare[1])
    padded = ResidentGraphs.of(graphs, torch.device("cpu")).gather(picks, shape, padded=True)
    torch.manual_seed(2)
    gate = BilateralGate(6, 5, clusters, 0.7, "bilateral", **settings).double()  # type: ignore[arg-type]
    rows = torch.randn(shape.nodes, 6, dtype=torch.float64)
    factors = torch.randn(alone.num_edges, dtype=torch.float64)
    results = []
    for batch, count in ((alone, alone.num_nodes), (padded, shape.nodes)):
        given = rows[:count].clone().requires_grad_()
        output = gate(given, batch)
        loss = (output.beta_hat[: alone.num_edges] * factors).sum() + output.min_cut + 2 * output.orthogonality
        grads = torch.autograd.grad(loss, [given, *gate.parameters()])
        assert not grads[0][alone.num_nodes :].any()
        results.append((loss, output.min_cut, output.orthogonality, grads[0][: alone.num_nodes], *grads[1:]))
    assert_close(results[1], results[0])


def test_equal_assignments_have_equal_shares_and_no_gradient() -> None:
    graphs = drawn("digits", 12).graphs
    batch = graphs.gather(torch.arange(12))
    mapped = torch.rand(3, dtype=torch.float64).repeat(batch.num_nodes, 1).requires_grad_()
    shares = beta_hat_of(mapped, batch.adjacency, 1.0, 0.0)
    assert_close(shares.detach(), batch.adjacency.shares(torch.float64))
    (shares * torch.randn(batch.num_edges)).sum().backward()
    assert mapped.grad is not None
    assert not mapped.grad.any()


@pytest.mark.parametrize("factor", [1.0, 100.0])
def test_an_orthogonal_assignment_has_no_gradient_however_the_loss_is_weighted(factor: float) -> None:
    # Of one cluster S^T S is 1 by 1, and its direction 1: the distance from the identity is 0.
    graphs = drawn("digits", 12).graphs
    picks = graphs.edge_counts.argmax().view(1)
    alone = graphs.gather(picks)
    shape = Shape(1, alone.num_nodes + 1, alone.num_edges)
    batch = ResidentGraphs.of(graphs, torch.device("cpu")).gather(picks, shape, padded=True)
    soft_assignment = torch.ones(shape.nodes, 1, requires_grad=True)
    _, orthogonality = min_cut_and_orthogonality(soft_assignment, batch)
    assert orthogonality.item() == 0
    (grad,) = torch.autograd.grad(factor * orthogonality, soft_assignment)
    assert torch.equal(grad, torch.zeros_like(grad))
