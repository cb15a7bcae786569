"""Whether one network of several seeds is faster than theirs one after another."""

from __future__ import annotations

import torch

from bimp.config import TrialConfig
from bimp.data import GraphSplit
from bimp.engine import has_own_path

MOST_EDGES = 1_500
"""Of a seed's batch, for GatedGCN: its rows of edges are most of its work."""
MOST_NODES = 1_500
"""Of a seed's batch, for GCN and GAT."""
MOST_NODES_OF_GRAPHSAGE = 2_500
"""Of a seed's batch, for GraphSAGE, whose layers call more operators for the work that they do."""


def is_worth_stacking(config: TrialConfig, train: GraphSplit, device: torch.device) -> bool:
    """Whether runs of ``config`` on batches of ``train`` are trained faster as one network, whatever their number.

    It saves calls of operators. On a GPU these are what small graphs cost. In main memory the rows of all seeds, which
    one core's caches do not hold, cost more than that from so many on (measured by ``benchmarks.seeds_together``).
    """
    if has_own_path(device):
        return True
    share = min(1, config.train.batch_size / len(train))
    if config.model.backbone == "gated_gcn":
        return share * int(train.graphs.edge_counts[train.indices].sum()) <= MOST_EDGES
    most = MOST_NODES_OF_GRAPHSAGE if config.model.backbone == "graphsage" else MOST_NODES
    return share * int(train.graphs.node_counts[train.indices].sum()) <= most
