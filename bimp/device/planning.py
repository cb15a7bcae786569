"""Which steps an epoch takes: the batches of each run, and the sizes to which they are padded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import torch
from torch import Tensor

from bimp.data import GraphSplit
from bimp.device.shapes import FEWEST, Buckets, Shape, around, drawn_shapes, shapes_of


@dataclass(frozen=True)
class Padded:
    """A kind of captured steps.

    Attributes:
        run: whose batch it takes; None: that of each.
        size: to which every batch is padded.
    """

    run: int | None
    size: Shape


@dataclass(frozen=True, kw_only=True)
class PlannedStep:
    """One step of every run.

    Attributes:
        shapes, picks: of each run's batch, and its graphs; None of a run that has none left.
        joint: how all of them are padded and taken at once; None: each run takes its own by itself.
        own: how each of them is padded then; None: it is taken as it is.
    """

    shapes: Sequence[Shape | None]
    picks: Sequence[Tensor | None]
    joint: Padded | None
    own: Sequence[Padded | None]

    @property
    def padded(self) -> Iterator[tuple[Padded, Tensor]]:
        """What is padded, and the graphs of it, ``[runs, graphs]``."""
        if self.joint is not None:
            yield self.joint, torch.stack([picks for picks in self.picks if picks is not None])
            return
        for padded, picks in zip(self.own, self.picks, strict=True):
            if padded is not None and picks is not None:
                yield padded, picks.unsqueeze(0)


class Planner:
    """Plans the epochs of one split of each run.

    Args:
        splits: those.
        batch_size: graphs of a step, but the last.
        is_training: batches come in a new order each time.
        is_padded: whether any batch may be padded.
        is_joint: whether those of all runs may be taken at once.
    """

    def __init__(
        self, splits: Sequence[GraphSplit], batch_size: int, *, is_training: bool, is_padded: bool, is_joint: bool
    ) -> None:
        self._splits = splits
        self._batch_size = batch_size
        self._is_training = is_training
        self._is_padded = is_padded
        self._is_joint = is_joint
        self._sizes: dict[int | None, Buckets] = {}

    def chosen(self, orders: Sequence[Tensor] | None) -> list[Tensor]:
        """The graphs of each run in its order, ``[graphs]``; None: in the split's own."""
        if orders is None:
            return [split.indices for split in self._splits]
        return [split.indices[order] for split, order in zip(self._splits, orders, strict=True)]

    def steps(self, chosen: Sequence[Tensor]) -> list[PlannedStep]:
        """All steps on the graphs ``chosen`` of each run, in that order."""
        shapes = [
            shapes_of(split.graphs, of_run, self._batch_size)
            for split, of_run in zip(self._splits, chosen, strict=True)
        ]
        picks = [torch.split(of_run, self._batch_size) for of_run in chosen]
        return [
            self._planned(of_shapes, of_picks)
            for of_shapes, of_picks in zip(zip_longest(*shapes), zip_longest(*picks), strict=True)
        ]

    def _planned(self, shapes: Sequence[Shape | None], picks: Sequence[Tensor | None]) -> PlannedStep:
        joint = self._joint_size(shapes) if self._is_joint and self._is_padded else None
        own: list[Padded | None] = [None] * len(shapes)
        if joint is None and self._is_padded:
            own = [self._own_size(run, shape) for run, shape in enumerate(shapes)]
        return PlannedStep(shapes=shapes, picks=picks, joint=joint, own=own)

    def _joint_size(self, shapes: Sequence[Shape | None]) -> Padded | None:
        present = [shape for shape in shapes if shape is not None]
        is_small = min(min(shape.nodes, shape.edges) for shape in present) < FEWEST
        largest = around(present) if len(present) == len(shapes) else None
        size = None if largest is None or is_small else self._buckets(None).smallest(largest)
        return None if size is None else Padded(None, size)

    def _own_size(self, run: int, shape: Shape | None) -> Padded | None:
        size = None if shape is None else self._buckets(run).smallest(shape)
        return None if size is None else Padded(run, size)

    def _buckets(self, run: int | None) -> Buckets:
        """Sizes of one run's batches, or of the batches of all."""
        if run not in self._sizes:
            splits = self._splits if run is None else [self._splits[run]]
            if self._is_training:
                known = drawn_shapes(splits, self._batch_size)
            else:
                of_steps = zip(
                    *(shapes_of(split.graphs, split.indices, self._batch_size) for split in splits), strict=False
                )
                known = [shape for of_step in of_steps if (shape := around(of_step)) is not None]
            self._sizes[run] = Buckets(known)
        return self._sizes[run]
