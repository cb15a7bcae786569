"""What is predicted on each dataset, and the benchmark's protocol for it (docs/protocol.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TaskKind = Literal["graph_regression", "graph_classification", "node_classification", "edge_classification"]
Metric = Literal["mae", "accuracy", "balanced_accuracy", "f1"]
NodeInput = Literal["embedding", "linear"]
EdgeInput = Literal["embedding", "linear", "ones"]
Direction = Literal["min", "max"]


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The benchmark's training settings for a dataset: the defaults of a study that sets nothing."""

    batch_size: int
    learning_rate: float
    lr_patience: int
    min_lr: float
    max_epochs: int


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """One dataset's task.

    Attributes:
        dataset: name in a study file.
        title: name in a table.
        kind: what carries the label, and whether it is a class.
        node_input: ``embedding`` of an integer below ``node_dim``, or ``linear`` map of ``node_dim`` numbers.
        edge_input: the same for GatedGCN's edge rows; ``ones``: a linear map of ``edge_dim`` constant ones.
        num_outputs: classes, or 1 for a regression.
        metric: what is reported; fractions, not per cent.
        protocol: the benchmark's training settings, for a vanilla GCN where they depend on the model.
        node_features, edge_features: what the inputs are, in a table of statistics; None: the edges have none.
        directed: how a table of statistics counts edges: each direction (the medium datasets), or each undirected
            edge once (the TU datasets).
        folds: number of cross-validation folds; None where the dataset has one split.
    """

    dataset: str
    title: str
    kind: TaskKind
    node_input: NodeInput
    node_dim: int
    edge_input: EdgeInput
    edge_dim: int
    num_outputs: int
    metric: Metric
    protocol: Protocol
    node_features: str
    edge_features: str | None = None
    directed: bool = True
    folds: int | None = None

    @property
    def direction(self) -> Direction:
        """Whether a smaller (``min``) or a larger (``max``) metric is better."""
        return "min" if self.metric == "mae" else "max"


def task_of(dataset: str) -> TaskSpec:
    """The task of ``dataset``.

    Raises:
        KeyError: no such dataset.
    """
    if dataset not in TASKS:
        raise KeyError(f"dataset: found {dataset!r}, expected one of {', '.join(TASKS)}")
    return TASKS[dataset]


def _medium(lr_patience: int = 10, max_epochs: int = 1000, batch_size: int = 128) -> Protocol:
    return Protocol(
        batch_size=batch_size, learning_rate=1e-3, lr_patience=lr_patience, min_lr=1e-5, max_epochs=max_epochs
    )


def _small(learning_rate: float) -> Protocol:
    return Protocol(batch_size=20, learning_rate=learning_rate, lr_patience=25, min_lr=1e-6, max_epochs=1000)


def _superpixels(dataset: str, title: str, colours: int, node_features: str) -> TaskSpec:
    return TaskSpec(
        dataset=dataset,
        title=title,
        kind="graph_classification",
        node_input="linear",
        node_dim=colours + 2,
        edge_input="linear",
        edge_dim=1,
        num_outputs=10,
        metric="accuracy",
        protocol=_medium(),
        node_features=node_features,
        edge_features="weight by distance",
    )


def _block_model(dataset: str, title: str, node_dim: int, num_outputs: int) -> TaskSpec:
    return TaskSpec(
        dataset=dataset,
        title=title,
        kind="node_classification",
        node_input="embedding",
        node_dim=node_dim,
        edge_input="ones",
        edge_dim=1,
        num_outputs=num_outputs,
        metric="balanced_accuracy",
        protocol=_medium(lr_patience=5, batch_size=64),
        node_features="attribute",
    )


def _proteins(
    dataset: str, title: str, node_dim: int, num_outputs: int, learning_rate: float, node_features: str
) -> TaskSpec:
    return TaskSpec(
        dataset=dataset,
        title=title,
        kind="graph_classification",
        node_input="linear",
        node_dim=node_dim,
        edge_input="ones",
        edge_dim=node_dim,
        num_outputs=num_outputs,
        metric="accuracy",
        protocol=_small(learning_rate),
        node_features=node_features,
        directed=False,
        folds=10,
    )


_SPECS = (
    _superpixels("digits", "Digits", colours=1, node_features="intensity and coordinates"),
    TaskSpec(
        dataset="zinc",
        title="ZINC",
        kind="graph_regression",
        node_input="embedding",
        node_dim=28,
        edge_input="embedding",
        edge_dim=4,
        num_outputs=1,
        metric="mae",
        protocol=_medium(),
        node_features="atom type",
        edge_features="bond type",
    ),
    _superpixels("smnist", "SMNIST", colours=1, node_features="intensity and coordinates"),
    _superpixels("cifar10", "CIFAR10", colours=3, node_features="RGB and coordinates"),
    TaskSpec(
        dataset="tsp",
        title="TSP",
        kind="edge_classification",
        node_input="linear",
        node_dim=2,
        edge_input="linear",
        edge_dim=1,
        num_outputs=2,
        metric="f1",
        protocol=_medium(max_epochs=500, batch_size=64),
        node_features="coordinates",
        edge_features="distance",
    ),
    _block_model("cluster", "CLUSTER", node_dim=7, num_outputs=6),
    _block_model("pattern", "PATTERN", node_dim=3, num_outputs=2),
    _proteins("dd", "DD", 89, 2, learning_rate=7e-4, node_features="node labels"),
    _proteins("enzymes", "ENZYMES", 18, 6, learning_rate=7e-4, node_features="node attributes"),
    _proteins("proteins", "PROTEINS", 29, 2, learning_rate=7e-4, node_features="node attributes"),
)

TASKS = {spec.dataset: spec for spec in _SPECS}
"""Every dataset that a study can name."""
