"""What needs a card; the rest of this folder looks at the same steps without one."""

from __future__ import annotations

import logging
from copy import deepcopy

import pytest
import torch
from drawn_graphs import DATASETS, drawn, seeds_of, trial

from bimp.config import BACKBONES, Backbone
from bimp.device.board import Board
from bimp.device.capture import CudaGraphs
from bimp.engine import fit
from bimp.stack.together import fit_together

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


def refuse_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the board's two ends CUDA refuses whatever makes the host wait."""
    begin, read = Board.begin, Board.read

    def watched_begin(board: Board, *told: object) -> None:
        begin(board, *told)  # type: ignore[arg-type]
        torch.cuda.set_sync_debug_mode("error")

    def watched_read(board: Board) -> torch.Tensor:
        torch.cuda.set_sync_debug_mode("default")
        return read(board)

    monkeypatch.setattr(Board, "begin", watched_begin)
    monkeypatch.setattr(Board, "read", watched_read)


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("backbone", BACKBONES)
def test_training_equals_that_in_main_memory(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, dataset: str, backbone: Backbone
) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        config = trial(dataset, backbone, clip_norm=0.5)
        train, validation = drawn(dataset, 23), drawn(dataset, 12, seed=1)
        with caplog.at_level(logging.WARNING):
            found, after_third = [], {}
            for result in fit(config, train, validation, device="cuda"):
                found.append(result)
                if result.epoch == 3:
                    after_third = deepcopy(result.checkpoint())  # whose tensors the next epoch changes
        expected = list(fit(config, train, validation))
        (rest,) = fit(config, train, validation, device="cuda", checkpoint=after_third)
    finally:
        torch.set_default_dtype(torch.float32)
    assert not caplog.records  # every step was captured
    for one, other in zip(found, expected, strict=True):
        for ours, theirs in ((one.train, other.train), (one.validation, other.validation)):
            assert ours is not None
            assert theirs is not None
            assert (ours.loss, ours.metric) == pytest.approx((theirs.loss, theirs.metric), rel=1e-5)
    ours, theirs = found[-1].checkpoint(), expected[-1].checkpoint()
    on_cpu = {name: value.cpu() for name, value in ours["network"].items()}
    torch.testing.assert_close(on_cpu, theirs["network"], rtol=1e-4, atol=1e-6)
    assert rest.epoch == 4


@pytest.mark.parametrize("backbone", BACKBONES)
def test_between_the_board_s_two_ends_cuda_sees_nobody_wait(
    monkeypatch: pytest.MonkeyPatch, backbone: Backbone
) -> None:
    config = trial("zinc", backbone)
    epochs = fit(config, drawn("zinc", 23), drawn("zinc", 12, seed=1), device="cuda")
    next(epochs)  # captures wait
    refuse_waiting(monkeypatch)
    assert [result.status for result in epochs] == ["running", "running", "finished"]


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("backbone", BACKBONES)
def test_seeds_together_equal_those_in_main_memory(
    caplog: pytest.LogCaptureFixture, dataset: str, backbone: Backbone
) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        runs = seeds_of(trial(dataset, backbone, clip_norm=0.5))
        with caplog.at_level(logging.WARNING):
            found = list(fit_together(runs, device="cuda"))
        expected = [list(fit(run.config, run.train, run.validation)) for run in runs]
    finally:
        torch.set_default_dtype(torch.float32)
    assert not caplog.records  # every step was captured
    for epoch, of_epoch in enumerate(found):
        for number, result in of_epoch.items():
            other = expected[number][epoch]
            for ours, theirs in ((result.train, other.train), (result.validation, other.validation)):
                assert ours is not None
                assert theirs is not None
                assert (ours.loss, ours.metric) == pytest.approx((theirs.loss, theirs.metric), rel=1e-5)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_nobody_waits_for_seeds_together(monkeypatch: pytest.MonkeyPatch, backbone: Backbone) -> None:
    epochs = fit_together(seeds_of(trial("zinc", backbone)), device="cuda")
    next(epochs)  # captures wait
    refuse_waiting(monkeypatch)
    assert [len(of_epoch) for of_epoch in epochs] == [3, 3, 3]


def test_a_step_that_waits_is_run_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    count = torch.zeros((), device="cuda")

    def step() -> None:
        count.add_(1)
        float(count)

    with caplog.at_level(logging.WARNING):
        kept = CudaGraphs(torch.device("cuda"), lambda: [count])(step)
        kept()
    assert float(count) == 1
    assert "steps are not captured" in caplog.text
