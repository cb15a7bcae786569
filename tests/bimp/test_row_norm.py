"""Normalising by the real rows of a padded tensor, against torch's own normalisation of the real rows alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from bimp.padding import RealRows
from bimp.row_norm import RowNorm
from bimp.stack.parts import Parts
from bimp.stack.row_norm import StackedRowNorm


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


def gradient_of(shift: torch.Tensor, made: RowNorm, rows: torch.Tensor) -> torch.Tensor:
    """Of a sum of squares of ``rows`` that all hold ``shift``, after ``made``."""
    number_of_rows = rows.numel() // 3
    shifted = rows + made.without_rest(shift, number_of_rows)
    (found,) = torch.autograd.grad(made(shifted).pow(3).sum(), [shift], materialize_grads=True)
    return found


def test_what_all_rows_hold_has_a_gradient_where_it_is_not_taken_out_again() -> None:
    rows = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    shift = torch.ones(3, dtype=torch.float64, requires_grad=True)
    made = norm()
    (rest,) = torch.autograd.grad(made(rows + shift).pow(3).sum(), [shift])
    assert 0 < rest.abs().max() < 1e-12  # what single precision, and Adam, would make more of
    assert gradient_of(shift, made, rows).tolist() == [0, 0, 0]
    for made, few in ((norm(), rows[:1]), (norm().eval(), rows)):
        (whole,) = torch.autograd.grad(made(few + shift).pow(3).sum(), [shift])
        assert whole.abs().min() > 1e-3
        assert_close(gradient_of(shift, made, few), whole)


def stacked_norm(counts: tuple[int, ...], length: int) -> tuple[StackedRowNorm, list[RowNorm]]:
    """Of so many rows a seed, with parameters and statistics of its own; and the norm of each seed."""
    norms = [norm() for _ in counts]
    for number, each in enumerate(norms):
        assert each.running_mean is not None
        each.weight.data += number
        each.running_mean.fill_(number)
    stacked = StackedRowNorm(3).double()
    stacked.weight, stacked.bias = (
        nn.Parameter(torch.stack([getattr(each, name).detach() for each in norms])) for name in ("weight", "bias")
    )
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        setattr(stacked, name, torch.stack([getattr(each, name) for each in norms]))
    stacked.parts = Parts.of(counts, length)
    return stacked, norms


@pytest.mark.parametrize("counts", [(5, 3, 2), (5, 1, 0, 3), (1, 1)])
def test_each_seed_is_normalised_as_it_would_be_alone(counts: tuple[int, ...]) -> None:
    """With a third column of hardly any variance."""
    generator = torch.Generator().manual_seed(1)
    stacked, norms = stacked_norm(counts, 6)
    rows = torch.randn(6 * len(counts), 3, generator=generator, dtype=torch.float64) * torch.tensor([1, 5, 1e-9]) + 40
    grad = torch.randn(6 * len(counts), 3, generator=generator, dtype=torch.float64)
    given = rows.requires_grad_()
    found = stacked(given)
    of_rows, of_weight, of_bias = torch.autograd.grad(found, [given, stacked.weight, stacked.bias], grad)
    for seed, (own, count) in enumerate(zip(norms, counts, strict=True)):
        of_seed = slice(6 * seed, 6 * seed + count)
        alone = rows[of_seed].detach().requires_grad_()
        expected = own(alone)
        leaves = [alone, own.weight, own.bias]
        grads = torch.autograd.grad(expected, leaves, grad[of_seed])
        assert_close(found[of_seed], expected, rtol=1e-10, atol=1e-10)
        assert_close([of_rows[of_seed], of_weight[seed], of_bias[seed]], list(grads), rtol=1e-10, atol=1e-10)
        assert not found[of_seed.stop : 6 * seed + 6].any()
        assert not of_rows[of_seed.stop : 6 * seed + 6].any()
        for name, buffer in own.named_buffers():
            assert_close(stacked.get_buffer(name)[seed], buffer)


@pytest.mark.parametrize("counts", [(4, 2), (4, 1), (0, 3)])
def test_of_several_seeds_each_has_its_own(counts: tuple[int, int]) -> None:
    stacked, _ = stacked_norm(counts, 4)
    shift = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    held = stacked.without_rest(shift, 8)
    (found,) = torch.autograd.grad(held.sum(), [shift], allow_unused=True) if held.requires_grad else (None,)
    expected = torch.tensor([[float(count < 2)] * 3 for count in counts], dtype=torch.float64)
    assert_close(torch.zeros_like(shift) if found is None else found, expected)
    stacked.eval()
    assert stacked.without_rest(shift, 8) is shift


def test_evaluation_goes_by_the_running_statistics() -> None:
    made = norm().eval()
    rows = torch.randn(5, 3, dtype=torch.float64)
    assert torch.equal(made(rows, RealRows(torch.arange(5) < 2)), made(rows))
