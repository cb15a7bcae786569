"""Sizes of batches, known before they are gathered, and the few sizes that they are padded to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bimp.data import GraphSplit, PackedGraphs

MOST_BUCKETS = 4
"""Sizes for batches of one number of graphs. Each takes a capture; more of them save little padding."""
BATCHES_DRAWN = 512
"""How many batches are drawn to learn how their sizes spread."""
SPREADS_ABOVE_MEAN = 4.0
"""The largest size is so many standard deviations above the mean, or the largest that was drawn."""
LEVELS = 32
"""Batches of like size that are looked at as one, at most."""
MULTIPLE = 8
"""Sizes are rounded up to a multiple of it, which products on an accelerator are faster for."""
FEWEST = 2
"""Nodes, and edges, of a batch that is padded: a smaller one has no variance to normalise by."""


@dataclass(frozen=True, order=True)
class Shape:
    """Size of a batch; padding, where there is any, is in ``nodes`` and ``edges`` but not in ``graphs``."""

    graphs: int
    nodes: int
    edges: int

    def holds(self, batch: Shape) -> bool:
        """Whether ``batch`` can be padded to this size: there is room for its edges and for a padding node."""
        return self.graphs == batch.graphs and self.nodes > batch.nodes and self.edges >= batch.edges

    @property
    def rows(self) -> int:
        """Nodes and edges together, which the cost of a step goes by."""
        return self.nodes + self.edges


def shapes_of(graphs: PackedGraphs, chosen: Tensor, batch_size: int) -> list[Shape]:
    """The sizes of batches of the graphs ``chosen``, in that order, without gathering them."""
    parts = zip(
        torch.split(graphs.node_counts[chosen], batch_size),
        torch.split(graphs.edge_counts[chosen], batch_size),
        strict=True,
    )
    return [Shape(len(nodes), int(nodes.sum()), int(edges.sum())) for nodes, edges in parts]


def drawn_shapes(splits: Sequence[GraphSplit], batch_size: int) -> list[Shape]:
    """Sizes such as batches of a random order have, the same at every call: full ones, then those of the remainder.

    The last of each kind is one that a batch hardly ever exceeds. Of several splits, whose batches are padded to one
    size, each shape holds a batch of each of them (:func:`around`); there is none for a remainder that differs.
    """
    generator = torch.Generator().manual_seed(0)
    rest = {len(split) % batch_size for split in splits}
    whole = min(len(split) for split in splits) // batch_size
    sizes = ([batch_size] if whole else []) + ([*rest] if len(rest) == 1 and rest != {0} else [])
    return [shape for graphs in sizes for shape in _drawn(splits, graphs, generator)]


def around(batches: Sequence[Shape]) -> Shape | None:
    """The smallest size that has room for each of ``batches``; None where their numbers of graphs differ."""
    if len({batch.graphs for batch in batches}) != 1:
        return None
    return Shape(batches[0].graphs, max(batch.nodes for batch in batches), max(batch.edges for batch in batches))


def _drawn(splits: Sequence[GraphSplit], graphs: int, generator: torch.Generator) -> list[Shape]:
    of_splits = zip(*(_sizes(split, graphs, generator) for split in splits), strict=True)
    nodes, edges = (torch.stack(sizes).amax(0) for sizes in of_splits)
    drawn = [Shape(graphs, *size) for size in torch.stack([nodes, edges], dim=1).tolist()]
    return [*drawn, Shape(graphs, _hardly_exceeded(nodes), _hardly_exceeded(edges))]


def _sizes(split: GraphSplit, graphs: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    picks = torch.stack([torch.randperm(len(split), generator=generator)[:graphs] for _ in range(BATCHES_DRAWN)])
    chosen = split.indices[picks]
    return split.graphs.node_counts[chosen].sum(1), split.graphs.edge_counts[chosen].sum(1)


def _hardly_exceeded(sizes: Tensor) -> int:
    values = sizes.double()
    return int(max(values.max(), values.mean() + SPREADS_ABOVE_MEAN * values.std()).ceil())


class Buckets:
    """A few sizes to which batches are padded.

    Args:
        shapes: the batches, or some that are like them. The buckets hold all of these, and such as would pad them
            least.
        most: buckets for one number of graphs.
    """

    def __init__(self, shapes: Sequence[Shape], most: int = MOST_BUCKETS) -> None:
        by_graphs: dict[int, list[Shape]] = defaultdict(list)
        for shape in shapes:
            by_graphs[shape.graphs].append(shape)
        self.sizes: tuple[Shape, ...] = tuple(
            bucket for found in by_graphs.values() for bucket in _least_padding(found, most)
        )

    def smallest(self, batch: Shape) -> Shape | None:
        """The bucket that pads ``batch`` least; None where none holds it, or it is too small to be padded."""
        if min(batch.nodes, batch.edges) < FEWEST:
            return None
        holding = [size for size in self.sizes if size.holds(batch)]
        return min(holding, key=lambda size: size.rows, default=None)


def _least_padding(shapes: Sequence[Shape], most: int) -> tuple[Shape, ...]:
    """At most ``most`` buckets that hold all of ``shapes``, by dynamic programming over their order of size."""
    ordered = sorted(shapes, key=lambda shape: shape.rows)
    length = -(-len(ordered) // LEVELS)
    levels = [ordered[start : start + length] for start in range(0, len(ordered), length)]
    around = {
        (start, end): _around([shape for level in levels[start:end] for shape in level])
        for end in range(1, len(levels) + 1)
        for start in range(end)
    }
    batches = [sum(map(len, levels[:end])) for end in range(len(levels) + 1)]
    # best[end]: of the ways to hold the first `end` levels, the cheapest one's computed rows, and its buckets.
    best: list[tuple[float, tuple[Shape, ...]]] = [(0, ()), *[(float("inf"), ())] * len(levels)]
    for _ in range(most):
        best = [
            best[0],
            *(
                min(
                    (
                        best[start][0] + around[start, end].rows * (batches[end] - batches[start]),
                        (*best[start][1], around[start, end]),
                    )
                    for start in range(end)
                )
                for end in range(1, len(levels) + 1)
            ),
        ]
    return best[-1][1]


def _around(shapes: Sequence[Shape]) -> Shape:
    """The smallest bucket that holds all of ``shapes``."""
    nodes, edges = max(shape.nodes for shape in shapes) + 1, max(shape.edges for shape in shapes)
    return Shape(shapes[0].graphs, _rounded_up(nodes), _rounded_up(edges))


def _rounded_up(size: int) -> int:
    return -(-size // MULTIPLE) * MULTIPLE
