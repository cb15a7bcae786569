"""Layers, gate and head whose parameters have a first dimension for the seeds.

Each stands in for the module that it derives from and differs from it in nothing but the maps by parameters.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bimp.data.batch import GraphBatch
from bimp.embedded import Embedded
from bimp.gradient import BilateralGate, GateOutput
from bimp.head import Head
from bimp.kernels.linear import Linear
from bimp.layers.gat import GATLayer
from bimp.layers.gated_gcn import GatedGCNLayer, WeightAndBias
from bimp.losses import cut_and_volume, distance_from_orthogonal
from bimp.neighbourhood import sum_along_edges
from bimp.stack.batch import StackedBatch
from bimp.stack.maps import stacked_linear


class StackedGATLayer(GATLayer):
    """A :class:`~bimp.layers.gat.GATLayer` of several seeds."""

    def _map_nodes(self, h: Tensor, unused: int = 0, embedded: Embedded | None = None) -> Tensor:
        assert embedded is None, "rows of several seeds are embedded from as many tables"
        halves = (self.attention_source, self.attention_destination)
        weight = self.projection.weight
        seeds, _, row_dim = weight.shape
        by_head = weight.reshape(seeds, self.heads, -1, row_dim)
        weights = [weight, *((half.unsqueeze(3) * by_head).sum(2) for half in halves)]
        weights += [h.new_zeros(seeds, unused, row_dim)] if unused else []
        bias = None
        if self.attention_bias is not None:
            of_heads = self.projection.bias.reshape(seeds, self.heads, -1)
            source_bias, destination_bias = ((half * of_heads).sum(2) for half in halves)
            biases = [self.projection.bias, source_bias, destination_bias + self.attention_bias]
            bias = torch.cat([*biases, h.new_zeros(seeds, unused)] if unused else biases, dim=1)
        return stacked_linear(h, torch.cat(weights, dim=1), bias)


class StackedGatedGCNLayer(GatedGCNLayer):
    """A :class:`~bimp.layers.gated_gcn.GatedGCNLayer` of several seeds."""

    def _map(self, rows: Tensor, *maps: WeightAndBias) -> Tensor:
        weights, biases = zip(*maps, strict=True)
        return stacked_linear(rows, torch.cat(weights, dim=1), torch.cat(biases, dim=1))


class StackedGate(BilateralGate):
    """A :class:`~bimp.gradient.BilateralGate` of several seeds; its losses are ``[seeds]``."""

    def forward(self, h: Tensor, batch: GraphBatch) -> GateOutput:
        """Gate the edges of a :class:`~bimp.stack.batch.StackedBatch` by the rows that enter the layer."""
        assert isinstance(batch, StackedBatch)
        return super().forward(h, batch)

    def _mapped(self, soft_assignment: Tensor) -> Tensor:
        return stacked_linear(soft_assignment, self.metric.weight, None)

    def _shifted(self, differences: Tensor) -> Tensor:
        bias: Tensor = self.metric.bias
        seeds, num_clusters = bias.shape
        return (differences.view(seeds, differences.shape[0] // seeds, num_clusters) + bias.unsqueeze(1)).flatten(0, 1)

    def _min_cut(self, soft_assignment: Tensor, batch: GraphBatch) -> Tensor:
        assert isinstance(batch, StackedBatch)
        cut, volume = cut_and_volume(soft_assignment, batch, self.cut_adjacency)
        if self.cut_scope == "batch":
            cut, volume = batch.nodes.sum(cut), batch.nodes.sum(volume)
            return -cut / torch.where(volume > 0, volume, 1)
        cut, volume = (values.new_zeros(batch.num_graphs).index_add(0, batch.batch, values) for values in (cut, volume))
        return batch.graphs.mean(-cut / torch.where(volume > 0, volume, 1))

    def _orthogonality(self, soft_assignment: Tensor, batch: GraphBatch, epsilon: float = 0.0) -> Tensor:
        assert isinstance(batch, StackedBatch)
        if self.cut_scope == "batch":
            real = batch.nodes.real.view(-1, 1)
            return distance_from_orthogonal(
                (soft_assignment * real).view(batch.nodes.seeds, batch.nodes.length, -1), epsilon
            )
        num_clusters = soft_assignment.shape[1]
        padded = soft_assignment.new_zeros(batch.num_graphs * batch.most_nodes + 1, num_clusters)
        by_graph = padded.index_copy(0, batch.places, soft_assignment)[:-1].view(batch.num_graphs, -1, num_clusters)
        # A graph that a seed does not have has no direction; any rows keep its gradient a number.
        rows = torch.where(batch.graphs.real.view(-1, 1, 1), by_graph, 1)
        return batch.graphs.mean(distance_from_orthogonal(rows, epsilon))


class StackedHead(Head):
    """A :class:`~bimp.head.Head` of several seeds."""

    def _scores_of_edges(self, h: Tensor, batch: GraphBatch) -> Tensor:
        first = self.scorer[0]
        assert isinstance(first, Linear)
        of_source, of_destination = first.weight.chunk(2, dim=2)
        at_destination = stacked_linear(h, of_destination, first.bias)
        rows = sum_along_edges(stacked_linear(h, of_source, None), at_destination, batch.adjacency)
        scores: Tensor = self.scorer[1:](rows)
        return scores
