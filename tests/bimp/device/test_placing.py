from __future__ import annotations

import logging
import weakref

import pytest
import torch
from drawn_graphs import DATASETS, drawn

from bimp.data import GraphSplit
from bimp.device.placing import free_memory, place
from bimp.device.resident import bytes_of

CPU = torch.device("cpu")


def test_one_copy_serves_all_splits_of_a_dataset() -> None:
    whole = drawn("zinc", 20)
    train, validation = GraphSplit(whole.graphs, torch.arange(12)), GraphSplit(whole.graphs, torch.arange(12, 20))
    training = place("training", [train, train], CPU)
    validating = place("validation", [validation], CPU, training)
    assert training.resident is not None
    assert validating.resident is training.resident
    assert training.splits == (train, train)
    elsewhere = place("validation", [drawn("zinc", 5)], CPU, training)
    assert elsewhere.resident is not training.resident


@pytest.mark.parametrize("dataset", DATASETS)
def test_a_split_by_itself_takes_less_and_holds_the_same(monkeypatch: pytest.MonkeyPatch, dataset: str) -> None:
    split = GraphSplit(drawn(dataset, 20, encodings=2).graphs, torch.tensor([7, 3, 12]))
    monkeypatch.setattr("bimp.device.placing.fits", lambda size, _: size <= bytes_of(split))
    placed = place("validation", [split, GraphSplit(split.graphs, split.indices.clone())], CPU)
    assert placed.resident is not None
    assert len(placed.resident.graphs) == 3
    for own in placed.splits:
        assert bytes_of(own) == bytes_of(split)
        for found, expected in zip(own.batches(2), split.batches(2), strict=True):
            torch.testing.assert_close(vars(found), vars(expected), rtol=0, atol=0)


def test_what_does_not_fit_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    split = drawn("zinc", 20)
    monkeypatch.setattr("bimp.device.placing.free_memory", lambda _: 4 * bytes_of(split) - 4)
    with caplog.at_level(logging.WARNING):
        placed = place("training", [split], CPU)
    assert placed.resident is None
    (record,) = caplog.records
    assert record.getMessage() == (
        "training: its graphs take 0.0 MiB, more than 25% of the 0.0 MiB that are free on the device: "
        "batches are sent one by one, and steps are not captured"
    )


def test_folds_are_not_placed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = drawn("zinc", 20).graphs
    folds = [GraphSplit(graphs, torch.arange(first, first + 4)) for first in (0, 4)]
    monkeypatch.setattr("bimp.device.placing.fits", lambda size, _: size <= bytes_of(folds[0]))
    assert place("training", folds, CPU).resident is None
    assert place("training", [folds[0], drawn("zinc", 5)], CPU).resident is None


class Ended:
    """What refers to itself, as a run does to its captured steps and they to it."""

    def __init__(self) -> None:
        self.itself = self


def test_what_ended_runs_left_on_the_device_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = weakref.ref(Ended())
    held = [6]
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: held.clear() if ended() is None else None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (10 - sum(held), 10))
    assert free_memory(torch.device("cuda")) == 10
    assert free_memory(CPU) is None
