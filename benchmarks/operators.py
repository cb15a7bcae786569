"""How many operators a step on a device calls, and how many launches they are, counted in main memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.contenders import trial_config
from benchmarks.graphs import Workload
from bimp.config import Backbone
from bimp.data import GraphSplit
from bimp.device.board import Board
from bimp.device.run import DeviceRun
from bimp.engine import TrainingRun

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
    """Counts the operators that do something, and their launches, while it ``counts``."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts = True
        self.calls = 0
        self.launches = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count and go on."""
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if self.counts and not func.is_view and name not in NO_WORK:
            self.calls += 1
            self.launches += _launches(name, args)
        return result


def _launches(name: str, args: Sequence[Any]) -> int:
    for family, tensors in TENSORS_A_LAUNCH.items():
        if name.startswith(family):
            return -(-len(args[0]) // tensors)
    adds_to_rows = name == "addmm" and isinstance(args[0], Tensor) and args[0].dim() == 2
    return 2 if adds_to_rows else LAUNCHES.get(name, 1)


def operators_of_a_step(workload: Workload, backbone: Backbone, layers: int) -> Called:
    """Of a padded training step with boosting: from the number of its graphs to the row that it leaves."""
    config = trial_config(workload, backbone, layers, gated=True)
    split = GraphSplit(workload.graphs, workload.picks()[0])
    here = torch.device("cpu")
    training = TrainingRun(config, here)
    training.network.to(torch.bfloat16)  # which the kernels for main memory leave to the functions of devices
    run = DeviceRun(training.network, training.optimizer, config, training.loss, split, split, here)
    order = torch.arange(len(split))
    run.train(order, torch.ones)  # Adam makes its state
    counted = Counted()
    counted.counts = False
    begin, read = Board.begin, Board.read

    def counted_begin(board: Board, *told: Any) -> None:
        begin(board, *told)
        counted.counts = True

    def counted_read(board: Board) -> Tensor:
        counted.counts = False
        return read(board)

    with patch.object(Board, "begin", counted_begin), patch.object(Board, "read", counted_read), counted:
        run.train(order, torch.ones)
    return Called(counted.calls, counted.launches)
