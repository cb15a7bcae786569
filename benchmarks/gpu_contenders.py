"""What is timed on a GPU: epochs of ours and steps of the usual way, on the same graphs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch_geometric.data import Batch

from benchmarks.contenders import build_network, training_step, trial_config
from benchmarks.graphs import Workload
from benchmarks.measure import Timings, interleave
from benchmarks.usual_way import UsualNetwork, separate_graphs
from bimp.config import BACKBONES, Backbone, TrialConfig
from bimp.data import GraphSplit
from bimp.device.run import DeviceRun
from bimp.engine import TrainingRun
from bimp.losses import supervised_loss
from bimp.tasks import task_of

GPU = torch.device("cuda")


@dataclass(frozen=True, kw_only=True)
class GpuCell:
    """Seconds of a training step, loading included, of one backbone at one depth.

    Attributes:
        title: of the graphs.
        layers, backbone: of the network.
        boosting, vanilla, usual: ours gated and not, and the vanilla one the usual way.
    """

    title: str
    layers: int
    backbone: Backbone
    boosting: Timings
    vanilla: Timings
    usual: Timings


def time_on_gpu(workload: Workload, layers: int, turns: int) -> list[GpuCell]:
    """Time every backbone with ``layers`` layers on the batches of ``workload``; a turn is an epoch over them."""
    steps = len(workload.picks())
    contenders: dict[str, Callable[[int], object]] = {}
    for backbone in BACKBONES:
        vanilla = trial_config(workload, backbone, layers, gated=False)
        boosting = trial_config(workload, backbone, layers, gated=True)
        contenders[f"vanilla {backbone}"] = _our_epoch(vanilla, workload)
        contenders[f"boosting {backbone}"] = _our_epoch(boosting, workload)
        contenders[f"usual {backbone}"] = _usual_epoch(vanilla, workload)
    timings = {name: found.over(steps) for name, found in interleave(contenders, turns).items()}
    return [
        GpuCell(
            title=workload.title,
            layers=layers,
            backbone=backbone,
            boosting=timings[f"boosting {backbone}"],
            vanilla=timings[f"vanilla {backbone}"],
            usual=timings[f"usual {backbone}"],
        )
        for backbone in BACKBONES
    ]


def _our_epoch(config: TrialConfig, workload: Workload) -> Callable[[int], object]:
    split = GraphSplit(workload.graphs, torch.arange(len(workload.graphs)))
    training = TrainingRun(config, GPU)
    run = DeviceRun(training.network, training.optimizer, config, training.loss, split, split, GPU)

    def epoch(turn: int) -> None:
        generator = torch.Generator().manual_seed(turn)
        run.train(torch.randperm(len(split), generator=generator), lambda count: torch.ones(count))

    for turn in range(2 * len(workload.picks())):  # captures of the sizes that such epochs meet
        epoch(turn)
    return epoch


def _usual_epoch(config: TrialConfig, workload: Workload) -> Callable[[int], object]:
    batches = [Batch.from_data_list(separate_graphs(workload.graphs, pick)) for pick in workload.picks()]
    network = UsualNetwork(build_network(config)).to(GPU)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    kind = task_of(config.dataset).kind

    def epoch(turn: int) -> None:
        for batch in batches:
            on_device = copy.copy(batch).to(GPU)  # which moves the tensors of the batch that it is called on
            training_step(supervised_loss(kind, network(on_device), on_device.y), optimizer)
        torch.cuda.synchronize()

    return epoch
