"""Steps by Adam from gradients as autograd gives them."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from bimp.descent import AdamUpdate, clipped, descend, gradients


@pytest.mark.parametrize("device", [None, torch.device("cpu")])
def test_a_gradient_that_lies_otherwise_in_memory_is_read_by_its_entries(device: torch.device | None) -> None:
    grad = torch.arange(6.0).view(3, 2).t()
    ours, theirs = (nn.Parameter(torch.ones(2, 3)) for _ in range(2))
    optimizer = torch.optim.Adam([theirs], lr=0.1)
    update = AdamUpdate(torch.optim.Adam([ours], lr=0.1, fused=True), device)
    update.follow_schedule()
    for sign in (1, -3):
        given, theirs.grad = sign * grad.square(), (sign * grad.square()).contiguous()
        assert not given.is_contiguous()
        update([given])
        optimizer.step()
    assert_close(ours, theirs)


@pytest.mark.parametrize("clip_norm", [None, 0.5])
def test_parameters_that_lie_otherwise_in_memory_are_moved_by_their_own_gradients(clip_norm: float | None) -> None:
    first, towards = (torch.randn(3, 2, generator=torch.Generator().manual_seed(seed)).t() for seed in (0, 1))
    ours, theirs = nn.Parameter(first.clone()), nn.Parameter(first.contiguous())
    assert not ours.is_contiguous()
    update = AdamUpdate(torch.optim.Adam([ours], lr=0.1, fused=True))
    optimizer = torch.optim.Adam([theirs], lr=0.1, fused=True)
    for _ in range(3):
        descend(update, clip_norm, gradients((ours - towards).pow(4).sum(), [ours]))
        optimizer.zero_grad()
        (theirs - towards).pow(4).sum().backward()  # type: ignore[no-untyped-call]
        if clip_norm is not None:
            nn.utils.clip_grad_norm_([theirs], clip_norm)
        optimizer.step()
    assert_close(ours, theirs)


def test_frozen_parameters_stay() -> None:
    frozen = nn.Parameter(torch.tensor([2.0, 3.0]), requires_grad=False)
    trained, unused = (nn.Parameter(torch.ones(2)) for _ in range(2))
    optimizer = torch.optim.Adam([frozen, trained, unused], lr=0.1, fused=True)
    update = AdamUpdate(optimizer)
    of_frozen, of_trained, of_unused = gradients((frozen * trained).sum(), update.parameters)
    assert of_frozen is None
    assert of_trained is not None
    assert of_unused is not None
    assert of_trained.tolist() == [2, 3]
    assert of_unused.tolist() == [0, 0]
    descend(update, 1.0, (of_frozen, of_trained, of_unused))
    assert frozen.tolist() == [2, 3]
    assert_close(trained, torch.full((2,), 0.9))
    assert unused.tolist() == [1, 1]
    assert optimizer.state.keys() == {trained, unused}


def test_gradients_that_are_one_tensor_are_clipped_once() -> None:
    shared = torch.tensor([3.0, 4.0])
    first, nothing, second = clipped([shared, None, shared], 1.0)
    assert nothing is None
    for found in (first, second):
        assert found is not None
        assert_close(found, shared / 50**0.5, rtol=1e-5, atol=0)
    assert shared.tolist() == [3, 4]


# In the norm of ours are the zeros of what the loss does not depend on, with which a processor may round another way.
@pytest.mark.parametrize(("clip_norm", "rounding"), [(None, 0.0), (0.5, 1e-6), (1e6, 0.0)])
def test_steps_are_those_of_the_optimizer_to_the_last_bit(clip_norm: float | None, rounding: float) -> None:
    ours, theirs = (_two_maps() for _ in range(2))
    of_ours, of_theirs = (torch.optim.Adam(maps.parameters(), lr=0.01, fused=True) for maps in (ours, theirs))
    for number in range(5):
        rows = torch.randn(7, 4, generator=torch.Generator().manual_seed(number))
        if number == 3:
            for optimizer in (of_ours, of_theirs):
                optimizer.param_groups[0]["lr"] /= 3
        update = AdamUpdate(of_ours)
        descend(update, clip_norm, gradients(ours[0](rows).square().sum(), update.parameters))
        of_theirs.zero_grad()
        theirs[0](rows).square().sum().backward()
        if clip_norm is not None:
            nn.utils.clip_grad_norm_(theirs.parameters(), clip_norm)
        of_theirs.step()
    for found, expected in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert_close(found, expected, rtol=rounding, atol=rounding)
    found_state, expected_state = of_ours.state_dict()["state"], of_theirs.state_dict()["state"]
    assert expected_state.keys() == {0, 1}
    assert all(not found_state[number]["exp_avg"].any() for number in found_state.keys() - {0, 1})
    for number, of_parameter in expected_state.items():
        for name, value in of_parameter.items():
            assert_close(found_state[number][name], value, rtol=rounding, atol=rounding)


def _two_maps() -> nn.ModuleList:
    """Of which a loss depends on the first."""
    torch.manual_seed(0)
    return nn.ModuleList([nn.Linear(4, 3), nn.Linear(4, 3)])
