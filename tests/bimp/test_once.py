"""Second derivatives of networks, which there are none of, are refused and not given without a part."""

from __future__ import annotations

import pytest
import torch
from graph_batches import DIRECTED, PATH, batch_of
from torch import Tensor
from torch.autograd import grad

from bimp.config import BACKBONES, Backbone, ModelConfig
from bimp.kernels.linear import FEWEST_COLUMNS, FEWEST_ROWS, linear
from bimp.network import Network
from bimp.tasks import task_of

NONE = r"^second derivative: found a network or layer of bimp, which has none, expected the first alone$"


def network_and_loss(backbone: Backbone) -> tuple[list[Tensor], Tensor]:
    """The parameters of a small network, and a loss that has a second derivative by its scores."""
    torch.manual_seed(0)
    network = Network(ModelConfig(backbone=backbone, layers=2, hidden_dim=8), task_of("digits"))
    batch = batch_of(PATH, DIRECTED, x=torch.rand(7, 3), edge_attr=torch.rand(9, 1))
    return list(network.parameters()), network(batch).scores.square().sum()


@pytest.mark.parametrize("backbone", BACKBONES)
def test_networks_refuse_by_whatever_function_they_are_asked(backbone: Backbone) -> None:
    parameters, loss = network_and_loss(backbone)
    first = grad(loss, parameters, create_graph=True, allow_unused=True)
    expected = grad(loss, parameters, allow_unused=True)
    torch.testing.assert_close(first, expected, rtol=0, atol=0)
    of_first = torch.stack([each.square().sum() for each in first if each is not None]).sum()
    with pytest.raises(RuntimeError, match=NONE):
        grad(of_first, parameters, allow_unused=True, retain_graph=True)
    with pytest.raises(RuntimeError, match=NONE):
        of_first.backward()


def test_a_gradient_that_hangs_on_the_weight_alone_is_refused_too() -> None:
    rows, weight = torch.ones(FEWEST_ROWS, FEWEST_COLUMNS, requires_grad=True), torch.ones(1, FEWEST_COLUMNS)
    weight.requires_grad_()
    (of_rows,) = grad(linear(rows, weight, None).sum(), rows, create_graph=True)
    penalty = of_rows.square().sum() + weight.sum()  # by a weight: 2 * FEWEST_ROWS + 1, of which the 1 was given
    with pytest.raises(RuntimeError, match=NONE):
        grad(penalty, weight)
