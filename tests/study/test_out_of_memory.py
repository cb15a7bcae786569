"""Memory that really runs out, in the hands of torch, NumPy and Python, and what a worker makes of it."""

from __future__ import annotations

import errno
import sys
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from made_trials import assignment, config
from torch import Tensor, nn

from bimp.config import ConfigError
from bimp.data import open_prepared, prepare
from study.assignment import TrialAssignment
from study.live_trial import TrialProgress
from study.out_of_memory import MemoryPlace, OutOfMemory, failed_alone, out_of_memory
from study.records import read_record
from study.results import FIRST_ATTEMPT, ResultsFolder
from study.worker import reports_of

MUCH = 2**46


class Hungry(nn.Module):
    """A layer that asks for 64 TiB in its first step, or does what a test puts in the place of that."""

    fault: Callable[[], Any] = staticmethod(lambda: torch.empty(MUCH))

    def __init__(self, row_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(row_dim, row_dim)

    def forward(self, h: Tensor, edge_index: Tensor, beta_hat: Tensor | None = None) -> Tensor:
        type(self).fault()
        return self.linear(h)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    prepare("digits", root)
    return root


@pytest.fixture
def trial(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> TrialAssignment:
    module = ModuleType("hungry_layers")
    module.Hungry = Hungry  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "hungry_layers", module)
    ResultsFolder(tmp_path).create()
    given = config()
    model = replace(given.model, backbone="hungry_layers:Hungry")
    return assignment(
        tmp_path,
        data,
        config=replace(given, model=model),
        data_fingerprint=open_prepared("digits", data).fingerprint,
    )


@pytest.mark.parametrize(
    ("allocate", "cause"),
    [
        (lambda: torch.empty(MUCH), "RuntimeError: [enforce fail at alloc_cpu.cpp"),
        (lambda: np.ones(MUCH), "MemoryError: Unable to allocate 512. TiB"),
        (lambda: bytearray(MUCH), "MemoryError"),
    ],
)
def test_memory_of_the_host_that_cannot_be_had(allocate: Callable[[], Any], cause: str) -> None:
    with pytest.raises((RuntimeError, MemoryError)) as caught:
        allocate()
    found = out_of_memory(caught.value)
    assert found is not None
    assert found.place == "host"
    assert found.cause.startswith(cause)
    assert "\n" not in found.cause


@pytest.mark.parametrize(
    ("error", "place"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has ..."), "gpu"),
        (RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be ..."), "gpu"),
        (RuntimeError("CUDA driver error: out of memory"), "gpu"),  # with expandable segments
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), "gpu"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"), "gpu"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "host"),
        (RuntimeError("shape mismatch"), None),
        (OSError(errno.ENOSPC, "No space left on device"), None),
        (KeyError("out of memory"), None),
    ],
)
def test_errors_are_told_apart(error: Exception, place: MemoryPlace | None) -> None:
    found = out_of_memory(error)
    assert (found.place if found else None) == place


def test_memory_is_found_below_the_error_that_was_raised_from_it() -> None:
    outer = ConfigError("backbone", "cannot be built")
    outer.__cause__ = MemoryError()
    assert out_of_memory(outer) == OutOfMemory("host", "MemoryError")


def test_beside_others_a_trial_that_ran_out_of_memory_is_left_for_another_try(trial: TrialAssignment) -> None:
    (report,) = reports_of(trial)
    assert report["out_of_memory"] == "host"
    assert "DefaultCPUAllocator: can't allocate memory: you tried to allocate 281474976710656 bytes" in report["cause"]
    folder = ResultsFolder(Path(trial.results))
    assert not folder.errors.exists()
    assert (
        not folder.live_record(trial.key, FIRST_ATTEMPT).exists()
        or read_record(folder.live_record(trial.key, FIRST_ATTEMPT)).status == "running"
    )


def test_alone_it_fails_with_its_cause_and_what_would_help(trial: TrialAssignment) -> None:
    assert list(reports_of(replace(trial, alone="host"))) == []
    folder = ResultsFolder(Path(trial.results))
    record = read_record(folder.live_record(trial.key, FIRST_ATTEMPT))
    assert record.status == "failed"
    assert record.reason is not None
    assert record.reason.startswith("out of host memory, even with a node to itself (RuntimeError: [enforce fail")
    assert record.reason.endswith(
        "what would help: a smaller batch_size (here 512), a smaller hidden_dim (here 6) or budget, fewer layers "
        "(here 2), or a node with more memory"
    )
    assert folder.error(trial.key).read_text().startswith("Traceback")


@pytest.mark.parametrize(("alone", "asks_again"), [(None, True), ("gpu", False), ("host", False)])
def test_pytorchs_own_error_for_a_gpu_asks_for_a_gpu(
    trial: TrialAssignment, monkeypatch: pytest.MonkeyPatch, alone: MemoryPlace | None, asks_again: bool
) -> None:
    """There is no GPU here that could be filled: the layer raises what PyTorch raises."""

    def full() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nmore")

    monkeypatch.setattr(Hungry, "fault", staticmethod(full))
    reports = list(reports_of(replace(trial, alone=alone)))
    cause = "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    if asks_again:
        (report,) = reports
        assert (report["out_of_memory"], report["cause"]) == ("gpu", cause)
        assert "epoch" not in report
    else:
        assert reports == []
        record = read_record(ResultsFolder(Path(trial.results)).live_record(trial.key, FIRST_ATTEMPT))
        assert record.reason == failed_alone(OutOfMemory("gpu", cause), trial.config)
        assert record.reason.startswith("out of GPU memory, even with a GPU to itself (OutOfMemoryError")


def test_what_it_held_is_free_before_another_trial_may_come(
    trial: TrialAssignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[weakref.ref[Any]] = []

    def holds_much() -> None:
        large = torch.ones(1000)
        held.append(weakref.ref(large))
        torch.empty(MUCH)

    monkeypatch.setattr(Hungry, "fault", staticmethod(holds_much))
    reports = reports_of(trial)
    next(reports)
    assert [reference() for reference in held] == [None]


class OnGpu:
    """A run that refers to itself, as a run on a GPU does to its captured steps and they to it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize("stopped", [False, True], ids=["it ended", "it was stopped"])
def test_a_gpu_is_given_back_whatever_becomes_of_the_trial(
    trial: TrialAssignment, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    runs: list[weakref.ref[OnGpu]] = []
    given_back: list[str] = []

    def trained(_: TrialAssignment) -> Iterator[TrialProgress]:
        run = OnGpu()
        runs.append(weakref.ref(run))
        yield TrialProgress(epoch=1, val_metric=0.5, ended=False)
        yield TrialProgress(epoch=2, val_metric=0.5, ended=True)

    def freed(what: str) -> None:
        assert [run() for run in runs] == [None]
        given_back.append(what)

    monkeypatch.setattr("study.worker.train_trial", trained)
    monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: freed("workspaces"), raising=False)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: freed("cache"))
    reports = reports_of(replace(trial, use_gpu=True))
    if stopped:
        next(reports)
        reports.close()
    else:
        assert len(list(reports)) == 2
    assert given_back == ["workspaces", "cache"]


def test_a_process_that_an_error_left_without_its_gpu_ends_with_the_cause_on_record(
    trial: TrialAssignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CUDA answers whatever it is asked after such an error with that error."""

    def refused(*_: object) -> None:
        raise RuntimeError("CUDA error: device-side assert triggered\nmore")

    monkeypatch.setattr("study.worker.train_trial", refused)
    monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None, raising=False)
    monkeypatch.setattr(torch.cuda, "empty_cache", refused)
    with pytest.raises(RuntimeError, match="device-side assert"):  # by which Tune ends the process
        list(reports_of(replace(trial, use_gpu=True)))
    record = read_record(ResultsFolder(Path(trial.results)).live_record(trial.key, FIRST_ATTEMPT))
    assert (record.status, record.reason) == ("failed", "RuntimeError: CUDA error: device-side assert triggered")
