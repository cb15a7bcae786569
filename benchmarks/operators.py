"""How many operators a step on a device calls, counted in main memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.contenders import trial_config
from benchmarks.graphs import Workload
from bimp.config import Backbone, TrialConfig
from bimp.data import GraphSplit
from bimp.device.capture import Capture, Step
from bimp.device.run import DeviceRun
from bimp.engine import TrainingRun
from bimp.stack.team import SeedRun, Team

HERE = torch.device("cpu")
NO_WORK = {"empty", "new_empty", "empty_like", "empty_strided", "detach", "lift_fresh"}


class Counted(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the operators that do something."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count and go on."""
        self.calls += not func.is_view and func.overloadpacket.__name__ not in NO_WORK
        return func(*args, **(kwargs or {}))

    def capturing(self, *_: object) -> Capture:
        """Captures that count what a step calls whenever it runs."""

        def counted(step: Step) -> Step:
            def run() -> None:
                with self:
                    step()

            return run

        return counted

    def in_second(self, epoch: Callable[[], object]) -> int:
        """How many were counted in a second epoch: in the first Adam makes its state."""
        epoch()
        self.calls = 0
        epoch()
        return self.calls


@contextmanager
def as_on_a_device() -> Iterator[None]:
    """Networks made within are of a type that the kernels for main memory leave to the functions of devices."""
    torch.set_default_dtype(torch.bfloat16)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def operators_of_a_step(workload: Workload, backbone: Backbone, layers: int) -> int:
    """How many a captured training step with boosting calls on a batch."""
    split = GraphSplit(workload.graphs, workload.picks()[0])
    return operators_of_steps(trial_config(workload, backbone, layers, gated=True), split)


def operators_of_steps(config: TrialConfig, split: GraphSplit) -> int:
    """How many the captured steps of an epoch of training on ``split`` call."""
    counted = Counted()
    with as_on_a_device():
        training = TrainingRun(config, HERE)
        run = DeviceRun(
            training.network, training.optimizer, config, training.loss, split, split, HERE, counted.capturing
        )
        order = torch.arange(len(split))
        return counted.in_second(lambda: run.train(order, torch.ones))


def operators_together(runs: Sequence[SeedRun]) -> int:
    """The same of an epoch of all runs together."""
    counted = Counted()
    with as_on_a_device():
        team = Team(runs, HERE).steps_on(HERE, counted.capturing)
        orders = [torch.arange(len(run.train)) for run in runs]
        return counted.in_second(lambda: team.train(orders, [torch.ones] * len(runs)))
