"""Runs on tapes and plainly, and whether they are the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from bimp.config import TrialConfig
from bimp.data import GraphSplit
from bimp.engine import EpochResult, fit
from bimp.measurement import Evaluation


def results_of(config: TrialConfig, train: GraphSplit, validation: GraphSplit, **more: Any) -> list[EpochResult]:
    """Every epoch of a run, its checkpoint as it was then."""
    return [frozen(result) for result in fit(config, train, validation, **more)]


def frozen(result: EpochResult) -> EpochResult:
    """With the checkpoint as it is now, which later epochs are to leave as it is."""
    checkpoint = result.checkpoint()
    return replace(result, checkpoint=lambda: checkpoint)


def plainly(config: TrialConfig, train: GraphSplit, validation: GraphSplit, **more: Any) -> list[EpochResult]:
    """As in main memory, in the midst of a test on tapes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bimp.engine.has_own_path", lambda _: False)
        return results_of(config, train, validation, **more)


def assert_same(found: list[EpochResult], expected: list[EpochResult]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (one.epoch, one.learning_rate, one.status, one.reason) == (
            other.epoch,
            other.learning_rate,
            other.status,
            other.reason,
        )
        for which in ("train", "validation"):
            assert_near(getattr(one, which), getattr(other, which))
        ours, theirs = one.checkpoint(), other.checkpoint()
        torch.testing.assert_close(ours["network"], theirs["network"], rtol=1e-4, atol=1e-6)
        assert ours["optimizer"]["param_groups"] == theirs["optimizer"]["param_groups"]
        kept, expected_state = ours["optimizer"]["state"], theirs["optimizer"]["state"]
        # Of seeds together a parameter on which no loss depends has moments too: zeros.
        assert not any(kept[number]["exp_avg"].any() for number in kept.keys() - expected_state.keys())
        of_both = {number: kept[number] for number in expected_state}
        torch.testing.assert_close(of_both, expected_state, rtol=1e-3, atol=1e-6)


def assert_near(found: Evaluation, expected: Evaluation) -> None:
    assert found.loss == pytest.approx(expected.loss, rel=1e-5)
    assert (found.unsupervised_loss is None) == (expected.unsupervised_loss is None)
    assert found.unsupervised_loss or pytest.approx(expected.unsupervised_loss or 0, rel=1e-5) == 0
    assert found.metric == pytest.approx(expected.metric, rel=1e-5)
    assert (found.gate is None) == (expected.gate is None)
    if found.gate is not None and expected.gate is not None:
        assert vars(found.gate) == pytest.approx(vars(expected.gate), rel=1e-5, abs=1e-6)
