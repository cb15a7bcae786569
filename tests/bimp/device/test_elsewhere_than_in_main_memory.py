"""A run on the meta device, where nothing has a value: a tensor made in main memory by mistake does not go there.

Between two steps, and within one, nothing may come from main memory either: on a GPU such a copy makes the host wait, a
capture does not allow it, and a number in main memory would be held for ever by what was captured.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from drawn_graphs import DATASETS, drawn, loss_of, trial
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bimp.config import BACKBONES, Backbone
from bimp.data import PackedGraphs
from bimp.data.positional import draw_signs
from bimp.device.ahead import BatchesAhead
from bimp.device.board import Board
from bimp.device.run import DeviceRun
from bimp.network import Network
from bimp.semantics import Semantics
from bimp.stack.team import SeedRun, Team
from bimp.tasks import task_of
from tests.crossing import crossed

META = torch.device("meta")


class NothingFromMainMemory(TorchDispatchMode):
    """Raises where an operator takes or makes a tensor there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        found = [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, torch.Tensor)]
        if any(tensor.device != META for tensor in found):
            raise AssertionError(f"a tensor in main memory meets {func}")
        return result


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reaches into main memory, in a step that would be captured or in gathering for such steps, is refused."""

    def watching(called: Callable[..., None]) -> Callable[..., None]:
        def run(*args: object) -> None:
            with NothingFromMainMemory():
                called(*args)

        return run

    monkeypatch.setattr(BatchesAhead, "advance", watching(BatchesAhead.advance))
    for module in ("bimp.device.run", "bimp.stack.on_device"):
        monkeypatch.setattr(f"{module}.capture_on", lambda *_: watching)


def moved(graphs: PackedGraphs, device: torch.device) -> PackedGraphs:
    """Without the checks of lengths, which look at values."""
    there = copy.copy(graphs)
    for name, value in vars(graphs).items():
        if isinstance(value, torch.Tensor):
            object.__setattr__(there, name, value.to(device))
    return there


def looked_at(*lists: list[torch.Tensor], lr: torch.Tensor, **_: object) -> None:
    """In place of Adam, which is not there for this device."""
    assert {tensor.device for tensors in lists for tensor in tensors} | {lr.device} == {META}
    assert all(len(tensors) in (0, len(lists[0])) for tensors in lists)


def run_of(dataset: str, backbone: Backbone, semantics: Semantics) -> DeviceRun:
    config = trial(dataset, backbone, semantics=semantics, model={"pos_enc_dim": 2}, clip_norm=0.1)
    train, validation = drawn(dataset, 12, encodings=2), drawn(dataset, 7, seed=1, encodings=2)
    network = Network(config.model, task_of(dataset)).to(META)
    return DeviceRun(network, torch.optim.Adam(network.parameters()), config, loss_of(config), train, validation, META)


@pytest.mark.parametrize(("dataset", "backbone"), crossed(DATASETS, BACKBONES))
@pytest.mark.parametrize("semantics", ["paper", "released"])
def test_everything_of_a_step_lies_on_the_device(
    watched: None, monkeypatch: pytest.MonkeyPatch, dataset: str, backbone: Backbone, semantics: Semantics
) -> None:
    monkeypatch.setattr(PackedGraphs, "to", moved)
    monkeypatch.setattr("bimp.descent.adam", looked_at)
    monkeypatch.setattr(Board, "read", lambda board: torch.ones(board.rows.shape, dtype=torch.float64))
    run = run_of(dataset, backbone, semantics)
    run.train(torch.arange(12), partial(draw_signs, generator=torch.Generator()))
    run.evaluate()


@pytest.mark.parametrize(("dataset", "backbone"), crossed(DATASETS, BACKBONES))
@pytest.mark.parametrize("semantics", ["paper", "released"])
def test_nor_is_anything_of_seeds_together_elsewhere(
    watched: None, monkeypatch: pytest.MonkeyPatch, dataset: str, backbone: Backbone, semantics: Semantics
) -> None:
    monkeypatch.setattr(PackedGraphs, "to", moved)
    monkeypatch.setattr("bimp.descent.adam", looked_at)
    monkeypatch.setattr("bimp.stack.team.has_own_path", lambda _: True)
    monkeypatch.setattr(Board, "read", lambda board: torch.ones(board.rows.shape, dtype=torch.float64))
    config = trial(dataset, backbone, semantics=semantics, model={"pos_enc_dim": 2}, clip_norm=0.1)
    train, validation = drawn(dataset, 12, encodings=2), drawn(dataset, 7, seed=1, encodings=2)
    runs = [SeedRun(config=replace(config, seed=seed), train=train, validation=validation) for seed in (1, 2)]
    team = Team(runs, META)
    assert {tensor.device for tensor in team.on_device._state()} == {META}
    assert [result.epoch for result in team.one_epoch()] == [1, 1]


def test_a_tensor_in_main_memory_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PackedGraphs, "to", moved)
    monkeypatch.setattr("bimp.descent.adam", looked_at)
    run = run_of("zinc", "gcn", "paper")
    run._training.board.step = torch.zeros((), dtype=torch.int64)
    with pytest.raises(RuntimeError, match="device"):
        run.train(torch.arange(12), partial(draw_signs, generator=torch.Generator()))


@pytest.mark.parametrize("made", [lambda: torch.ones(2).to(META), lambda: torch.ones(2, device=META) * torch.tensor(2)])
def test_a_copy_from_main_memory_is_found(made: Callable[[], object]) -> None:
    with pytest.raises(AssertionError, match="a tensor in main memory"), NothingFromMainMemory():
        made()
