"""Small graphs of every form of task, for training on a device."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest
import torch

from bimp.config import BACKBONES, Backbone, ModelConfig, TrainConfig, TrialConfig
from bimp.data import GraphSplit, PackedGraphs
from bimp.device.learning import Loss
from bimp.engine import TrainingRun
from bimp.semantics import MODEL_SETTINGS, TRAIN_SETTINGS, Semantics, preset
from bimp.stack.team import SeedRun
from bimp.tasks import task_of

DATASETS = ("zinc", "digits", "cluster", "tsp")
"""Graph regression and classification, node and edge classification."""
ARMS = {
    **{dataset: (dataset, True) for dataset in DATASETS},
    "zinc without a gate": ("zinc", False),
    "cluster without a gate": ("cluster", False),
}
"""A dataset, and whether the model has a gate."""
LEVELS = {"graph_regression": "graph", "graph_classification": "graph", "node_classification": "node"}


def drawn(dataset: str, graphs: int, seed: int = 0, encodings: int | None = None) -> GraphSplit:
    """Graphs of 1 to 9 nodes and any number of directed edges, some with neither edges nor neighbours."""
    task, generator = task_of(dataset), torch.Generator().manual_seed(seed)
    node_counts = torch.randint(1, 10, (graphs,), generator=generator)
    edge_counts = (node_counts * torch.rand(graphs, generator=generator) * 3).long() * (node_counts > 1)
    nodes, edges = int(node_counts.sum()), int(edge_counts.sum())
    most = node_counts.repeat_interleave(edge_counts)
    ends = (torch.rand(2, edges, generator=generator) * most).long()

    def inputs(kind: str, dim: int, rows: int) -> torch.Tensor:
        if kind == "embedding":
            return torch.randint(dim, (rows,), generator=generator)
        return torch.rand(rows, dim, generator=generator)

    level = LEVELS.get(task.kind, "edge")
    items = {"graph": graphs, "node": nodes, "edge": edges}[level]
    packed = PackedGraphs.from_arrays(
        node_counts=node_counts,
        edge_counts=edge_counts,
        x=inputs(task.node_input, task.node_dim, nodes),
        edge_index=ends,
        edge_attr=None if task.edge_input == "ones" else inputs(task.edge_input, task.edge_dim, edges),
        y=torch.rand(items, generator=generator)
        if task.kind == "graph_regression"
        else torch.randint(task.num_outputs, (items,), generator=generator),
        labels=level,  # type: ignore[arg-type]
    )
    if encodings is not None:
        packed = replace(packed, pos_enc=torch.randn(nodes, encodings, generator=generator))
    return GraphSplit(packed, torch.randperm(graphs, generator=generator))


def trial(
    dataset: str,
    backbone: Backbone,
    *,
    gated: bool = True,
    semantics: Semantics = "paper",
    model: dict[str, Any] | None = None,
    **train: Any,
) -> TrialConfig:
    """Three layers, of which the second is gated; four epochs of batches of five graphs."""
    settings = preset(semantics, dataset=dataset, backbone=backbone, gated=gated) if backbone in BACKBONES else {}
    gate = {"placement": "boosting", "gate": "bilateral", "num_clusters": 3, "sigma_m": 1.0} if gated else {}
    given: dict[str, Any] = {
        "backbone": backbone,
        "layers": 3,
        "hidden_dim": 4 if backbone == "gat" else 8,
        "heads": 2 if backbone == "gat" else 1,
        "semantics": semantics,
        **{name: value for name, value in settings.items() if name in MODEL_SETTINGS},
        **gate,
        **(model or {}),
    }
    training: dict[str, Any] = {
        "max_epochs": 4,
        "batch_size": 5,
        "learning_rate": 5e-3,
        "lr_patience": 0,
        "unsupervised_weight": 0.3 if gated else None,
        **{name: value for name, value in settings.items() if name in TRAIN_SETTINGS},
        **train,
    }
    return TrialConfig(dataset=dataset, model=ModelConfig(**given), train=TrainConfig(**training), seed=41)


def seeds_of(config: TrialConfig, sizes: tuple[int, ...] = (23, 23, 23), encodings: int | None = None) -> list[SeedRun]:
    """A seed for each number of training graphs, which are of one dataset."""
    whole = drawn(config.dataset, 40, encodings=encodings)
    return [
        SeedRun(
            config=replace(config, seed=41 + number),
            train=GraphSplit(whole.graphs, torch.arange(28).roll(number)[:size]),
            validation=GraphSplit(whole.graphs, torch.arange(28, 40)),
        )
        for number, size in enumerate(sizes)
    ]


def loss_of(config: TrialConfig) -> Loss:
    """What a run of ``config`` minimises."""
    return TrainingRun(config, torch.device("cpu")).loss


def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a device: the functions that serve everywhere, not those for main memory."""
    for name, module in list(sys.modules.items()):
        if name.startswith("bimp.") and hasattr(module, "kernels_serve"):
            monkeypatch.setattr(module, "kernels_serve", lambda *_: False)
