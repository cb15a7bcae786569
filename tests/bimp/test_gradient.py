from __future__ import annotations

import math

import pytest
import torch
from graph_batches import GRAPHS, SmallGraph, batch_of, in_edges, small_graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import functional_call

from bimp.adjacency import Adjacency
from bimp.config import ConfigError
from bimp.gradient import BilateralGate, GateOutput

A, B, C, D = range(4)
FOUR_NODES = SmallGraph(4, ((A, B), (B, A), (A, C), (C, A), (B, C), (C, B), (B, D), (D, B)))
LOG_3 = math.log(3)


def gate_by_hand(gate: str) -> BilateralGate:
    """Assignment layers that hand positive rows on to the softmax, and a metric of which one difference is known."""
    module = BilateralGate(row_dim=2, hidden_dim=2, num_clusters=2, sigma_m=math.sqrt(1.25), gate=gate).double()
    with torch.no_grad():
        for layer in (module.first_assignment, module.second_assignment):
            layer.weight.copy_(torch.eye(2))
            layer.bias.zero_()
        # nn.Linear keeps the transpose of W_m. Its rows (6, 9) and (3, 5) differ by (3, 4), of length 5.
        module.metric.weight.copy_(torch.tensor([[6.0, 9.0], [3.0, 5.0]]).t())
    return module


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def test_four_nodes_worked_out_by_hand() -> None:
    # Rows of logarithms, so that softmax gives round assignments:
    #   s_a = (1/2, 1/2)   s_b = (3/4, 1/4)   s_c = (1/4, 3/4)   s_d = (3/4, 1/4)
    # (the ReLU takes a's row to 0).
    h = torch.tensor([[-1, -2], [LOG_3, 0], [0, LOG_3], [LOG_3, 0]], dtype=torch.float64)
    # A difference of assignments is (t, -t), which W_m maps to t (3, 4): D = 5 |t|.
    #   D(a, b) = D(a, c) = 5/4    D(b, c) = 5/2    D(b, d) = 0
    # With 2 sigma_m^2 = 5/2: beta(a, b) = beta(a, c) = exp(-1/2), beta(b, c) = exp(-1), beta(b, d) = 1.
    near, far, same = sigmoid(math.exp(-0.5)), sigmoid(math.exp(-1)), sigmoid(1.0)
    expected = {
        (B, A): 0.5, (C, A): 0.5,
        (A, B): near / (near + far + same), (C, B): far / (near + far + same), (D, B): same / (near + far + same),
        (A, C): near / (near + far), (B, C): far / (near + far),
        (B, D): 1.0,
    }  # fmt: skip
    assert expected[(A, B)] == pytest.approx(0.32864, abs=1e-5)
    # Degrees 2, 3, 2, 1: weights of A~ are 1/sqrt(6) for ab and bc, 1/2 for ac, 1/sqrt(3) for bd.
    ab, ac, bd = 1 / math.sqrt(6), 1 / 2, 1 / math.sqrt(3)
    # Products of assignments: ab and ac 1/2, bc 3/8, bd 5/8; squares: a 1/2, the others 5/8.
    cut = 2 * (ab * 1 / 2 + ac * 1 / 2 + ab * 3 / 8 + bd * 5 / 8)
    volume = (ab + ac) * 1 / 2 + ((2 * ab + bd) + (ac + ab) + bd) * 5 / 8
    # S^T S = 1/16 (23, 13; 13, 15), of Frobenius norm sqrt(23^2 + 15^2 + 2 * 13^2) / 16 = sqrt(1092) / 16.
    norm, diagonal = math.sqrt(1092), 1 / math.sqrt(2)
    orthogonality = math.sqrt((23 / norm - diagonal) ** 2 + (15 / norm - diagonal) ** 2 + 2 * (13 / norm) ** 2)

    batch = batch_of(FOUR_NODES)
    output = gate_by_hand("bilateral")(h, batch)

    assert output.soft_assignment[C].tolist() == pytest.approx([0.25, 0.75])
    found = dict(zip(map(tuple, batch.edge_index.t().tolist()), output.beta_hat.tolist(), strict=True))
    assert found == pytest.approx(expected, abs=1e-12)
    assert output.unsupervised_loss.item() == pytest.approx(-cut / volume + orthogonality, abs=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gate": "unifrom"}, "gate: found 'unifrom', expected one of bilateral, uniform"),
        ({"normalisation": "sofmax"}, "normalisation: found 'sofmax', expected one of sigmoid, softmax"),
        ({"cut_scope": "node"}, "cut_scope: found 'node', expected one of graph, batch"),
        ({"cut_adjacency": "plain"}, "cut_adjacency: found 'plain', expected one of normalised, raw"),
        ({"num_clusters": 0}, "num_clusters: found 0, expected a whole number of 1 or more"),
        ({"num_clusters": 2.5}, "num_clusters: found 2.5, expected a whole number of 1 or more"),
        ({"hidden_dim": 0}, "hidden_dim: found 0, expected a whole number of 1 or more"),
        ({"sigma_m": 0.0}, "sigma_m: found 0.0, expected a number above 0"),
        ({"sigma_m": math.nan}, "sigma_m: found nan, expected a number above 0"),
    ],
)
def test_a_gate_that_there_is_not_is_refused(settings: dict[str, object], message: str) -> None:
    given = {"row_dim": 2, "hidden_dim": 2, "num_clusters": 2, "sigma_m": 1.0, "gate": "bilateral"}
    with pytest.raises(ConfigError, match=f"^{message}$"):
        BilateralGate(**{**given, **settings})  # type: ignore[arg-type]


def test_uniform_gate_differs_in_beta_hat_alone() -> None:
    torch.manual_seed(0)
    batch = batch_of(*GRAPHS)
    h = torch.randn(batch.num_nodes, 6)
    bilateral = BilateralGate(6, 5, 3, 1.0, "bilateral")
    uniform = BilateralGate(6, 5, 3, 1.0, "uniform")
    shapes = {name: value.shape for name, value in bilateral.state_dict().items()}
    assert shapes == {name: value.shape for name, value in uniform.state_dict().items()}
    uniform.load_state_dict(bilateral.state_dict())

    from_bilateral, from_uniform = bilateral(h, batch), uniform(h, batch)
    assert torch.equal(from_uniform.soft_assignment, from_bilateral.soft_assignment)
    assert torch.equal(from_uniform.unsupervised_loss, from_bilateral.unsupervised_loss)
    for node in range(batch.num_nodes):
        edges = in_edges(batch, node)
        for number, _ in edges:
            assert from_uniform.beta_hat[number].item() == pytest.approx(1 / len(edges))
    assert not torch.allclose(from_uniform.beta_hat, from_bilateral.beta_hat, atol=1e-4)


def test_bias_free_metric_makes_distance_symmetric_and_zero_for_equal_assignments() -> None:
    torch.manual_seed(0)
    gate = BilateralGate(4, 4, 3, 1.0, "bilateral")
    rows = torch.softmax(torch.randn(3, 3), 1)
    rows[2] = rows[0]
    there_and_back = torch.tensor([[0, 1, 0, 2], [1, 0, 2, 0]])
    forward, backward, same, _ = gate.distance(rows, Adjacency(there_and_back, 3)).tolist()
    assert forward == backward > 0
    assert same == 0


def test_distance_zero_has_gradient_zero() -> None:
    gate = BilateralGate(4, 4, 3, 1.0, "bilateral")
    rows = torch.full((2, 3), 1 / 3, requires_grad=True)
    gate.distance(rows, Adjacency(torch.tensor([[0], [1]]), 2)).sum().backward()
    assert rows.grad is not None
    assert torch.equal(rows.grad, torch.zeros(2, 3))
    assert torch.equal(gate.metric.weight.grad, torch.zeros(3, 3))


@pytest.mark.parametrize("sigma_m", [0.3, 1.0])
def test_gradients_against_finite_differences(sigma_m: float) -> None:
    torch.manual_seed(1)
    batch = batch_of(*GRAPHS)
    gate = BilateralGate(4, 3, 3, sigma_m, "bilateral").double()
    names = [name for name, _ in gate.named_parameters()]
    h = torch.randn(batch.num_nodes, 4, dtype=torch.float64, requires_grad=True)

    def outputs(h: torch.Tensor, *parameters: torch.Tensor) -> tuple[torch.Tensor, ...]:
        output: GateOutput = functional_call(gate, dict(zip(names, parameters, strict=True)), (h, batch))
        return output.beta_hat, output.soft_assignment, output.unsupervised_loss

    assert torch.autograd.gradcheck(outputs, (h, *gate.parameters()))


@settings(max_examples=150, deadline=None)
@given(
    graphs=st.lists(small_graphs(), min_size=1, max_size=3),
    num_clusters=st.integers(1, 4),
    log_sigma=st.floats(-3, 3),
    scale=st.sampled_from([0.0, 1e-20, 1e-4, 1.0, 1e3]),
    gate=st.sampled_from(["bilateral", "uniform"]),
    seed=st.integers(0, 1000),
)
def test_everything_stays_finite(
    graphs: list[SmallGraph], num_clusters: int, log_sigma: float, scale: float, gate: str, seed: int
) -> None:
    torch.manual_seed(seed)
    batch = batch_of(*graphs)
    module = BilateralGate(4, 4, num_clusters, 10**log_sigma, gate)
    h = (torch.ones(batch.num_nodes, 4) + scale * torch.randn(batch.num_nodes, 4)).requires_grad_()
    output = module(h, batch)
    loss = (output.beta_hat * torch.randn(batch.num_edges)).sum() + output.unsupervised_loss
    loss.backward()

    assert loss.isfinite()
    for node in range(batch.num_nodes):
        numbers = [number for number, _ in in_edges(batch, node)]
        if numbers:
            assert output.beta_hat[numbers].sum().item() == pytest.approx(1, abs=1e-5)
    gradients = [h.grad, *(parameter.grad for parameter in module.parameters())]
    assert all(gradient.isfinite().all() for gradient in gradients if gradient is not None)
    assert h.grad is not None
