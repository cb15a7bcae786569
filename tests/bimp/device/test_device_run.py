"""Training on a device against the plain loops: on the CPU, with the steps on tapes instead of in CUDA graphs."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
import torch
from drawn_graphs import ARMS, drawn, trial
from tape import TapedSteps
from taped_runs import assert_same, plainly, results_of

from bimp.config import BACKBONES, Backbone
from bimp.data import GraphSplit
from bimp.device.resident import bytes_of
from bimp.device.shapes import Shape
from tests.crossing import crossed

EVERY_BACKBONE = pytest.mark.parametrize("backbone", BACKBONES)


@pytest.mark.parametrize(("arm", "backbone"), crossed([*ARMS], BACKBONES))
def test_training_equals_the_plain_one(on_device: list[TapedSteps], arm: str, backbone: Backbone) -> None:
    dataset, gated = ARMS[arm]
    config = trial(dataset, backbone, gated=gated, max_epochs=3)
    train, validation = drawn(dataset, 23), drawn(dataset, 12, seed=1)
    found = results_of(config, train, validation)
    assert on_device[0].captures >= 3  # of full batches, of the rest, in evaluation
    assert_same(found, plainly(config, train, validation))


@EVERY_BACKBONE
def test_the_released_reading_too(on_device: list[TapedSteps], backbone: Backbone) -> None:
    # Losses over the whole batch, means of the batches' values, clipping (of superpixels only, so set here).
    config = trial("cluster", backbone, semantics="released", clip_norm=0.05, max_epochs=2)
    train, validation = drawn("cluster", 13), drawn("cluster", 8, seed=1)
    assert_same(results_of(config, train, validation), plainly(config, train, validation))


@pytest.mark.parametrize("model", [{"readout": "max"}, {"readout": "sum"}, {"gate": "uniform"}], ids=str)
def test_other_readouts_and_the_control(on_device: list[TapedSteps], model: dict[str, str]) -> None:
    config = trial("zinc", "gcn", model=model, max_epochs=2)
    train, validation = drawn("zinc", 13), drawn("zinc", 8, seed=1)
    assert_same(results_of(config, train, validation), plainly(config, train, validation))


def test_signs_of_encodings_are_the_plain_ones(on_device: list[TapedSteps]) -> None:
    config = trial("zinc", "gcn", model={"pos_enc_dim": 2})
    train, validation = drawn("zinc", 13, encodings=3), drawn("zinc", 8, seed=1, encodings=3)
    found = results_of(config, train, validation)
    assert_same(found, plainly(config, train, validation))
    other = results_of(replace(config, seed=42), train, validation)
    assert other[-1].train != found[-1].train


@pytest.mark.parametrize("device_first", [True, False])
def test_a_checkpoint_goes_on_elsewhere(on_device: list[TapedSteps], device_first: bool) -> None:
    config = trial("digits", "gated_gcn")
    train, validation = drawn("digits", 13), drawn("digits", 8, seed=1)
    whole = plainly(config, train, validation)
    first, then = (results_of, plainly) if device_first else (plainly, results_of)
    checkpoint = first(config, train, validation)[1].checkpoint()
    rest = then(config, train, validation, checkpoint=checkpoint)
    assert [result.epoch for result in rest] == [3, 4]
    assert_same(rest, whole[2:])


def test_a_loss_that_is_not_a_number_ends_the_run(on_device: list[TapedSteps]) -> None:
    config, train, validation = trial("digits", "gcn"), drawn("digits", 13), drawn("digits", 8, seed=1)
    train.graphs.x[int(train.graphs.node_offsets[train.indices[6]])] = float("nan")
    (result,) = results_of(config, train, validation)
    assert (result.status, result.reason, result.train) == ("diverged", "epoch 1: loss nan in training", None)
    train = drawn("digits", 13)
    validation.graphs.x[0] = float("nan")
    (result,) = results_of(config, train, validation)
    assert (result.status, result.reason) == ("diverged", "epoch 1: loss nan in evaluation")


def test_what_is_no_number_in_a_graph_of_another_split_reaches_nobody(on_device: list[TapedSteps]) -> None:
    config, whole = trial("digits", "gcn"), drawn("digits", 20)
    train, validation = GraphSplit(whole.graphs, torch.arange(1, 13)), GraphSplit(whole.graphs, torch.arange(13, 20))
    whole.graphs.x[0] = float("nan")  # padding rows are read from the first row packed
    assert_same(results_of(config, train, validation), plainly(config, train, validation))


class OwnLayer(torch.nn.Module):
    """A layer with a statistic of its own, which padding would change."""

    def __init__(self, row_dim: int) -> None:
        super().__init__()
        self.map = torch.nn.Linear(row_dim, row_dim)

    def forward(self, h: torch.Tensor, edge_index: torch.Tensor, beta_hat: torch.Tensor | None = None) -> torch.Tensor:
        messages = self.map(h).index_select(0, edge_index[0])
        messages = messages if beta_hat is None else messages * beta_hat.unsqueeze(1)
        return h - h.mean(0) + torch.zeros_like(h).index_add(0, edge_index[1], messages)


def test_a_layer_of_the_users_own_sees_no_padding(on_device: list[TapedSteps]) -> None:
    config = trial("zinc", f"{__name__}:OwnLayer")
    train, validation = drawn("zinc", 13), drawn("zinc", 8, seed=1)
    assert_same(results_of(config, train, validation), plainly(config, train, validation))
    assert [capture.captures for capture in on_device] == []


@pytest.mark.parametrize("sent", ["nothing", "training", "validation", "training and validation"])
def test_a_split_that_does_not_fit_is_sent_and_the_log_says_so(
    on_device: list[TapedSteps], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, sent: str
) -> None:
    whole = drawn("zinc", 21, encodings=3)
    few, many = torch.arange(8), torch.arange(8, 21)
    train, validation = (
        GraphSplit(whole.graphs, whole.indices[part]) for part in ((few, many) if sent == "validation" else (many, few))
    )
    smaller, larger = sorted(bytes_of(split) for split in (train, validation))
    limits = {"nothing": larger, "training and validation": smaller - 1}
    monkeypatch.setattr("bimp.device.placing.fits", lambda size, _: size <= limits.get(sent, larger - 1))
    config = trial("zinc", "gated_gcn", model={"pos_enc_dim": 2})
    with caplog.at_level(logging.WARNING):
        found = results_of(config, train, validation)
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        name for name in ("training", "validation") if name in sent
    ]
    # What is resident is captured: full batches and the rest, in training and in evaluation.
    assert on_device[0].captures >= 2 * (2 - len(caplog.records))
    assert bool(on_device[0].captures) == (len(caplog.records) < 2)
    assert_same(found, plainly(config, train, validation))


def test_batches_beyond_every_bucket_are_trained_as_they_are(
    on_device: list[TapedSteps], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [Shape(5, 20, 20), Shape(3, 12, 12)]  # most batches are larger
    monkeypatch.setattr("bimp.device.planning.drawn_shapes", lambda *_: small)
    config, train, validation = trial("zinc", "gat"), drawn("zinc", 23), drawn("zinc", 8, seed=1)
    assert_same(results_of(config, train, validation), plainly(config, train, validation))


def test_graphs_without_an_edge(on_device: list[TapedSteps]) -> None:
    lonely = drawn("digits", 60)
    chosen = torch.nonzero(lonely.graphs.edge_counts == 0).flatten()[:7]
    assert len(chosen) == 7
    split = GraphSplit(lonely.graphs, chosen)
    config = trial("digits", "gated_gcn", max_epochs=2)
    assert_same(results_of(config, split, split), plainly(config, split, split))


def test_half_precision_too(on_device: list[TapedSteps]) -> None:
    torch.set_default_dtype(torch.float32)  # autocast leaves double precision as it is
    config = trial("zinc", "gated_gcn", max_epochs=2, precision="bfloat16", learning_rate=1e-4)
    train, validation = drawn("zinc", 13), drawn("zinc", 8, seed=1)
    (*_, found), (*_, expected) = results_of(config, train, validation), plainly(config, train, validation)
    full = plainly(replace(config, train=replace(config.train, precision="float32")), train, validation)[-1]
    assert found.validation.loss == pytest.approx(expected.validation.loss, rel=1e-4)
    assert found.validation.loss != pytest.approx(full.validation.loss, rel=1e-7)
