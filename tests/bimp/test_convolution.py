"""The gate around convolutions of PyTorch Geometric, against plain loops over edges in float64."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import (
    FAConv,
    GATConv,
    GCN2Conv,
    GCNConv,
    GINEConv,
    GraphConv,
    HGTConv,
    MessagePassing,
    PointNetConv,
    RGCNConv,
    SAGEConv,
    Sequential,
)

import bimp
from bimp import BilateralConv, gated_convolution

K, SIGMA = 3, 0.6
# Two graphs, their columns in no order: 0 to 3 with a node 3 that nothing reaches, and 4 to 6.
EDGES = [(1, 0), (0, 1), (5, 4), (2, 1), (3, 1), (4, 6), (0, 2), (1, 2), (4, 5), (6, 5), (2, 0), (6, 4)]
EDGE_INDEX = torch.tensor(EDGES).t().contiguous()
BATCH = torch.tensor([0, 0, 0, 0, 1, 1, 1])
NODES = 7


@pytest.fixture(autouse=True)
def _double() -> object:
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(4)
    yield
    torch.set_default_dtype(torch.float32)


def loop_assignment(conv: BilateralConv, x: Tensor) -> list[Tensor]:
    """Equation 5, node by node."""
    first, second = conv.gate.first_assignment, conv.gate.second_assignment
    rows = []
    for row in x:
        hidden = (first.weight @ row + first.bias).clamp(min=0)
        exponentials = (second.weight @ hidden + second.bias).exp()
        rows.append(exponentials / exponentials.sum())
    return rows


def loop_beta_hat(conv: BilateralConv, x: Tensor, edges: list[tuple[int, int]] = EDGES) -> list[Tensor]:
    """Equations 8 to 10, edge by edge, in the order of ``edges``."""
    assignment = loop_assignment(conv, x)
    sigmoids = []
    for u, v in edges:
        distance = (conv.gate.metric.weight @ (assignment[u] - assignment[v])).square().sum().sqrt()
        beta = torch.exp(-distance / (2 * SIGMA**2))
        sigmoids.append(1 / (1 + torch.exp(-beta)))
    return [
        sigmoid / sum(other for other, (_, w) in zip(sigmoids, edges, strict=True) if w == v)
        for sigmoid, (_, v) in zip(sigmoids, edges, strict=True)
    ]


def test_graph_conv_weighs_each_neighbour_by_beta_hat() -> None:
    conv = BilateralConv(GraphConv(5, 4), row_dim=5, num_clusters=K, sigma_m=SIGMA)
    x = torch.randn(NODES, 5)
    own, neighbours = conv.conv.lin_root, conv.conv.lin_rel
    expected = [own.weight @ x[v] + neighbours.bias for v in range(NODES)]
    for (u, v), beta_hat in zip(EDGES, loop_beta_hat(conv, x), strict=True):
        expected[v] = expected[v] + beta_hat * (neighbours.weight @ x[u])
    torch.testing.assert_close(conv(x, EDGE_INDEX), torch.stack(expected), rtol=0, atol=1e-12)


def test_gcn_conv_normalises_beta_hat_with_its_self_loops() -> None:
    conv = BilateralConv(GCNConv(5, 4), row_dim=5, num_clusters=K, sigma_m=SIGMA)
    x = torch.randn(NODES, 5)
    weighted = [(u, v, beta_hat) for (u, v), beta_hat in zip(EDGES, loop_beta_hat(conv, x), strict=True)]
    weighted += [(v, v, torch.tensor(1.0)) for v in range(NODES)]
    degree = [sum(weight for _, w, weight in weighted if w == v) for v in range(NODES)]
    # beta_hat sums to 1, so every node that is reached has the degree 2, and node 3 the degree 1.
    torch.testing.assert_close(torch.stack(degree), torch.tensor([2.0, 2, 2, 1, 2, 2, 2]))
    expected = [conv.conv.bias for _ in range(NODES)]
    for u, v, weight in weighted:
        expected[v] = expected[v] + weight / (degree[u] * degree[v]).sqrt() * (conv.conv.lin.weight @ x[u])
    torch.testing.assert_close(conv(x, EDGE_INDEX), torch.stack(expected), rtol=0, atol=1e-12)


def test_gine_conv_has_its_messages_scaled_after_their_relu() -> None:
    conv = BilateralConv(GINEConv(nn.Linear(5, 4), eps=0.3), row_dim=5, num_clusters=K, sigma_m=SIGMA)
    x, edge_attr = torch.randn(NODES, 5), torch.randn(len(EDGES), 5)
    summed = [1.3 * x[v] for v in range(NODES)]
    for (u, v), beta_hat, attributes in zip(EDGES, loop_beta_hat(conv, x), edge_attr, strict=True):
        summed[v] = summed[v] + beta_hat * (x[u] + attributes).clamp(min=0)
    expected = torch.stack([conv.conv.nn.weight @ row + conv.conv.nn.bias for row in summed])
    torch.testing.assert_close(conv(x, EDGE_INDEX, edge_attr=edge_attr), expected, rtol=0, atol=1e-12)
    # The convolution itself is left as it was.
    plain = conv.conv(x, EDGE_INDEX, edge_attr)
    torch.testing.assert_close(gated_convolution(conv.conv, x, EDGE_INDEX, edge_attr=edge_attr), plain)
    assert not torch.allclose(plain, expected)


@pytest.mark.parametrize("made", [lambda: GraphConv(5, 4), lambda: GCNConv(5, 4)], ids=["GraphConv", "GCNConv"])
def test_a_uniform_gate_is_the_weight_of_one_over_the_degree(made: type[MessagePassing]) -> None:
    conv = BilateralConv(made(), row_dim=5, num_clusters=K, gate="uniform")
    x = torch.randn(NODES, 5)
    in_degree = [sum(w == v for _, w in EDGES) for v in range(NODES)]
    weights = torch.tensor([1 / in_degree[v] for _, v in EDGES])
    rows, gate = conv(x, EDGE_INDEX, return_gate=True)
    torch.testing.assert_close(gate.beta_hat, weights)
    torch.testing.assert_close(rows, conv.conv(x, EDGE_INDEX, weights))


def test_a_uniform_gate_makes_the_sum_of_gine_a_mean() -> None:
    conv = BilateralConv(GINEConv(nn.Identity(), edge_dim=None), row_dim=5, num_clusters=K, gate="uniform")
    x, edge_attr = torch.randn(NODES, 5), torch.zeros(len(EDGES), 5)
    averaging = GINEConv(nn.Identity(), aggr="mean")
    torch.testing.assert_close(conv(x, EDGE_INDEX, edge_attr=edge_attr), averaging(x, EDGE_INDEX, edge_attr))


def test_the_gate_tells_beta_hat_in_the_order_of_the_edges_and_the_loss_of_each_graph() -> None:
    conv = BilateralConv(SAGEConv(5, 4), row_dim=5, num_clusters=K, sigma_m=SIGMA)
    x = torch.randn(NODES, 5)
    _, gate = conv(x, EDGE_INDEX, BATCH, return_gate=True)
    torch.testing.assert_close(gate.beta_hat, torch.stack(loop_beta_hat(conv, x)), rtol=0, atol=1e-12)
    assignment = loop_assignment(conv, x)
    torch.testing.assert_close(gate.soft_assignment, torch.stack(assignment), rtol=0, atol=1e-12)
    losses = [loop_loss(assignment, start, end) for start, end in pairwise((0, 4, 7))]
    torch.testing.assert_close(gate.unsupervised_loss, (losses[0] + losses[1]) / 2, rtol=0, atol=1e-12)


def loop_loss(assignment: list[Tensor], start: int, end: int) -> Tensor:
    """Equation 7 of one graph as matrices, its adjacency made undirected by (A + A^T) / 2."""
    nodes = end - start
    adjacency = torch.zeros(nodes, nodes)
    for u, v in EDGES:
        if start <= u < end:
            adjacency[u - start, v - start] += 0.5
            adjacency[v - start, u - start] += 0.5
    root = adjacency.sum(1).diag().pinverse().sqrt()
    normalised = root @ adjacency @ root
    s = torch.stack(assignment[start:end])
    cut = -torch.trace(s.T @ normalised @ s) / torch.trace(s.T @ normalised.sum(1).diag() @ s)
    gram = s.T @ s
    return cut + (gram / gram.norm() - torch.eye(K) / K**0.5).norm()


def test_reversed_messages_are_gated_at_the_node_they_reach() -> None:
    conv = BilateralConv(GraphConv(5, 4), row_dim=5, num_clusters=K, sigma_m=SIGMA)
    backwards = BilateralConv(GraphConv(5, 4, flow="target_to_source"), row_dim=5, num_clusters=K, sigma_m=SIGMA)
    backwards.load_state_dict(conv.state_dict())
    x = torch.randn(NODES, 5)
    torch.testing.assert_close(backwards(x, EDGE_INDEX.flip(0)), conv(x, EDGE_INDEX))


def test_attention_heads_share_the_gate() -> None:
    conv = BilateralConv(GATConv(5, 4, heads=2, add_self_loops=False), row_dim=5, num_clusters=K, sigma_m=SIGMA)
    x = torch.randn(NODES, 5)
    _, (_, attention) = conv.conv(x, EDGE_INDEX, return_attention_weights=True)
    projected = conv.conv.lin(x).view(NODES, 2, 4)
    expected = [torch.zeros(2, 4) for _ in range(NODES)]
    for (u, v), beta_hat, weights in zip(EDGES, loop_beta_hat(conv, x), attention, strict=True):
        expected[v] = expected[v] + beta_hat * weights.unsqueeze(1) * projected[u]
    torch.testing.assert_close(conv(x, EDGE_INDEX), torch.stack(expected).flatten(1) + conv.conv.bias)


def test_an_edge_weight_of_ones_own_is_multiplied_by_the_gate() -> None:
    conv = BilateralConv(GraphConv(5, 4), row_dim=5, num_clusters=K, sigma_m=SIGMA)
    x, weight = torch.randn(NODES, 5), torch.rand(len(EDGES))
    rows, gate = conv(x, EDGE_INDEX, edge_weight=weight, return_gate=True)
    torch.testing.assert_close(rows, conv.conv(x, EDGE_INDEX, weight * gate.beta_hat))


def test_gradients_reach_the_gate_through_scaled_messages_and_through_sequential() -> None:
    conv = BilateralConv(SAGEConv(5, 4), row_dim=5, num_clusters=K)
    model = Sequential("x, edge_index", [(conv, "x, edge_index -> x"), nn.ReLU()])
    model(torch.randn(NODES, 5), EDGE_INDEX).square().sum().backward()
    assert float(conv.gate.metric.weight.grad.abs().max()) > 0


def test_what_cannot_be_gated_is_told_in_one_line() -> None:
    x = torch.randn(NODES, 5)
    with pytest.raises(ValueError, match=r"^conv: found GCNConv with cached=True, expected cached=False: .* next$"):
        BilateralConv(GCNConv(5, 4, cached=True), row_dim=5, num_clusters=K)
    with pytest.raises(TypeError, match=r"^conv: found Linear, expected a MessagePassing of PyTorch Geometric$"):
        BilateralConv(nn.Linear(5, 4), row_dim=5, num_clusters=K)
    kinds = HGTConv(5, 4, (["atom"], [("atom", "bond", "atom")]))
    with pytest.raises(
        ValueError, match=r"^conv: found HGTConv of nodes of several kinds, expected one of a single kind$"
    ):
        BilateralConv(kinds, row_dim=5, num_clusters=K)
    loops = BilateralConv(GATConv(5, 4), row_dim=5, num_clusters=K)
    with pytest.raises(ValueError, match=r"^conv: GATConv sends messages along 19 edges that are not the 12 given"):
        loops(x, EDGE_INDEX)
    assert not loops.conv._message_forward_hooks  # nothing of the failed call stays behind
    relations = BilateralConv(RGCNConv(5, 4, 2), row_dim=5, num_clusters=K)
    with pytest.raises(ValueError, match=r"^conv: RGCNConv sends messages along 6 edges .* it cannot be gated$"):
        relations(x, EDGE_INDEX, edge_type=torch.arange(len(EDGES)) % 2)
    with pytest.raises(ValueError, match=r"^conv: FAConv as it is made takes no edge_weight.* with normalize=False$"):
        BilateralConv(FAConv(5), row_dim=5, num_clusters=K)(x, EDGE_INDEX, x_0=x)


X = torch.arange(35, dtype=torch.float64).view(7, 5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": (X, X)}, r"x: found tuple, expected one tensor \[nodes, 5\], of one node or more"),
        ({"x": X[:, :4]}, r"x: found \[7, 4\], expected one tensor \[nodes, 5\], of one node or more"),
        ({"x": X[:0]}, r"x: found \[0, 5\], expected one tensor \[nodes, 5\], of one node or more"),
        ({"x": X.float()}, r"x: found torch.float32, expected torch.float64 as the gate has it; .*"),
        ({"edge_index": EDGES}, r"edge_index: found list, expected a dense tensor \[2, edges\]"),
        ({"edge_index": EDGE_INDEX.t()}, r"edge_index: found torch.strided \[12, 2\], expected a dense .*"),
        ({"edge_index": torch.empty(2, 0)}, "edge_index: found torch.float32, expected torch.int64"),
        ({"edge_index": EDGE_INDEX + 1}, "edge_index: found nodes 1 to 7, expected 0 to 6 as x has them"),
        ({"edge_index": EDGE_INDEX - 1}, "edge_index: found nodes -1 to 5, expected 0 to 6 as x has them"),
        ({"edge_index": EDGE_INDEX.to("meta")}, "edge_index: found on meta, expected on cpu as x is"),
        ({"batch": torch.rand(12)}, r"batch: found \[12\], expected the graph of each of 7 nodes; .* by its name"),
        ({"batch": BATCH.double()}, "batch: found torch.float64, expected torch.int64"),
        ({"batch": BATCH * 2}, "batch: found graphs out of order, expected their numbers ascending .* without gaps"),
        (
            {"batch": BATCH.flip(0)},
            "batch: found graphs out of order, expected their numbers ascending .* without gaps",
        ),
        ({"batch": BATCH + 1}, "batch: found graphs out of order, expected their numbers ascending .* without gaps"),
        ({"batch": torch.tensor([0, 0, 1, 1, 2, 2, 2])}, "batch: found an edge from one graph to another, .*"),
        ({"edge_weight": torch.rand(12, 1)}, r"edge_weight: found \[12, 1\], expected \[12\], one for each edge"),
        ({"edge_weight": torch.rand(1)}, r"edge_weight: found \[1\], expected \[12\], one for each edge"),
    ],
)
def test_a_graph_that_is_none_is_told_in_one_line(given: dict[str, object], message: str) -> None:
    conv = BilateralConv(GraphConv(5, 4), row_dim=5, num_clusters=K)
    with pytest.raises(ValueError, match=f"^{message}$"):
        conv(**{"x": X, "edge_index": EDGE_INDEX, **given})


def test_a_factor_of_all_edges_is_no_beta_hat() -> None:
    for conv in (GraphConv(5, 4), SAGEConv(5, 4)):
        with pytest.raises(ValueError, match=r"^beta_hat: found \[1\], expected \[12\], one for each edge$"):
            gated_convolution(conv, X, EDGE_INDEX, torch.ones(1))
    with pytest.raises(ValueError, match=r"^edge_index: found torch.sparse_coo \[7, 7\], expected a dense tensor"):
        gated_convolution(SAGEConv(5, 4), X, torch.eye(7).to_sparse(), torch.ones(7))


ODD_GRAPHS = {
    "no edges": (3, []),
    "one node": (1, []),
    "one node that hears itself": (1, [(0, 0)]),
    "copies of edges": (3, [(0, 1), (2, 1), (0, 1), (0, 1), (1, 0)]),
    "self-loops": (3, [(1, 1), (0, 1), (0, 0), (2, 1)]),
    "isolated nodes": (6, [(4, 1), (1, 4)]),
}


@pytest.mark.parametrize("numbers", [torch.int64, torch.int32])
@pytest.mark.parametrize("graph", ODD_GRAPHS)
def test_odd_graphs_are_gated_as_any(graph: str, numbers: torch.dtype) -> None:
    nodes, edges = ODD_GRAPHS[graph]
    conv = BilateralConv(GraphConv(5, 4), row_dim=5, num_clusters=K, sigma_m=SIGMA)
    x, edge_index = torch.randn(nodes, 5), torch.tensor(edges, dtype=numbers).view(-1, 2).t()
    expected = [conv.conv.lin_root.weight @ x[v] + conv.conv.lin_rel.bias for v in range(nodes)]
    for (u, v), beta_hat in zip(edges, loop_beta_hat(conv, x, edges), strict=True):
        expected[v] = expected[v] + beta_hat * (conv.conv.lin_rel.weight @ x[u])
    rows, gate = conv(x, edge_index, return_gate=True)
    torch.testing.assert_close(rows, torch.stack(expected), rtol=0, atol=1e-12)
    assert gate.unsupervised_loss.isfinite()
    assert gate.beta_hat.shape == (len(edges),)


def test_numbers_of_nodes_in_int32_are_taken_at_any_width() -> None:
    x = torch.randn(NODES, 32)  # rows of 16 numbers and more are summed by another way, for which int64 is needed
    for made in (GraphConv(32, 4), SAGEConv(32, 4), GINEConv(nn.Linear(32, 4), edge_dim=1)):
        conv = BilateralConv(made, row_dim=32, num_clusters=K, sigma_m=SIGMA)
        inputs = {"edge_attr": torch.ones(len(EDGES), 1)} if isinstance(made, GINEConv) else {}
        assert torch.equal(conv(x, EDGE_INDEX.int(), BATCH.int(), **inputs), conv(x, EDGE_INDEX, BATCH, **inputs))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_other_precisions_are_near(dtype: torch.dtype) -> None:
    conv = BilateralConv(SAGEConv(5, 4), row_dim=5, num_clusters=K, sigma_m=SIGMA)
    x = torch.randn(NODES, 5)
    rows, gate = conv(x, EDGE_INDEX, BATCH, return_gate=True)
    found, of_gate = conv.to(dtype)(x.to(dtype), EDGE_INDEX, BATCH, return_gate=True)
    assert found.dtype == of_gate.beta_hat.dtype == dtype
    tolerance = 20 * torch.finfo(dtype).eps
    torch.testing.assert_close(found.double(), rows, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(of_gate.beta_hat.double(), gate.beta_hat, rtol=tolerance, atol=tolerance)


def test_edges_that_do_not_come_second_are_told_by_their_name() -> None:
    x, position = torch.randn(NODES, 5), torch.randn(NODES, 3)
    conv = BilateralConv(PointNetConv(add_self_loops=False), row_dim=5, num_clusters=K, sigma_m=SIGMA)
    expected = [[torch.zeros(8)] if v == 3 else [] for v in range(NODES)]  # nothing reaches node 3
    for (u, v), beta_hat in zip(EDGES, loop_beta_hat(conv, x), strict=True):
        expected[v].append(beta_hat * torch.cat([x[u], position[u] - position[v]]))
    largest = torch.stack([torch.stack(messages).amax(0) for messages in expected])
    torch.testing.assert_close(conv(x, EDGE_INDEX, pos=position), largest, rtol=0, atol=1e-12)
    for made in (GCN2Conv(5, 0.1, normalize=False), FAConv(5, normalize=False)):
        conv = BilateralConv(made, row_dim=5, num_clusters=K, sigma_m=SIGMA).eval()
        rows = conv(x, EDGE_INDEX, x_0=x)
        torch.testing.assert_close(rows, made(x, x, EDGE_INDEX, torch.stack(loop_beta_hat(conv, x))))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("made", [lambda: SAGEConv(5, 4), lambda: GraphConv(5, 4)], ids=["SAGEConv", "GraphConv"])
def test_compiled_it_gives_the_same(made: type[MessagePassing]) -> None:
    conv = BilateralConv(made(), row_dim=5, num_clusters=K, sigma_m=SIGMA)
    torch.compiler.reset()
    compiled = torch.compile(conv, backend="eager")
    torch.testing.assert_close(compiled(X, EDGE_INDEX), conv(X, EDGE_INDEX))


def test_importing_bimp_loads_no_torch() -> None:
    code = "import sys, bimp; print('torch' in sys.modules); bimp.BilateralConv; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "True"]
    with pytest.raises(AttributeError, match="BilateralConvolution"):
        _ = bimp.BilateralConvolution
