"""What the padding of batches costs, from the sizes of graphs alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from bimp.data import GraphSplit
from bimp.device.shapes import Buckets, Shape, drawn_shapes, shapes_of

EPOCHS = 10


@dataclass(frozen=True, kw_only=True)
class Padded:
    """What is computed beyond the real graphs, as shares of these.

    Attributes:
        sizes: to which batches are padded, in training and in evaluation.
        nodes, edges: in training.
        too_large: share of training batches that no size holds.
        evaluation: nodes and edges together.
    """

    sizes: int
    nodes: float
    edges: float
    too_large: float
    evaluation: float


def padded(train: GraphSplit, validation: GraphSplit, batch_size: int) -> Padded:
    """What a run on these splits would pad."""
    buckets = Buckets(drawn_shapes([train], batch_size))
    generator = torch.Generator().manual_seed(1)
    orders = [torch.randperm(len(train), generator=generator) for _ in range(EPOCHS)]
    trained = [shape for order in orders for shape in shapes_of(train.graphs, train.indices[order], batch_size)]
    held = [(shape, bucket) for shape in trained if (bucket := buckets.smallest(shape)) is not None]
    seen = shapes_of(validation.graphs, validation.indices, batch_size)
    of_validation = Buckets(seen)
    looked = [(shape, of_validation.smallest(shape) or shape) for shape in seen]
    return Padded(
        sizes=len(buckets.sizes) + len(of_validation.sizes),
        nodes=_beyond(held, "nodes"),
        edges=_beyond(held, "edges"),
        too_large=1 - len(held) / len(trained),
        evaluation=_beyond(looked, "rows"),
    )


def _beyond(pairs: list[tuple[Shape, Shape]], what: str) -> float:
    real = sum(getattr(shape, what) for shape, _ in pairs)
    return float(sum(getattr(bucket, what) for _, bucket in pairs) / real - 1)
