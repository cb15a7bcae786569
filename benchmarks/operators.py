"""How many operators a step on a device calls, counted in main memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.contenders import trial_config
from benchmarks.graphs import Workload
from bimp.config import Backbone, TrialConfig
from bimp.data import GraphSplit
from bimp.device.ahead import MOST_STEPS, BatchesAhead
from bimp.device.capture import Capture, Step
from bimp.device.resident import ResidentGraphs
from bimp.device.run import DeviceRun
from bimp.device.shapes import Shape
from bimp.engine import TrainingRun
from bimp.stack.team import SeedRun, Team

HERE = torch.device("cpu")
NO_WORK = {"empty", "new_empty", "empty_like", "empty_strided", "detach", "lift_fresh", "_unsafe_view"}
LAUNCHES = {
    "sort": 8,  # of 32 bits: the places, the counts of digits, where each begins, four passes, the places as integers
    "cumsum": 2,
    "constant_pad_nd": 2,  # a fill and a copy
    "slice_backward": 2,
    "index_add": 2,  # a copy and the additions
    "index_copy": 2,
    "_embedding_bag_backward": 2,  # of a maximum; of a sum it would sort
    "embedding_dense_backward": 10,  # sorts where numbers are many
}
"""Of an operator on a GPU, where it is known to take more than one; a large product or sum may take one more."""
TENSORS_A_LAUNCH = {"_fused_adam_": 36, "_foreach": 64, "cat": 128, "stack": 128}
"""How many tensors an operator on lists goes through in one launch."""


@dataclass(frozen=True)
class Called:
    """What a step calls: operators that do something, and their launches."""

    operators: int
    launches: int


class Counted(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the operators that do something, and their launches."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operators = 0
        self.launches = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count and go on."""
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if not func.is_view and name not in NO_WORK:
            self.operators += 1
            self.launches += _launches(name, args)
        return result

    def capturing(self, *_: object) -> Capture:
        """Captures that count what a step calls whenever it runs."""

        def counted(step: Step) -> Step:
            def run() -> None:
                with self:
                    step()

            return run

        return counted

    def in_second(self, epoch: Callable[[], object]) -> Called:
        """What was counted in a second epoch: in the first Adam makes its state."""
        epoch()
        self.operators = self.launches = 0
        epoch()
        return Called(self.operators, self.launches)


@contextmanager
def as_on_a_device() -> Iterator[None]:
    """Networks made within are of a type that the kernels for main memory leave to the functions of devices."""
    torch.set_default_dtype(torch.bfloat16)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def _launches(name: str, args: Sequence[Any]) -> int:
    for family, tensors in TENSORS_A_LAUNCH.items():
        if name.startswith(family):
            return -(-len(args[0]) // tensors)
    adds_to_rows = name == "addmm" and isinstance(args[0], Tensor) and args[0].dim() == 2
    return 2 if adds_to_rows else LAUNCHES.get(name, 1)


def operators_of_a_step(workload: Workload, backbone: Backbone, layers: int) -> Called:
    """What a captured training step with boosting calls on a batch, which was gathered before."""
    split = GraphSplit(workload.graphs, workload.picks()[0])
    return operators_of_steps(trial_config(workload, backbone, layers, gated=True), split)


def operators_of_gathering(workload: Workload, backbone: Backbone) -> Called:
    """What gathering ``MOST_STEPS`` batches at once calls, the orders of their edges found."""
    picks = workload.picks()[0]
    nodes, edges = (int(counts[picks].sum()) for counts in (workload.graphs.node_counts, workload.graphs.edge_counts))
    size = Shape(len(picks), nodes + 1, edges + 1)
    ahead = BatchesAhead(
        ResidentGraphs.of(workload.graphs, HERE),
        size,
        1,
        torch.float32,
        has_gated_runs=backbone == "gated_gcn",
        has_weights=True,
    )
    counted = Counted()

    def epoch() -> None:
        ahead.begin([picks.unsqueeze(0)] * MOST_STEPS)
        with counted:
            ahead.advance()

    return counted.in_second(epoch)


def operators_of_steps(config: TrialConfig, split: GraphSplit) -> Called:
    """What the captured steps of an epoch of training on ``split`` call."""
    counted = Counted()
    with as_on_a_device():
        training = TrainingRun(config, HERE)
        run = DeviceRun(
            training.network, training.optimizer, config, training.loss, split, split, HERE, counted.capturing
        )
        order = torch.arange(len(split))
        return counted.in_second(lambda: run.train(order, torch.ones))


def operators_together(runs: Sequence[SeedRun]) -> Called:
    """The same of an epoch of all runs together."""
    counted = Counted()
    with as_on_a_device():
        team = Team(runs, HERE).steps_on(HERE, counted.capturing)
        orders = [torch.arange(len(run.train)) for run in runs]
        return counted.in_second(lambda: team.train(orders, [torch.ones] * len(runs)))
