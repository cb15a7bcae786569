"""Normalising by the real rows of a padded tensor, against torch's own normalisation of the real rows alone."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from bimp.padding import RealRows
from bimp.row_norm import RowNorm


def norm() -> RowNorm:
    made = RowNorm(3).double()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        made.weight.copy_(torch.rand(3, generator=generator) + 0.5)
        made.bias.copy_(torch.rand(3, generator=generator))
    return made


@pytest.mark.parametrize("padding", [0, 1, 4])
def test_statistics_output_and_gradients_are_those_of_the_real_rows(padding: int) -> None:
    generator = torch.Generator().manual_seed(padding)
    rows = torch.randn(6 + padding, 3, generator=generator, dtype=torch.float64) * 5 + 2
    grad = torch.randn(6, 3, generator=generator, dtype=torch.float64)
    real = RealRows(torch.arange(6 + padding) < 6)
    ours, theirs = norm(), norm()
    padded, alone = rows.clone().requires_grad_(), rows[:6].clone().requires_grad_()
    found, expected = ours(padded, real), torch.nn.BatchNorm1d.forward(theirs, alone)
    assert_close(found[:6], expected)
    (found[:6] * grad).sum().backward()
    (expected * grad).sum().backward()
    assert padded.grad is not None
    assert alone.grad is not None
    assert_close(padded.grad[:6], alone.grad)
    assert not padded.grad[6:].any()
    assert bool((found[6:] == ours.bias).all())
    assert_close([*ours.parameters()], [*theirs.parameters()])
    assert_close([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()])
    assert_close(ours.state_dict(), theirs.state_dict())


def test_gradients_by_finite_differences() -> None:
    made, real = norm(), RealRows(torch.tensor([True, True, True, True, False]))
    rows = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda rows, *_: made(rows, real)[:4], (rows, made.weight, made.bias))


def test_evaluation_goes_by_the_running_statistics() -> None:
    made = norm().eval()
    rows = torch.randn(5, 3, dtype=torch.float64)
    assert torch.equal(made(rows, RealRows(torch.arange(5) < 2)), made(rows))
