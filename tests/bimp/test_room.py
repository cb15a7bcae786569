"""Products over whole multiples of rows: few sizes in all, and nobody sees what stands behind the rows."""

from __future__ import annotations

from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F
from graph_batches import SmallGraph, batch_of
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from bimp.config import BACKBONES, Backbone, ModelConfig
from bimp.data import GraphBatch
from bimp.kernels import linear
from bimp.kernels.linear import gradient_of_map, product
from bimp.kernels.room import empty_with_room, with_room
from bimp.losses import supervised_loss
from bimp.network import Network
from bimp.tasks import task_of

NUM_ROWS = st.integers(1, 400)
BEHIND = st.sampled_from([0, 30, 64])


def drawn(num_rows: int, width: int, behind: int) -> Tensor:
    """Rows within a larger matrix that is no number everywhere else."""
    matrix = torch.full((num_rows + behind + 3, width), torch.nan)
    matrix[3 : 3 + num_rows] = torch.randn(num_rows, width)
    return matrix[3 : 3 + num_rows]


@pytest.mark.parametrize("by_onednn", [False, True])
@given(num_rows=NUM_ROWS, behind=BEHIND)
def test_a_product_of_rows_takes_nothing_from_behind_them(by_onednn: bool, num_rows: int, behind: int) -> None:
    rows, weight, bias = drawn(num_rows, 20, behind), torch.randn(7, 20), torch.randn(7)
    with patch.object(linear, "_TAKES_ONEDNN", by_onednn and linear.offers_onednn()):
        assert_close(product(rows, weight, bias), F.linear(rows.clone(), weight, bias))
        assert_close(product(rows, weight), rows.clone() @ weight.t())


@given(num_rows=NUM_ROWS, behind=BEHIND, out_dim=st.sampled_from([7, 20, 33]))
def test_a_gradient_of_a_map_takes_nothing_from_behind_the_rows(num_rows: int, behind: int, out_dim: int) -> None:
    grad, rows = drawn(num_rows, out_dim, behind), drawn(num_rows, 20, behind)
    expected = torch.einsum("no,ni->oi", grad.double(), rows.double())
    assert_close(gradient_of_map(grad, rows).double(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("out_dim", [7, 33])
def test_a_gradient_lies_as_its_weight_does(out_dim: int) -> None:
    """``torch.optim``'s fused operators go through both by their places in memory."""
    layer = linear.Linear(20, out_dim)
    (grad,) = torch.autograd.grad(layer(torch.randn(300, 20)).sum(), [layer.weight])
    assert grad.stride() == layer.weight.stride()


def test_rows_with_room_are_read_where_they_lie_and_others_are_copied() -> None:
    roomy = empty_with_room(100, 3, like=torch.zeros(0))
    assert roomy.shape == (100, 3)
    assert not roomy._is_view()
    assert with_room(roomy).data_ptr() == roomy.data_ptr()
    assert with_room(roomy).shape == (128, 3)
    tight = torch.arange(300.0).view(100, 3)
    copied = with_room(tight)
    assert copied.data_ptr() != tight.data_ptr()
    assert torch.equal(copied[:100], tight)
    assert torch.equal(copied[100:], torch.zeros(28, 3))
    whole = torch.zeros(128, 3)
    assert with_room(whole) is whole


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> set[tuple[int, int]]:
    """Sizes of the rows that products were asked for."""
    if not linear.offers_onednn():
        pytest.skip("PyTorch was built without oneDNN")
    monkeypatch.setattr(linear, "_TAKES_ONEDNN", True)
    seen: set[tuple[int, int]] = set()
    asked = linear.by_onednn

    def take_note(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        seen.add((rows.shape[0], rows.shape[1]))
        return asked(rows, weight, bias)

    monkeypatch.setattr(linear, "by_onednn", take_note)
    return seen


@pytest.mark.parametrize("backbone", BACKBONES)
def test_a_training_step_asks_for_products_of_whole_multiples_of_rows(
    backbone: Backbone, sizes: set[tuple[int, int]]
) -> None:
    gate = {"placement": "boosting", "gate": "bilateral", "num_clusters": 3, "sigma_m": 1.0}
    heads, hidden_dim = (2, 8) if backbone == "gat" else (1, 16)
    model = ModelConfig(backbone=backbone, layers=3, hidden_dim=hidden_dim, heads=heads, **gate)  # type: ignore[arg-type]
    network = Network(model, task_of("zinc"))
    for num_nodes in (301, 330, 377):
        batch = ring(num_nodes)
        output = network(batch)
        (supervised_loss("graph_regression", output.scores, batch.y) + output.unsupervised_loss).backward()
    assert sizes
    assert {rows for rows, _ in sizes} <= {320, 384, 640, 704, 768}


def ring(num_nodes: int) -> GraphBatch:
    """One molecule whose atoms form a ring, each bound to the next and to the one before."""
    bonds = [(node, (node + step) % num_nodes) for node in range(num_nodes) for step in (1, -1)]
    graph = SmallGraph(num_nodes, tuple(bonds))
    return batch_of(graph, x=torch.arange(num_nodes) % 28, edge_attr=torch.zeros(2 * num_nodes, dtype=torch.long))
