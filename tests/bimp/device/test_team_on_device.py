"""Seeds trained together on a device against each of them trained plainly, their steps on tapes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from drawn_graphs import ARMS, seeds_of, trial
from tape import TapedSteps
from taped_runs import assert_same, frozen, plainly

from bimp.config import BACKBONES, Backbone
from bimp.device.shapes import Shape
from bimp.engine import EpochResult
from bimp.stack.team import SeedRun
from bimp.stack.together import fit_together
from tests.crossing import crossed

EVERY_BACKBONE = pytest.mark.parametrize("backbone", BACKBONES)


def together(runs: list[SeedRun]) -> list[list[EpochResult]]:
    results: list[list[EpochResult]] = [[] for _ in runs]
    for of_epoch in fit_together(runs):
        for number, result in of_epoch.items():
            results[number].append(frozen(result))
    return results


def one_by_one(runs: list[SeedRun]) -> list[list[EpochResult]]:
    return [plainly(run.config, run.train, run.validation, checkpoint=run.checkpoint) for run in runs]


def going_on(runs: list[SeedRun], after: list[EpochResult]) -> list[SeedRun]:
    return [replace(run, checkpoint=result.checkpoint()) for run, result in zip(runs, after, strict=True)]


def assert_same_runs(found: list[list[EpochResult]], expected: list[list[EpochResult]]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert_same(ours, theirs)


@pytest.mark.parametrize(("arm", "backbone"), crossed([*ARMS], BACKBONES))
def test_training_equals_that_of_each_by_itself(on_device: list[TapedSteps], arm: str, backbone: Backbone) -> None:
    dataset, gated = ARMS[arm]
    runs = seeds_of(trial(dataset, backbone, gated=gated, max_epochs=3))
    found = together(runs)
    assert on_device[0].captures >= 3  # of full batches, of the rest, in evaluation
    assert_same_runs(found, one_by_one(runs))


@pytest.mark.parametrize(("dataset", "backbone"), crossed(["cluster", "digits"], BACKBONES))
def test_the_released_reading_too(on_device: list[TapedSteps], dataset: str, backbone: Backbone) -> None:
    runs = seeds_of(trial(dataset, backbone, semantics="released", clip_norm=0.05, max_epochs=2), (13, 13))
    assert_same_runs(together(runs), one_by_one(runs))


@pytest.mark.parametrize("model", [{"readout": "max"}, {"readout": "sum"}, {"gate": "uniform"}], ids=str)
def test_other_readouts_and_the_control(on_device: list[TapedSteps], model: dict[str, str]) -> None:
    runs = seeds_of(trial("zinc", "gcn", model=model, max_epochs=2), (13, 13))
    assert_same_runs(together(runs), one_by_one(runs))


def test_signs_of_encodings_are_each_seeds_own(on_device: list[TapedSteps]) -> None:
    runs = seeds_of(trial("zinc", "gcn", model={"pos_enc_dim": 2}), (13, 13), encodings=3)
    assert_same_runs(together(runs), one_by_one(runs))


def test_folds_of_different_sizes(on_device: list[TapedSteps]) -> None:
    """Their last batches hold 3, 1 and 2 graphs, and one of them has a step less."""
    runs = seeds_of(trial("digits", "gated_gcn", model={"pos_enc_dim": 2}, max_epochs=3), (23, 16, 22), encodings=2)
    assert_same_runs(together(runs), one_by_one(runs))


def test_batches_beyond_every_size_are_trained_one_by_one(
    on_device: list[TapedSteps], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [Shape(5, 20, 20), Shape(3, 12, 12)]  # most batches are larger
    monkeypatch.setattr("bimp.device.planning.drawn_shapes", lambda *_: small)
    runs = seeds_of(trial("zinc", "gat"))
    assert_same_runs(together(runs), one_by_one(runs))


@pytest.mark.parametrize("sent", ["training", "everything"])
def test_graphs_that_do_not_fit_are_sent(
    on_device: list[TapedSteps], monkeypatch: pytest.MonkeyPatch, sent: str
) -> None:
    runs = seeds_of(trial("zinc", "gated_gcn", model={"pos_enc_dim": 2}, max_epochs=2), (13, 16), encodings=2)
    monkeypatch.setattr("bimp.device.placing.fits", lambda size, _: sent == "training" and size < 4_000)
    found = together(runs)
    assert (on_device[0].captures > 0) == (sent == "training")
    assert_same_runs(found, one_by_one(runs))


def test_who_has_ended_leaves_the_others(on_device: list[TapedSteps]) -> None:
    runs = seeds_of(trial("zinc", "gcn", max_epochs=25, learning_rate=0.05, lr_patience=0, min_lr=0.02), (13, 13, 13))
    expected = one_by_one(runs)
    assert len({len(results) for results in expected}) > 1
    assert_same_runs(together(runs), expected)
    assert len(on_device) > 1  # captured anew


def test_who_diverges_leaves_the_others(on_device: list[TapedSteps]) -> None:
    runs = seeds_of(trial("digits", "gcn"), (13, 13, 13))
    (bad,) = set(runs[0].train.indices.tolist()) - set(runs[1].train.indices.tolist())
    graphs = runs[0].train.graphs
    graphs.x[int(graphs.node_offsets[bad])] = float("nan")
    found = together(runs)
    assert [(result.status, result.reason) for result in found[0]] == [("diverged", "epoch 1: loss nan in training")]
    assert (found[0][0].train, found[0][0].validation) == (None, None)
    assert_same_runs(found[1:], one_by_one(runs)[1:])


@EVERY_BACKBONE
def test_a_checkpoint_goes_on_elsewhere(on_device: list[TapedSteps], backbone: Backbone) -> None:
    runs = seeds_of(trial("cluster", backbone), (13, 13))
    whole = one_by_one(runs)
    halves = together(
        [replace(run, checkpoint=of_run[1].checkpoint()) for run, of_run in zip(runs, whole, strict=True)]
    )
    assert_same_runs(halves, [of_run[2:] for of_run in whole])
    rest = one_by_one(
        [replace(run, checkpoint=of_run[0].checkpoint()) for run, of_run in zip(runs, halves, strict=True)]
    )
    assert_same_runs(rest, [of_run[3:] for of_run in whole])


def test_half_precision_too(on_device: list[TapedSteps]) -> None:
    torch.set_default_dtype(torch.float32)  # autocast leaves double precision as it is
    runs = seeds_of(trial("zinc", "gated_gcn", max_epochs=2, precision="bfloat16", learning_rate=1e-4), (13, 13))
    for found, expected in zip(together(runs), one_by_one(runs), strict=True):
        assert found[-1].validation.loss == pytest.approx(expected[-1].validation.loss, rel=1e-4)
