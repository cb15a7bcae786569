"""What a captured step made must be gone when it has ended, without a search for cycles.

A tensor that lived on would lie in the captures' memory, where a replay of another capture writes. A graph of
autograd's that lived on would tie a later capture to the stream on which the parameters were first asked for their
gradients.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import torch
from drawn_graphs import drawn, loss_of, seeds_of, trial, without_kernels

from bimp.config import BACKBONES, Backbone
from bimp.data.positional import draw_signs
from bimp.device.capture import Capture, State, Step, unchanged
from bimp.device.run import DeviceRun
from bimp.network import Network
from bimp.semantics import Semantics
from bimp.stack.team import Team
from bimp.tasks import task_of

CPU = torch.device("cpu")


def living(kind: type) -> list[Any]:
    found = gc.get_objects()
    # By their type: some objects pretend to be of another one, and ask for a library when they are asked.
    kinds = {each for each in set(map(type, found)) if issubclass(each, kind)}
    return [each for each in found if type(each) in kinds]


def tensors() -> list[torch.Tensor]:
    return living(torch.Tensor)


def graphs_of_autograd() -> list[object]:
    return living(torch.autograd.graph.Node) + [tensor.grad_fn for tensor in tensors() if tensor.grad_fn is not None]


@contextmanager
def without_collection() -> Iterator[None]:
    gc.disable()
    gc.freeze()  # what is there already is not looked through at every step
    try:
        yield
    finally:
        gc.unfreeze()
        gc.enable()


def leaving_nothing(_: torch.device, state: State) -> Capture:
    """In place of a capture: steps are watched."""

    def watched(step: Step) -> Step:
        with unchanged(state):
            step()  # the first makes Adam's state

        def run() -> None:
            with without_collection(), unchanged(state):
                before = len(tensors())
                assert not graphs_of_autograd()
                step()
                assert not graphs_of_autograd()
                assert len(tensors()) == before

        return run

    return watched


@pytest.mark.parametrize("dataset", ["zinc", "tsp"])
@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("semantics", ["paper", "released"])
def test_of_a_step_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, dataset: str, backbone: Backbone, semantics: Semantics
) -> None:
    without_kernels(monkeypatch)
    config = trial(dataset, backbone, semantics=semantics, model={"pos_enc_dim": 2}, clip_norm=0.1)
    train, validation = drawn(dataset, 12, encodings=2), drawn(dataset, 7, seed=1, encodings=2)
    network = Network(config.model, task_of(dataset))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
    run = DeviceRun(network, optimizer, config, loss_of(config), train, validation, CPU, leaving_nothing)
    unmeasured(monkeypatch)
    run.train(torch.arange(12), partial(draw_signs, generator=torch.Generator()))
    run.evaluate()


@pytest.mark.parametrize("dataset", ["zinc", "tsp"])
@pytest.mark.parametrize("backbone", BACKBONES)
def test_nor_of_one_of_seeds_together(monkeypatch: pytest.MonkeyPatch, dataset: str, backbone: Backbone) -> None:
    without_kernels(monkeypatch)
    monkeypatch.setattr("bimp.stack.team.has_own_path", lambda _: True)
    monkeypatch.setattr("bimp.stack.on_device.capture_on", leaving_nothing)
    unmeasured(monkeypatch)
    config = trial(dataset, backbone, model={"pos_enc_dim": 2}, clip_norm=0.1)
    team = Team(seeds_of(config, (13, 12), encodings=2), CPU)  # whose last steps are each seed's own
    assert team.on_device is not None
    orders = [torch.arange(len(run.train)) for run in team.runs]
    team.on_device.train(orders, [member.draws.signs() for member in team.members])
    team.on_device.evaluate()


@pytest.mark.parametrize("kept", ["tensor", "graph"])
def test_what_is_left_is_found(kept: str) -> None:
    weight, left = torch.nn.Parameter(torch.ones(2)), []

    def step() -> None:
        left.append((weight * 2).sum() if kept == "graph" else torch.ones(1))

    with pytest.raises(AssertionError):
        leaving_nothing(CPU, lambda: [weight])(step)()


def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that were taken back measured nothing."""
    monkeypatch.setattr("bimp.device.run.evaluation_in_training", lambda *_: None)
    monkeypatch.setattr("bimp.stack.on_device.evaluation_in_training", lambda *_: None)
    monkeypatch.setattr("bimp.measurement.Meter.finite_evaluation", lambda _: None)
