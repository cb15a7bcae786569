"""Within an epoch the host must not wait for the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import pytest
import torch
from drawn_graphs import DATASETS, drawn, loss_of, trial, without_kernels
from waiting import NobodyWaits

from bimp.config import BACKBONES, Backbone
from bimp.data import GraphSplit
from bimp.data.positional import draw_signs
from bimp.device.board import Board
from bimp.device.run import DeviceRun
from bimp.network import Network
from bimp.semantics import Semantics
from bimp.stack.team import SeedRun, Team
from bimp.tasks import task_of


@pytest.mark.parametrize("waits", [torch.Tensor.item, torch.nonzero, lambda ones: ones[ones > 0], torch.unique, bool])
def test_what_waits_is_refused(waits: Callable[[torch.Tensor], object]) -> None:
    with pytest.raises(AssertionError, match="the host would wait"), NobodyWaits():
        waits(torch.ones(1))


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever waits between the board's two ends is refused."""
    watch = ExitStack()  # after a refusal nobody reads the board, and whatever comes next in this process may wait
    begin, read = Board.begin, Board.read

    def watched_begin(board: Board, *told: object) -> None:
        begin(board, *told)  # type: ignore[arg-type]
        watch.enter_context(NobodyWaits())

    def watched_read(board: Board) -> torch.Tensor:
        watch.close()
        return read(board)

    without_kernels(monkeypatch)
    monkeypatch.setattr(Board, "begin", watched_begin)
    monkeypatch.setattr(Board, "read", watched_read)
    with watch:
        yield


def looks_at_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a network sees of a batch in main memory only, for which this memory stands in here."""
    for name in ("require_graphs", "require_sorted_edges"):
        monkeypatch.setattr(f"bimp.network.{name}", lambda _: None)


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("semantics", ["paper", "released"])
@pytest.mark.parametrize("padded", [True, False], ids=["padded", "as they are"])
def test_between_the_board_s_two_ends_nobody_waits(
    watched: None,
    monkeypatch: pytest.MonkeyPatch,
    dataset: str,
    backbone: Backbone,
    semantics: Semantics,
    padded: bool,
) -> None:
    if not padded:
        monkeypatch.setattr("bimp.device.run.capture_on", lambda *_: None)
        looks_at_no_batch(monkeypatch)
    config = trial(dataset, backbone, semantics=semantics, model={"pos_enc_dim": 2}, clip_norm=0.1)
    train, validation = drawn(dataset, 12, encodings=2), drawn(dataset, 7, seed=1, encodings=2)
    network = Network(config.model, task_of(dataset))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
    run = DeviceRun(network, optimizer, config, loss_of(config), train, validation, torch.device("cpu"))
    run.train(torch.arange(12), partial(draw_signs, generator=torch.Generator()))
    run.evaluate()


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("semantics", ["paper", "released"])
def test_nor_where_seeds_are_trained_together(
    watched: None, monkeypatch: pytest.MonkeyPatch, dataset: str, backbone: Backbone, semantics: Semantics
) -> None:
    monkeypatch.setattr("bimp.stack.team.has_own_path", lambda _: True)
    looks_at_no_batch(monkeypatch)
    config = trial(dataset, backbone, semantics=semantics, model={"pos_enc_dim": 2}, clip_norm=0.1)
    whole = drawn(dataset, 20, encodings=2)
    runs = [
        SeedRun(
            config=replace(config, seed=seed),
            train=GraphSplit(whole.graphs, torch.arange(graphs)),
            validation=GraphSplit(whole.graphs, torch.arange(13, 20)),
        )
        for seed, graphs in ((41, 13), (42, 12))  # whose last steps are each run's own
    ]
    Team(runs, torch.device("cpu")).one_epoch()
