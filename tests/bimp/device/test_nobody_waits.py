"""Within an epoch the host must not wait for the device."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from drawn_graphs import DATASETS, drawn, loss_of, trial, without_kernels
from waiting import NobodyWaits

from bimp.config import BACKBONES, Backbone
from bimp.data.positional import draw_signs
from bimp.device.board import Board
from bimp.device.run import DeviceRun
from bimp.network import Network
from bimp.semantics import Semantics
from bimp.tasks import task_of


@pytest.mark.parametrize("waits", [torch.Tensor.item, torch.nonzero, lambda ones: ones[ones > 0], torch.unique, bool])
def test_what_waits_is_refused(waits: Callable[[torch.Tensor], object]) -> None:
    with pytest.raises(AssertionError, match="the host would wait"), NobodyWaits():
        waits(torch.ones(1))


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("semantics", ["paper", "released"])
@pytest.mark.parametrize("padded", [True, False], ids=["padded", "as they are"])
def test_between_the_board_s_two_ends_nobody_waits(
    monkeypatch: pytest.MonkeyPatch, dataset: str, backbone: Backbone, semantics: Semantics, padded: bool
) -> None:
    without_kernels(monkeypatch)
    if not padded:
        monkeypatch.setattr("bimp.device.run.capture_on", lambda *_: None)
        monkeypatch.setattr("bimp.network._require_sorted", lambda _: None)  # looked at in main memory only
    watch = NobodyWaits()
    begin, read = Board.begin, Board.read

    def watched_begin(board: Board, *told: object) -> None:
        begin(board, *told)  # type: ignore[arg-type]
        watch.__enter__()

    def watched_read(board: Board) -> torch.Tensor:
        watch.__exit__(None, None, None)
        return read(board)

    monkeypatch.setattr(Board, "begin", watched_begin)
    monkeypatch.setattr(Board, "read", watched_read)
    config = trial(dataset, backbone, semantics=semantics, model={"pos_enc_dim": 2}, clip_norm=0.1)
    train, validation = drawn(dataset, 12, encodings=2), drawn(dataset, 7, seed=1, encodings=2)
    network = Network(config.model, task_of(dataset))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
    run = DeviceRun(network, optimizer, config, loss_of(config), train, validation, torch.device("cpu"))
    run.train(torch.arange(12), partial(draw_signs, generator=torch.Generator()))
    run.evaluate()
