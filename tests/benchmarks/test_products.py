"""The products of a step, taken alone."""

from __future__ import annotations

from unittest.mock import patch

import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.products import PRODUCTS, Products, products_of


def test_the_products_of_a_step_are_taken_again_and_nothing_else_is() -> None:
    rows, weight, bias = torch.randn(40, 6), torch.randn(5, 6, requires_grad=True), torch.randn(5)
    turns = []

    def step(turn: int) -> None:
        turns.append(turn)
        torch.relu(torch.addmm(bias, rows, weight.t())).sum().backward()  # type: ignore[no-untyped-call]

    again = products_of(step)
    gradient = weight.grad
    assert gradient is not None
    kept = gradient.clone()
    with FlopCounterMode(display=False) as counted:
        again(3)
    assert counted.get_total_flops() == 2 * (2 * 40 * 6 * 5)  # the map and the gradient of its weight
    assert turns == [0]
    assert torch.equal(gradient, kept)


def test_numbers_lie_in_memory_as_those_of_the_step_did() -> None:
    rows, weight = torch.randn(7, 40).t(), torch.randn(5, 7)
    products = Products()
    with products:
        rows @ weight.t()
    (call,) = products.again
    first, second = call.args  # type: ignore[attr-defined]
    assert (first.shape, first.stride()) == (rows.shape, rows.stride())
    assert (second.shape, second.stride()) == (weight.t().shape, weight.t().stride())
    assert not torch.equal(first, rows)


def test_no_product_of_a_network_is_missed() -> None:
    from benchmarks.contenders import our_step, trial_config
    from benchmarks.graphs import workload
    from bimp.config import BACKBONES

    drawn = workload("zinc")
    batches = [drawn.graphs.gather(drawn.picks()[0])]
    for backbone in BACKBONES:
        with patch("bimp.kernels.linear._TAKES_ONEDNN", False):  # whose products are not counted
            step = our_step(trial_config(drawn, backbone, 4, gated=True), batches)
            with FlopCounterMode(display=False) as of_step:
                step(0)
            again = products_of(step)
            with FlopCounterMode(display=False) as of_products:
                again(0)
        assert of_products.get_total_flops() == of_step.get_total_flops() > 0, (backbone, PRODUCTS)
