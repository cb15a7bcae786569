"""Products of matrices in half precision: what of a step is computed so, and what is not."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import torch

from bimp.config import Precision
from bimp.data import GraphBatch
from bimp.network import Network, NetworkOutput


def output_of(network: Network, batch: GraphBatch, precision: Precision) -> NetworkOutput:
    """What ``network`` says of ``batch``, its products computed in ``precision``; its scores are never in half."""
    with _products_in(precision, batch.x.device):
        output: NetworkOutput = network(batch)
    return replace(output, scores=output.scores.to(next(network.parameters()).dtype))


def _products_in(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    if precision == "float32":
        return nullcontext()
    # No weight is used twice in a step; and a copy that a captured step kept would be gone in the next.
    return torch.autocast(device.type, dtype=torch.bfloat16, cache_enabled=False)
