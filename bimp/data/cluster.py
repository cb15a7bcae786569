"""CLUSTER, drawn by its published process: a stochastic block model of six communities.

Each community has 5 to 34 nodes; two nodes are joined with probability 0.55 within a community and 0.25 across.
The nodes are permuted. One random node of each community carries the feature community + 1, all others 0; the label
of a node is its community. The benchmark set no seed, so these are graphs of the same distribution, not the same
graphs.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from bimp.data.packed import PackedGraphs
from bimp.data.source import Parameters, Source, SourceGraphs, consecutive_splits, drawn_parameters, sizes_for

COMMUNITIES = 6
SMALLEST, LARGEST = 5, 34
INSIDE, ACROSS = 0.55, 0.25
DEFAULT_SIZE = 10_000


def block_model_graph(
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """One graph of the process.

    Returns:
        x ``[nodes]`` (0, or community + 1 on the labelled nodes); edge_index ``[2, edges]``, both directions of every
        edge, sorted by destination; y ``[nodes]``, the community from 0 to 5.
    """
    sizes = rng.integers(SMALLEST, LARGEST + 1, size=COMMUNITIES)
    community = rng.permutation(np.repeat(np.arange(COMMUNITIES), sizes))
    nodes = community.size
    probability = np.where(community[:, None] == community[None], INSIDE, ACROSS)
    upper = np.triu(rng.random((nodes, nodes)) < probability, k=1)
    destination, source = np.nonzero(upper | upper.T)

    by_community = np.lexsort((rng.random(nodes), community))
    labelled = by_community[np.concatenate([[0], np.cumsum(sizes)[:-1]])]
    x = np.zeros(nodes, dtype=np.int64)
    x[labelled] = community[labelled] + 1
    return x, np.stack([source, destination]), community


def pack_block_models(
    graphs: Iterable[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]],
) -> PackedGraphs:
    """The graphs of :func:`block_model_graph`, one after the other."""
    x, edge_index, y = [], [], []
    for nodes, edges, community in graphs:
        x.append(nodes)
        # At most 6 * 34 nodes: one byte a node number, for 52 million edges at the published size.
        edge_index.append(edges.astype(np.uint8))
        y.append(community)
    return PackedGraphs.from_arrays(
        node_counts=torch.tensor([row.size for row in x]),
        edge_counts=torch.tensor([edges.shape[1] for edges in edge_index]),
        x=torch.from_numpy(np.concatenate(x)),
        edge_index=torch.from_numpy(np.concatenate(edge_index, axis=1)),
        edge_attr=None,
        y=torch.from_numpy(np.concatenate(y)),
        labels="node",
    )


class Cluster(Source):
    """CLUSTER by seed and size; ``size`` graphs to train on, a tenth of that (at least one) to validate, and to test.

    Every graph has a random stream of its own, so a smaller dataset is the beginning of a larger one.
    """

    name = "cluster"
    maker = "generated"
    drawn = True

    def parameters(self, seed: int | None, size: int | None) -> Parameters:
        """Seed (default 0) and size (default 10,000, as published).

        Raises:
            DataError: a negative seed or a size below 1.
        """
        return drawn_parameters(self.name, seed, size, DEFAULT_SIZE)

    def build(
        self, parameters: Parameters, *, raw: Path | None, trust: bool, workspace: Path, processes: int
    ) -> SourceGraphs:
        """Draw the graphs; see :meth:`bimp.data.source.Source.build`."""
        seed, size = parameters["seed"], parameters["size"]
        sizes = sizes_for(size)
        streams = ([seed, split, number] for split, length in enumerate(sizes.values()) for number in range(length))
        return SourceGraphs(
            graphs=pack_block_models(block_model_graph(np.random.default_rng(stream)) for stream in streams),
            splits=consecutive_splits(sizes),
            origin=f"drawn by the published block model process, seed {seed}",
        )
