from __future__ import annotations

import math

import pytest
import torch
from graph_batches import DIRECTED, GRAPHS, ONE_NODE, PATH, SmallGraph, batch_of, small_graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bimp.losses import min_cut_loss, orthogonality_loss, supervised_loss

LISTS_OF_GRAPHS = st.lists(small_graphs(), min_size=1, max_size=4)


def assignment_for(graphs: list[SmallGraph], num_clusters: int, seed: int) -> Tensor:
    torch.manual_seed(seed)
    nodes = sum(graph.nodes for graph in graphs)
    return torch.softmax(2 * torch.randn(nodes, num_clusters, dtype=torch.float64), 1)


def per_graph(graphs: list[SmallGraph], soft_assignment: Tensor) -> list[tuple[SmallGraph, Tensor]]:
    return list(zip(graphs, soft_assignment.split([graph.nodes for graph in graphs]), strict=True))


def dense_min_cut(graph: SmallGraph, s: Tensor) -> float:
    adjacency = torch.zeros(graph.nodes, graph.nodes, dtype=torch.float64)
    for u, v in graph.edges:
        adjacency[u, v] += 1
    adjacency = (adjacency + adjacency.t()) / 2
    scales = [1 / math.sqrt(total) if total else 0.0 for total in adjacency.sum(1).tolist()]
    scale = torch.tensor(scales, dtype=torch.float64)
    normalised = scale.diag() @ adjacency @ scale.diag()
    if not graph.edges:
        return 0.0
    cut = torch.trace(s.t() @ normalised @ s)
    return float(-cut / torch.trace(s.t() @ normalised.sum(1).diag() @ s))


def dense_orthogonality(s: Tensor) -> float:
    gram = s.t() @ s
    clusters = s.shape[1]
    difference = gram / gram.square().sum().sqrt() - torch.eye(clusters, dtype=torch.float64) / math.sqrt(clusters)
    return float(difference.square().sum().sqrt())


@settings(max_examples=60, deadline=None)
@given(graphs=LISTS_OF_GRAPHS, num_clusters=st.integers(1, 4), seed=st.integers(0, 100))
def test_min_cut_is_the_mean_of_dense_matrices(graphs: list[SmallGraph], num_clusters: int, seed: int) -> None:
    soft_assignment = assignment_for(graphs, num_clusters, seed)
    each = [dense_min_cut(graph, s) for graph, s in per_graph(graphs, soft_assignment)]
    assert all(-1 - 1e-12 <= value <= 0 for value in each)
    found = min_cut_loss(soft_assignment, batch_of(*graphs)).item()
    assert found == pytest.approx(sum(each) / len(each), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(graphs=LISTS_OF_GRAPHS, num_clusters=st.integers(1, 4), seed=st.integers(0, 100))
def test_orthogonality_is_the_mean_of_dense_matrices(graphs: list[SmallGraph], num_clusters: int, seed: int) -> None:
    soft_assignment = assignment_for(graphs, num_clusters, seed)
    each = [dense_orthogonality(s) for _, s in per_graph(graphs, soft_assignment)]
    found = orthogonality_loss(soft_assignment, batch_of(*graphs)).item()
    assert found == pytest.approx(sum(each) / len(each), abs=1e-12)


def test_min_cut_of_whole_clusters_is_minus_one() -> None:
    two_pairs = SmallGraph(4, ((0, 1), (1, 0), (2, 3), (3, 2)))
    apart = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    across = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    assert min_cut_loss(apart, batch_of(two_pairs)).item() == pytest.approx(-1)
    assert min_cut_loss(across, batch_of(two_pairs)).item() == 0
    assert orthogonality_loss(apart, batch_of(two_pairs)).item() == pytest.approx(0, abs=1e-7)


def test_min_cut_takes_copies_of_an_edge_as_its_weight() -> None:
    doubled = SmallGraph(3, (*PATH.edges, (0, 1), (1, 0)))
    s = assignment_for([PATH], 2, seed=0)
    assert min_cut_loss(s, batch_of(doubled)).item() == pytest.approx(dense_min_cut(doubled, s))
    assert dense_min_cut(doubled, s) != pytest.approx(dense_min_cut(PATH, s))


def test_min_cut_of_a_graph_without_edges_is_zero() -> None:
    s = assignment_for([ONE_NODE, DIRECTED], 3, seed=0)
    expected = dense_min_cut(DIRECTED, s[1:]) / 2
    assert min_cut_loss(s, batch_of(ONE_NODE, DIRECTED)).item() == pytest.approx(expected)


@pytest.mark.parametrize("loss", [min_cut_loss, orthogonality_loss])
def test_gradients_against_finite_differences(loss) -> None:  # type: ignore[no-untyped-def]
    batch = batch_of(*GRAPHS)
    s = assignment_for(list(GRAPHS), 3, seed=0).requires_grad_()
    assert torch.autograd.gradcheck(lambda s: loss(s, batch), s)


def test_regression_is_l1() -> None:
    assert supervised_loss("graph_regression", torch.tensor([1.0, 4.0]), torch.tensor([0.0, 1.0])).item() == 2


def test_labels_of_a_regression_in_a_column_are_refused() -> None:
    # Every score beside every label: it would be 2 here too, and another number elsewhere.
    with pytest.raises(ValueError, match=r"^y: found \[2, 1\], expected \[2\], one label a graph$"):
        supervised_loss("graph_regression", torch.tensor([1.0, 4.0]), torch.tensor([[0.0], [1.0]]))


@pytest.mark.parametrize("kind", ["graph_classification", "edge_classification"])
def test_classification_is_cross_entropy(kind) -> None:  # type: ignore[no-untyped-def]
    # Probabilities (3/4, 1/4) and (1/2, 1/2) of the classes; the first item is of class 1, the second of class 0.
    scores = torch.tensor([[math.log(3), 0.0], [0.0, 0.0]])
    found = supervised_loss(kind, scores, torch.tensor([1, 0])).item()
    assert found == pytest.approx((math.log(4) + math.log(2)) / 2)


def test_node_classification_weighs_classes() -> None:
    # Four nodes: three of class 0 (weight 1/4), one of class 2 (weight 3/4); class 1 is absent (weight 0).
    probabilities = torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8], [0.3, 0.6, 0.1]])
    expected = -(math.log(0.5) + math.log(0.2) + math.log(0.1) + 3 * math.log(0.1)) / 4 / (3 / 4 + 3 / 4)
    found = supervised_loss("node_classification", probabilities.log(), torch.tensor([0, 0, 0, 2])).item()
    assert found == pytest.approx(expected)


def test_the_mean_over_no_edge_is_zero_and_finite() -> None:
    scores = torch.empty(0, 2, requires_grad=True)
    loss = supervised_loss("edge_classification", scores, torch.empty(0, dtype=torch.int64))
    loss.backward()
    assert loss.item() == 0


def test_node_classification_of_a_single_class_is_zero_and_finite() -> None:
    scores = torch.randn(3, 2, requires_grad=True)
    loss = supervised_loss("node_classification", scores, torch.tensor([1, 1, 1]))
    loss.backward()
    assert loss.item() == 0
    assert scores.grad is not None
    assert torch.equal(scores.grad, torch.zeros(3, 2))
