"""Measurements over a whole split, summed batch by batch on the device where they arise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from bimp.config.requirements import require_choice
from bimp.data.batch import GraphBatch
from bimp.padding import labelled
from bimp.semantics import Reduction
from bimp.tasks import Metric

POSITIVE_CLASS = 1


class MetricAccumulator:
    """A task's metric over all items of a split, whatever the batches; nothing waits for the device before value().

    - ``mae``: mean absolute error.
    - ``accuracy``: share of items whose largest score is at their class.
    - ``balanced_accuracy``: mean of the recalls of the classes that occur in the split.
    - ``f1``: of class 1, ``2 TP / (2 TP + FP + FN)``; 0 where the class neither occurs nor is predicted.

    Args:
        metric: which of them.
        num_outputs: classes, or 1 for ``mae``.
        reduction: over the whole ``dataset``; or the mean of the metrics of every ``batch``, as the released code
            has it, which depends on the size of the batches.

    Raises:
        ConfigError: a metric or a reduction that there is not.
    """

    def __init__(self, metric: Metric, num_outputs: int, reduction: Reduction = "dataset") -> None:
        require_choice("metric", metric, get_args(Metric))
        require_choice("reduction", reduction, get_args(Reduction))
        self.metric = metric
        self.num_outputs = num_outputs
        self.reduction = reduction
        self._sums: list[Tensor] = []

    def update(self, scores: Tensor, y: Tensor) -> None:
        """Add a batch, as :meth:`sums` takes it."""
        self.add(self.sums(scores, y))

    def sums(self, scores: Tensor, y: Tensor) -> Tensor:
        """What :meth:`add` takes of a batch, float64.

        Args:
            scores: ``[items]`` for ``mae``, else ``[items, classes]``.
            y: float labels for ``mae``, else int64; items of a negative one are left out.

        Raises:
            ValueError: scores and labels of ``mae`` have different shapes, which would be spread over each other.
        """
        with torch.no_grad():
            return self._error_sums(scores, y) if self.metric == "mae" else self._class_counts(scores, y)

    def add(self, sums: Tensor) -> None:
        """Add a batch by its sums."""
        if self.reduction == "dataset" and self._sums:
            self._sums = [self._sums[0] + sums]
        else:
            self._sums.append(sums)

    def value(self) -> float:
        """The metric of everything added so far; a fraction, not per cent.

        Raises:
            ValueError: no item was added.
        """
        filled = [sums for sums in self._sums if bool(sums[1].sum() > 0)]
        if not filled:
            raise ValueError(f"{self.metric}: found no item, expected a split of at least one")
        return sum(self._value_of(sums) for sums in filled) / len(filled)

    def _value_of(self, sums: Tensor) -> float:
        if self.metric == "mae":
            error, items = sums
            return float(error / items)
        hits, present, predicted = sums
        if self.metric == "accuracy":
            return float(hits.sum() / present.sum())
        if self.metric == "balanced_accuracy":
            occurs = present > 0
            return float((hits[occurs] / present[occurs]).mean())
        occurring_or_predicted = present[POSITIVE_CLASS] + predicted[POSITIVE_CLASS]
        return float(2 * hits[POSITIVE_CLASS] / occurring_or_predicted.clamp(min=1))

    @staticmethod
    def _error_sums(scores: Tensor, y: Tensor) -> Tensor:
        if scores.shape != y.shape:
            raise ValueError(f"y: found {list(y.shape)}, expected {list(scores.shape)}, one label an item")
        errors = (scores - y).abs().double()
        return torch.stack([errors.sum(), torch.ones_like(errors).sum()])

    def _class_counts(self, scores: Tensor, y: Tensor) -> Tensor:
        """``[3, classes]``: items of the class that were predicted as such, items of it, items predicted as it."""
        predicted = scores.argmax(dim=1)
        items, classes = labelled(y).double(), y.clamp(min=0)
        counts = items.new_zeros(3, self.num_outputs)
        counts[0].index_add_(0, classes, (predicted == y).double())
        counts[1].index_add_(0, classes, items)
        counts[2].index_add_(0, predicted, items)
        return counts


@dataclass(frozen=True)
class GateStatistics:
    """Spread of deg * beta_hat over edges: all three 1, 1, 0 for a uniform gate."""

    minimum: float
    maximum: float
    std: float


class GateSpread:
    """Smallest, largest and standard deviation (ddof 0) of deg_v * beta_hat_uv over all edges added.

    It tells how far a gate is from the uniform one, beta_hat = 1/deg. Nothing waits for the device before value().
    """

    def __init__(self) -> None:
        self._extremes: Tensor | None = None
        self._sums: Tensor | None = None

    def update(self, beta_hat: Tensor, batch: GraphBatch) -> None:
        """Add the edges of one gated layer on one batch."""
        self.add(*self.of_batch(beta_hat, batch))

    @staticmethod
    def of_batch(beta_hat: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """What :meth:`add` takes of one gated layer on a batch: ``[2]`` and ``[3]`` float64."""
        with torch.no_grad():
            if batch.num_edges == 0:
                return beta_hat.new_full((2,), -torch.inf).double(), beta_hat.new_zeros(3).double()
            degree = batch.adjacency.in_degree.double()
            # Values lie about 1: sums of squares of what they differ by lose no digits.
            excess = degree.index_select(0, batch.edge_index[1]) * beta_hat.double() - 1
            real = None if batch.padding is None else batch.padding.edges
            if real is None:
                return GateSpread.of_excess(excess, None, torch.ones_like(excess).sum())
            return GateSpread.of_excess(excess, real.mask, real.count)

    @staticmethod
    def of_excess(excess: Tensor, real: Tensor | None, count: Tensor) -> tuple[Tensor, Tensor]:
        """The same of deg * beta_hat - 1, ``[..., edges]``, those that are ``real``, and their number ``[...]``."""
        with torch.no_grad():
            below, above = -excess, excess
            if real is not None:
                below, above = (torch.where(real, side, -torch.inf) for side in (below, above))
                excess = torch.where(real, excess, 0)
            extremes = torch.stack([below.amax(-1), above.amax(-1)], dim=-1)
            return extremes, torch.stack([count.double(), excess.sum(-1), excess.square().sum(-1)], dim=-1)

    def add(self, extremes: Tensor, sums: Tensor) -> None:
        """Add edges by their largest deviations from 1, below and above, and their number and sums of deviations."""
        self._extremes = extremes if self._extremes is None else torch.maximum(self._extremes, extremes)
        self._sums = sums if self._sums is None else self._sums + sums

    def value(self) -> GateStatistics | None:
        """The spread; None where no edge was added, as for a vanilla network."""
        if self._extremes is None or self._sums is None:
            return None
        count, total, squares = self._sums.tolist()
        if count == 0:
            return None
        variance = max(squares / count - (total / count) ** 2, 0.0)
        below, above = self._extremes.tolist()
        return GateStatistics(minimum=1 - below, maximum=1 + above, std=variance**0.5)
