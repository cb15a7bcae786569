"""What is timed on a GPU, with the device without values in its place."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks import gpu_contenders
from benchmarks.contenders import trial_config
from benchmarks.graphs import Workload, drawn_graphs

META = torch.device("meta")


class Sent(TorchDispatchMode):
    """Counts the tensors that go from main memory to the device."""

    def __init__(self) -> None:
        super().__init__()
        self.tensors = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.tensors += func is torch.ops.aten._to_copy.default and (args[0].device, result.device) != (META, META)
        return result


def test_the_usual_way_moves_its_batches_in_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_contenders, "GPU", META)
    monkeypatch.setattr(gpu_contenders, "training_step", lambda *_: None)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    graphs = drawn_graphs("cluster", 6)  # pooling to graphs would look at a number of nodes
    two_batches = Workload(name="cluster", graphs=graphs, batch_size=3, train_graphs=6, validation_graphs=6)
    epoch = gpu_contenders._usual_epoch(trial_config(two_batches, "gcn", 4, gated=False), two_batches)
    for turn in range(2):
        with Sent() as sent:
            epoch(turn)
        assert sent.tensors == 2 * 5  # x, edge_index, y, batch and ptr of each
