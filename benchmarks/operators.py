"""How many operators a step on a device calls, counted in main memory."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.contenders import trial_config
from benchmarks.graphs import Workload
from bimp.config import Backbone
from bimp.data import GraphSplit
from bimp.device.run import DeviceRun
from bimp.engine import TrainingRun

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


def operators_of_a_step(workload: Workload, backbone: Backbone, layers: int) -> int:
    """How many a padded training step with boosting calls, in an epoch of one step."""
    config = trial_config(workload, backbone, layers, gated=True)
    split = GraphSplit(workload.graphs, workload.picks()[0])
    here = torch.device("cpu")
    training = TrainingRun(config, here)
    training.network.to(torch.bfloat16)  # which the kernels for main memory leave to the functions of devices
    run = DeviceRun(training.network, training.optimizer, config, training.loss, split, split, here)
    order = torch.arange(len(split))
    run.train(order, torch.ones)  # Adam makes its state
    counted = Counted()
    with counted:
        run.train(order, torch.ones)
    return counted.calls
