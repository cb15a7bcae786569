"""Adam's update from gradients as autograd gives them."""

from __future__ import annotations

import torch
from torch.testing import assert_close

from bimp.device.adam import AdamUpdate, clipped


def test_a_gradient_that_lies_otherwise_in_memory_is_read_by_its_entries() -> None:
    grad = torch.arange(6.0).view(3, 2).t()
    ours, theirs = (torch.nn.Parameter(torch.ones(2, 3)) for _ in range(2))
    optimizer = torch.optim.Adam([theirs], lr=0.1)
    update = AdamUpdate(torch.optim.Adam([ours], lr=0.1, fused=True), torch.device("cpu"))
    update.follow_schedule()
    for sign in (1, -3):
        ours.grad, theirs.grad = sign * grad.square(), (sign * grad.square()).contiguous()
        assert not ours.grad.is_contiguous()
        update()
        optimizer.step()
    assert_close(ours, theirs)


def test_gradients_that_are_one_tensor_are_clipped_once() -> None:
    shared = torch.tensor([3.0, 4.0])
    first, nothing, second = clipped([shared, None, shared], 1.0)
    assert nothing is None
    for found in (first, second):
        assert found is not None
        assert_close(found, shared / 50**0.5, rtol=1e-5, atol=0)
    assert shared.tolist() == [3, 4]
