"""Graphs like the benchmark's, drawn here: their sizes, degrees and kinds of input decide what a step costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from bimp.data import PackedGraphs
from bimp.data.cluster import block_model_graph, pack_block_models
from bimp.data.packed import LabelLevel
from bimp.data.point_graphs import PointGraph, heaviest_neighbours, nearest_neighbours, pack_point_graphs
from bimp.data.tours import FEWEST, MOST, NEIGHBOURS
from bimp.tasks import TaskSpec, task_of

Draw = Callable[[np.random.Generator, int], PackedGraphs]
"""Draws so many graphs."""

SEED = 0
BATCHES = 9
"""Different batches of a workload, one for each turn: in training, too, no batch has the size of the one before."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One dataset of the benchmark as a step sees it.

    Attributes:
        name: of the dataset.
        graphs: drawn graphs, ``BATCHES`` times ``batch_size`` of them.
        batch_size: graphs in a batch.
        train_graphs, validation_graphs: published sizes of the splits.
    """

    name: str
    graphs: PackedGraphs
    batch_size: int
    train_graphs: int
    validation_graphs: int

    @property
    def task(self) -> TaskSpec:
        """Inputs, labels and loss."""
        return task_of(self.name)

    @property
    def title(self) -> str:
        """Of the dataset, for a table."""
        return f"{self.task.title}-like"

    def picks(self) -> list[torch.Tensor]:
        """Graph numbers of each batch."""
        return list(torch.split(torch.arange(len(self.graphs)), self.batch_size))


def workload(name: str) -> Workload:
    """Draw the graphs of ``zinc``, ``smnist``, ``cluster`` or ``tsp``.

    Raises:
        KeyError: another name.
    """
    batch_size, train_graphs, validation_graphs = _WORKLOADS[name]
    return Workload(
        name=name,
        graphs=drawn_graphs(name, BATCHES * batch_size),
        batch_size=batch_size,
        train_graphs=train_graphs,
        validation_graphs=validation_graphs,
    )


def drawn_graphs(name: str, count: int) -> PackedGraphs:
    """Draw ``count`` graphs like those of a dataset of the paper.

    Raises:
        KeyError: another name.
    """
    return _DRAWS[name](np.random.default_rng(SEED), count)


def _molecules(rng: np.random.Generator, count: int) -> PackedGraphs:
    """Chains with branches, closed to rings here and there: 23 atoms and 50 directed bonds on average, as ZINC's."""
    atoms, bonds = [], []
    for _ in range(count):
        size = int(rng.integers(16, 31))
        tree = [(node, int(rng.integers(max(0, node - 3), node))) for node in range(1, size)]
        rings = [(node, node - 5) for node in rng.choice(np.arange(5, size), size=3, replace=False)]
        ends = np.array(tree + rings).T
        bonds.append(np.concatenate([ends, ends[::-1]], axis=1))
        atoms.append(rng.integers(0, task_of("zinc").node_dim, size))
    edges = sum(bond.shape[1] for bond in bonds)
    return PackedGraphs.from_arrays(
        node_counts=torch.tensor([len(atom) for atom in atoms]),
        edge_counts=torch.tensor([bond.shape[1] for bond in bonds]),
        x=torch.from_numpy(np.concatenate(atoms)),
        edge_index=torch.from_numpy(np.concatenate(bonds, axis=1)),
        edge_attr=torch.from_numpy(rng.integers(0, task_of("zinc").edge_dim, edges)),
        y=torch.from_numpy(rng.normal(size=count).astype(np.float32)),
        labels="graph",
    )


def _superpixels(dataset: str, fewest: int, most: int) -> Draw:
    task = task_of(dataset)

    def draw(rng: np.random.Generator, count: int) -> PackedGraphs:
        graphs = []
        for _ in range(count):
            points = rng.random((int(rng.integers(fewest, most + 1)), 2))
            x = np.concatenate([rng.random((len(points), task.node_dim - 2)), points], axis=1).astype(np.float32)
            graphs.append((x, *heaviest_neighbours(points, 8)))
        return pack_point_graphs(graphs, rng.integers(0, task.num_outputs, count), "graph")

    return draw


def _proteins(dataset: str, mean_nodes: float, bonds_of_a_node: float) -> Draw:
    """Chains folded so that a node also touches others near it along the chain; sizes differ as widely as proteins'."""
    task = task_of(dataset)

    def draw(rng: np.random.Generator, count: int) -> PackedGraphs:
        sizes = rng.integers(max(4, round(mean_nodes / 4)), round(mean_nodes * 7 / 4) + 1, count)
        ends = []
        for size in sizes:
            chain = np.stack([np.arange(size - 1), np.arange(1, size)])
            touching = rng.integers(0, size, (2, max(0, round(size * bonds_of_a_node) - size + 1)))
            touching[1] = np.clip(touching[0] + 2 + touching[1] % 6, 0, size - 1)
            ends.append(np.concatenate([chain, touching, chain[::-1], touching[::-1]], axis=1))
        return PackedGraphs.from_arrays(
            node_counts=torch.from_numpy(sizes),
            edge_counts=torch.tensor([each.shape[1] for each in ends]),
            x=torch.from_numpy(rng.normal(size=(int(sizes.sum()), task.node_dim)).astype(np.float32)),
            edge_index=torch.from_numpy(np.concatenate(ends, axis=1)),
            edge_attr=None,
            y=torch.from_numpy(rng.integers(0, task.num_outputs, count)),
            labels="graph",
        )

    return draw


def _communities(rng: np.random.Generator, count: int) -> PackedGraphs:
    return pack_block_models(block_model_graph(rng) for _ in range(count))


def _points(rng: np.random.Generator, count: int) -> PackedGraphs:
    """TSP's graphs with random labels: what is to be learnt changes no time."""
    graphs: list[PointGraph] = []
    for _ in range(count):
        points = rng.random((int(rng.integers(FEWEST, MOST + 1)), 2))
        graphs.append((points.astype(np.float32), *nearest_neighbours(points, NEIGHBOURS)))
    edges = sum(len(edge_attr) for _, _, edge_attr in graphs)
    level: LabelLevel = "edge"
    labels: NDArray[np.integer] = rng.integers(0, 2, edges)
    return pack_point_graphs(graphs, labels, level)


_DRAWS: dict[str, Draw] = {
    "zinc": _molecules,
    "smnist": _superpixels("smnist", 66, 75),
    "cifar10": _superpixels("cifar10", 85, 150),
    "cluster": _communities,
    "tsp": _points,
    "dd": _proteins("dd", 284.32, 715.66 / 284.32),
    "enzymes": _proteins("enzymes", 32.63, 62.14 / 32.63),
    "proteins": _proteins("proteins", 39.06, 72.82 / 39.06),
}

# Batches of the block models and the tours are a half and a quarter of the protocol's: the usual way would take about
# 17 and 28 GB at 16 layers otherwise, and a graph costs the same.
_WORKLOADS: dict[str, tuple[int, int, int]] = {
    "zinc": (128, 10_000, 1_000),
    "smnist": (128, 55_000, 5_000),
    "cluster": (32, 10_000, 1_000),
    "tsp": (16, 10_000, 1_000),
}

WORKLOADS = tuple(_WORKLOADS)
"""The datasets of the suite, small graphs first."""
