"""What the released code computes, layer by layer and for the gate, against plain loops over nodes and edges."""

from __future__ import annotations

import math

import pytest
import torch
from graph_batches import DIRECTED, GRAPHS, PATH, SmallGraph, batch_of, in_edges
from torch import Tensor, nn
from torch.testing import assert_close

from bimp.adjacency import Adjacency
from bimp.gradient import BilateralGate
from bimp.layers.gat import GATLayer
from bimp.layers.gated_gcn import GatedGCNLayer
from bimp.layers.gcn import GCNLayer
from bimp.layers.graphsage import GraphSAGELayer
from bimp.losses import min_cut_loss, orthogonality_loss
from bimp.row_norm import RowNorm

BATCH = batch_of(*GRAPHS)
NODES, EDGES = BATCH.num_nodes, BATCH.num_edges
ENDS: list[list[int]] = BATCH.edge_index.t().tolist()
WIDTH, CLUSTERS = 4, 3


def filled(module: nn.Module, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    for part in module.modules():
        if isinstance(part, RowNorm):
            nn.init.normal_(part.running_mean)
            nn.init.uniform_(part.running_var, 0.5, 2)
    return module.double().eval()


def random_rows(rows: int, width: int = WIDTH, seed: int = 1) -> Tensor:
    return torch.randn(rows, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def norm_of(norm: RowNorm, row: Tensor) -> Tensor:
    return (row - norm.running_mean) / (norm.running_var + 1e-5).sqrt() * norm.weight + norm.bias


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def released_gate(backbone: str) -> BilateralGate:
    guarded = backbone in ("gat", "graphsage")
    return filled(
        BilateralGate(
            WIDTH,
            WIDTH,
            CLUSTERS,
            0.8,
            "bilateral",
            metric_bias=True,
            metric_relu=backbone == "gat",
            distance_epsilon=1e-3 if guarded else 0.0,  # larger than the released one: a slip shows
            normalisation="softmax" if backbone == "graphsage" else "sigmoid",
            epsilon=1e-2,
            cut_scope="batch",
            cut_adjacency="raw",
            cut_epsilon=1e-2 if backbone == "gat" else 0.0,
        )
    )


def beta_by_loop(gate: BilateralGate, backbone: str, s: Tensor) -> list[float]:
    betas = []
    for u, v in ENDS:
        mapped = gate.metric.weight @ (s[u] - s[v]) + gate.metric.bias
        if backbone == "gat":
            mapped = mapped.clamp(min=0)
        epsilon = 1e-3 if backbone in ("gat", "graphsage") else 0.0
        distance = math.sqrt(float(mapped @ mapped) + epsilon)
        betas.append(math.exp(-distance / (2 * 0.8**2) + epsilon))
    return betas


@pytest.mark.parametrize("backbone", ["gcn", "graphsage", "gat", "gated_gcn"])
def test_beta_hat(backbone: str) -> None:
    gate = released_gate(backbone)
    with torch.no_grad():
        output = gate(random_rows(NODES), BATCH)
        betas = beta_by_loop(gate, backbone, output.soft_assignment)
    for v in range(NODES):
        numbers = [number for number, _ in in_edges(BATCH, v)]
        if backbone == "graphsage":
            expected = [math.exp(betas[n]) / sum(math.exp(betas[m]) for m in numbers) for n in numbers]
        else:
            expected = [sigmoid(betas[n]) / (sum(sigmoid(betas[m]) for m in numbers) + 1e-2) for n in numbers]
        assert output.beta_hat[numbers].tolist() == pytest.approx(expected, abs=1e-12)


def test_the_bias_makes_distances_of_equal_assignments_positive_and_directed() -> None:
    gate = released_gate("gcn")
    rows = torch.softmax(random_rows(3, CLUSTERS), 1)
    rows[2] = rows[0]
    gate.requires_grad_(False)
    there, back, same = gate.distance(rows, Adjacency(torch.tensor([[0, 1, 0], [1, 0, 2]]), 3)).tolist()
    assert there != back
    assert same == pytest.approx(float(gate.metric.bias.norm()))


def dense_of_the_batch(graphs: tuple[SmallGraph, ...]) -> Tensor:
    nodes = sum(graph.nodes for graph in graphs)
    adjacency = torch.zeros(nodes, nodes, dtype=torch.float64)
    first = 0
    for graph in graphs:
        for u, v in graph.edges:
            adjacency[first + u, first + v] += 1
        first += graph.nodes
    return adjacency


@pytest.mark.parametrize("graphs", [GRAPHS, (DIRECTED,), (PATH, PATH)])
def test_unsupervised_loss_of_the_whole_batch(graphs: tuple[SmallGraph, ...]) -> None:
    batch = batch_of(*graphs)
    s = torch.softmax(random_rows(batch.num_nodes, CLUSTERS), 1)
    adjacency = dense_of_the_batch(graphs)
    out_degrees = adjacency.sum(1).diag()
    cut = -torch.trace(s.t() @ adjacency @ s) / torch.trace(s.t() @ out_degrees @ s)
    gram, identity = s.t() @ s, torch.eye(CLUSTERS, dtype=torch.float64)
    orthogonality = (gram / gram.norm() - identity / identity.norm()).norm()
    shifted = (gram / (gram + 0.1).norm() - identity / identity.norm()).norm()
    assert_close(min_cut_loss(s, batch, "batch", "raw"), cut)
    assert_close(orthogonality_loss(s, batch, "batch"), orthogonality)
    assert_close(orthogonality_loss(s, batch, "batch", 0.1), shifted)


def test_the_losses_of_one_graph_have_one_scope() -> None:
    batch = batch_of(DIRECTED)
    s = torch.softmax(random_rows(4, CLUSTERS), 1)
    for adjacency in ("normalised", "raw"):
        assert_close(min_cut_loss(s, batch, "graph", adjacency), min_cut_loss(s, batch, "batch", adjacency))
    assert_close(orthogonality_loss(s, batch, "graph"), orthogonality_loss(s, batch, "batch"))


def test_epsilons_of_the_gats_loss() -> None:
    gate = released_gate("gat")
    with torch.no_grad():
        output = gate(random_rows(NODES), BATCH)
    shifted = orthogonality_loss(output.soft_assignment, BATCH, "batch", 1e-2)
    assert output.unsupervised_loss.item() == pytest.approx(output.min_cut.item() - 1e-2 + shifted.item())


@pytest.mark.parametrize("gated", [False, True])
def test_symmetric_gcn(gated: bool) -> None:
    layer = filled(GCNLayer(WIDTH, normalisation="symmetric"))
    h, beta_hat = random_rows(NODES), torch.rand(EDGES, dtype=torch.float64)
    found = layer(h, BATCH.adjacency, beta_hat if gated else None)
    for v in range(NODES):
        total = torch.zeros(WIDTH, dtype=torch.float64)
        for number, u in in_edges(BATCH, v):
            out_degree = sum(source == u for source, _ in ENDS)
            weight = 1 / math.sqrt(out_degree * len(in_edges(BATCH, v)))
            total = total + weight * (beta_hat[number] if gated else 1) * h[u]
        row = layer.update.weight @ total + layer.update.bias
        assert_close(found[v], h[v] + norm_of(layer.norm, row).clamp(min=0), rtol=0, atol=1e-10)


@pytest.mark.parametrize("gated", [False, True])
def test_pooled_graphsage(gated: bool) -> None:
    layer = filled(GraphSAGELayer(WIDTH, concatenated_row="pooled"))
    h, beta_hat = random_rows(NODES), torch.rand(EDGES, dtype=torch.float64)
    found = layer(h, BATCH.adjacency, beta_hat if gated else None)
    pooled = [(layer.pool.weight @ row + layer.pool.bias).clamp(min=0) for row in h]
    for v in range(NODES):
        largest = torch.zeros(WIDTH, dtype=torch.float64)
        for number, u in in_edges(BATCH, v):
            largest = torch.maximum(largest, (beta_hat[number] if gated else 1) * pooled[u])
        row = layer.update.weight @ torch.cat([pooled[v], largest]) + layer.update.bias
        row = (row / row.norm()).clamp(min=0)
        assert_close(found[v], h[v] + norm_of(layer.norm, row), rtol=0, atol=1e-10)


@pytest.mark.parametrize("out_dim", [4, 2], ids=["residual", "narrower"])
def test_gat_head_by_head(out_dim: int) -> None:
    layer = filled(GATLayer(WIDTH, heads=2, out_dim=out_dim, slope=0.01, bias=True))
    h, beta_hat = random_rows(NODES), torch.rand(EDGES, dtype=torch.float64)
    found = layer(h, BATCH.adjacency, beta_hat)
    width = out_dim // 2
    for v in range(NODES):
        heads = []
        for k in range(2):
            rows = slice(k * width, (k + 1) * width)
            z = [layer.projection.weight[rows] @ row + layer.projection.bias[rows] for row in h]
            logits = []
            for _, u in in_edges(BATCH, v):
                concatenated = torch.cat([z[u], z[v]])
                weights = torch.cat([layer.attention_source[k], layer.attention_destination[k]])
                logit = weights @ concatenated + layer.attention_bias[k]
                logits.append(math.exp(logit.item() if logit > 0 else 0.01 * logit.item()))
            head = torch.zeros(width, dtype=torch.float64)
            for (number, u), exponential in zip(in_edges(BATCH, v), logits, strict=True):
                head = head + exponential / sum(logits) * beta_hat[number] * z[u]
            heads.append(head)
        row = norm_of(layer.norm, torch.cat(heads))
        row = torch.where(row > 0, row, row.exp() - 1)
        assert_close(found[v], h[v] + row if out_dim == WIDTH else row, rtol=0, atol=1e-10)


def test_gated_gcn_with_the_raw_gate() -> None:
    layer = filled(GatedGCNLayer(WIDTH, edge_gate="raw"))
    h, e_hat, beta_hat = random_rows(NODES), random_rows(EDGES, seed=2), torch.rand(EDGES, dtype=torch.float64)
    found, found_edges = layer(h, e_hat, BATCH.adjacency, beta_hat)

    def mapped(linear: nn.Linear, row: Tensor) -> Tensor:
        return linear.weight @ row + linear.bias

    raw = [
        mapped(layer.edge_source, h[u]) + mapped(layer.edge_destination, h[v]) + mapped(layer.edge_self, e_hat[n])
        for n, (u, v) in enumerate(ENDS)
    ]
    for n, row in enumerate(raw):
        assert_close(found_edges[n], e_hat[n] + norm_of(layer.edge_norm, row).clamp(min=0), rtol=0, atol=1e-10)
    for v in range(NODES):
        total, gates = torch.zeros(WIDTH, dtype=torch.float64), torch.zeros(WIDTH, dtype=torch.float64)
        for n, u in in_edges(BATCH, v):
            gate = 1 / (1 + (-raw[n]).exp())
            gates = gates + gate
            total = total + gate * beta_hat[n] * mapped(layer.node_source, h[u])
        row = mapped(layer.node_self, h[v]) + total / (gates + 1e-6)
        assert_close(found[v], h[v] + norm_of(layer.node_norm, row).clamp(min=0), rtol=0, atol=1e-10)
