"""The edges of a GatedGCN layer in one function that goes through them block by block (equations S9 to S11).

Written out, a layer makes about twenty rows for each edge and keeps five of them for the backward pass. Here a block of
edges passes through all steps while it lies in the cache, and what follows from two kept rows, the edge's row before
its normalisation and its new row, is computed again in the backward pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bimp.adjacency import Adjacency
from bimp.kernels.linear import product
from bimp.kernels.segments import sum_of_runs
from bimp.layers.row_norm import RowNorm


@dataclass(frozen=True, kw_only=True)
class EdgeGates:
    """What of a GatedGCN layer is no tensor that is differentiated.

    Attributes:
        adjacency: the edges.
        norm: the normalisation of the edges' rows; a training step updates its running statistics.
        gate_by_raw: the gate is the sigmoid of the row before normalisation, not of the new row.
        epsilon: added to the sum of the gates.
    """

    adjacency: Adjacency
    norm: RowNorm
    gate_by_raw: bool
    epsilon: float

    def __call__(
        self,
        at_source: Tensor,
        at_destination: Tensor,
        values: Tensor,
        e_hat: Tensor,
        weight: Tensor | None,
        beta_hat: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """The gated mean of the messages for each node, and new rows of the edges.

        Args:
            at_source: ``[nodes, width]``, what a node adds to the rows of the edges out of it.
            at_destination: ``[nodes, width]``, what it adds to those of the edges into it.
            values: ``[nodes, width]``, what a node sends.
            e_hat: ``[edges, width]``, or ``[1, width]`` for all edges.
            weight: ``[width, width]``, the map of ``e_hat``; its bias is in ``at_destination``. None: ``e_hat`` has
                no part in the rows before normalisation.
            beta_hat: ``[edges]``, or None for 1.

        Returns:
            ``[nodes, width]`` and ``[edges, width]``.
        """
        norm = self.norm
        outputs: tuple[Tensor, Tensor] = _EdgeGates.apply(  # type: ignore[no-untyped-call]
            at_source, at_destination, values, e_hat, weight, beta_hat, norm.weight, norm.bias, self
        )
        return outputs


class _EdgeGates(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        at_source: Tensor,
        at_destination: Tensor,
        values: Tensor,
        e_hat: Tensor,
        weight: Tensor | None,
        beta_hat: Tensor | None,
        norm_weight: Tensor,
        norm_bias: Tensor,
        layer: EdgeGates,
    ) -> tuple[Tensor, Tensor]:
        adjacency = layer.adjacency
        raw = _raw_rows(at_source, at_destination, e_hat, weight, adjacency)
        mean, inverse_std, of_batch = layer.norm.statistics(raw)
        scale = norm_weight * inverse_std
        shift = norm_bias - mean * scale
        new_e_hat = torch.empty_like(raw)
        sums, totals = [], []
        for block in adjacency.blocks:
            rows, new_rows = raw[block.edges], new_e_hat[block.edges]
            torch.addcmul(shift, rows, scale, out=new_rows)
            new_rows.relu_().add_(_rows_of(e_hat, block.edges))
            gate = torch.sigmoid(rows if layer.gate_by_raw else new_rows)
            messages = values.index_select(0, block.source).mul_(gate)
            if beta_hat is not None:
                messages.mul_(beta_hat[block.edges].unsqueeze(1))
            sums.append(sum_of_runs(messages, block.places, block.starts))
            totals.append(sum_of_runs(gate, block.places, block.starts))
        total = torch.cat(totals).add_(layer.epsilon)
        aggregate = torch.cat(sums).div_(total)
        ctx.layer, ctx.of_batch = layer, of_batch
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(
            raw, new_e_hat, values, e_hat, weight, beta_hat, mean, inverse_std, norm_weight, norm_bias, aggregate, total
        )
        return aggregate, new_e_hat

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_aggregate: Tensor | None, grad_new: Tensor | None) -> tuple[Tensor | None, ...]:
        saved = _Saved(*ctx.saved_tensors)
        if grad_aggregate is None:
            grad_aggregate = torch.zeros_like(saved.aggregate)
        back = _backward_through_gates(ctx.layer, saved, grad_aggregate, grad_new)
        return _backward_through_rows(ctx.layer, saved, back, ctx.of_batch)


@dataclass(frozen=True)
class _Saved:
    raw: Tensor
    new_e_hat: Tensor
    values: Tensor
    e_hat: Tensor
    weight: Tensor | None
    beta_hat: Tensor | None
    mean: Tensor
    inverse_std: Tensor
    norm_weight: Tensor
    norm_bias: Tensor
    aggregate: Tensor
    total: Tensor

    def is_active(self, edges: slice) -> Tensor:
        """The rows before the ReLU, to tell where it lets a gradient through."""
        scale = self.norm_weight * self.inverse_std
        return torch.addcmul(self.norm_bias - self.mean * scale, self.raw[edges], scale)


@dataclass(frozen=True)
class _Back:
    """Gradients after the first pass, and the sums that the second one needs.

    Attributes:
        new_e_hat: with respect to the new rows, ``[edges, width]``.
        raw: the part of that of the raw rows that does not go through the normalisation; None where there is none.
        values, beta_hat: as in the forward pass.
        normalised_sum, normalised_dot: sum over the edges of the gradient of the normalised rows, by itself and times
            the centred rows.
    """

    new_e_hat: Tensor
    raw: Tensor | None
    values: Tensor
    beta_hat: Tensor | None
    normalised_sum: Tensor
    normalised_dot: Tensor


def _raw_rows(
    at_source: Tensor, at_destination: Tensor, e_hat: Tensor, weight: Tensor | None, adjacency: Adjacency
) -> Tensor:
    """``at_source[u] + at_destination[v] + weight e_hat`` of each edge."""
    raw = at_source.new_empty(adjacency.num_edges, at_source.shape[1])
    for block in adjacency.blocks:
        rows = raw[block.edges]
        torch.index_select(at_source, 0, block.source, out=rows)
        rows.add_(at_destination.index_select(0, block.destination))
        if weight is not None:
            rows.add_(product(e_hat[block.edges], weight))
    return raw


def _rows_of(e_hat: Tensor, edges: slice) -> Tensor:
    return e_hat if e_hat.shape[0] == 1 else e_hat[edges]


def _backward_through_gates(layer: EdgeGates, saved: _Saved, grad_aggregate: Tensor, grad_new: Tensor | None) -> _Back:
    """From the nodes' sums back to the new rows of the edges."""
    adjacency = layer.adjacency
    grad_sum = grad_aggregate / saved.total
    grad_total = (grad_sum * saved.aggregate).neg_()
    width = saved.raw.shape[1]
    normalised_sum, normalised_dot = saved.raw.new_zeros(width), saved.raw.new_zeros(width)
    grad_e_hat, grad_values = torch.empty_like(saved.raw), torch.zeros_like(saved.values)
    grad_raw = torch.empty_like(saved.raw) if layer.gate_by_raw else None
    grad_beta_hat = None if saved.beta_hat is None else torch.empty_like(saved.beta_hat)
    for block in adjacency.blocks:
        raw = saved.raw[block.edges]
        gate = torch.sigmoid(raw if layer.gate_by_raw else saved.new_e_hat[block.edges])
        sent = saved.values.index_select(0, block.source)
        grad_messages = grad_sum.index_select(0, block.destination)
        grad_sent = grad_messages * gate
        if saved.beta_hat is not None and grad_beta_hat is not None:
            beta_hat = saved.beta_hat[block.edges].unsqueeze(1)
            torch.sum(grad_sent * sent, dim=1, out=grad_beta_hat[block.edges])
            grad_sent.mul_(beta_hat)
            grad_messages.mul_(beta_hat)
        grad_values.index_add_(0, block.source, grad_sent)
        grad_gate = grad_total.index_select(0, block.destination).addcmul_(grad_messages, sent)
        rows = grad_e_hat[block.edges]
        through_gate = rows if grad_raw is None else grad_raw[block.edges]
        torch.ops.aten.sigmoid_backward.grad_input(grad_gate, gate, grad_input=through_gate)
        if grad_raw is not None:
            rows.zero_()
        if grad_new is not None:
            rows.add_(grad_new[block.edges])
        grad_normalised = torch.ops.aten.threshold_backward(rows, saved.is_active(block.edges), 0)
        normalised_sum.add_(grad_normalised.sum(0))
        normalised_dot.add_(grad_normalised.mul_(raw - saved.mean).sum(0))
    return _Back(
        new_e_hat=grad_e_hat,
        raw=grad_raw,
        values=grad_values,
        beta_hat=grad_beta_hat,
        normalised_sum=normalised_sum,
        normalised_dot=normalised_dot,
    )


def _backward_through_rows(layer: EdgeGates, saved: _Saved, back: _Back, of_batch: bool) -> tuple[Tensor | None, ...]:
    """From the new rows of the edges back to the nodes, the old rows and the map."""
    adjacency = layer.adjacency
    scale = saved.norm_weight * saved.inverse_std
    grad_e_hat, grad_at_source, at_destination = back.new_e_hat, torch.zeros_like(saved.values), []
    grad_weight = None if saved.weight is None else torch.zeros_like(saved.weight)
    edges = max(adjacency.num_edges, 1)
    slope = -scale * back.normalised_dot * saved.inverse_std.square() / edges
    offset = -scale * back.normalised_sum / edges
    for block in adjacency.blocks:
        grad_normalised = torch.ops.aten.threshold_backward(grad_e_hat[block.edges], saved.is_active(block.edges), 0)
        rows = grad_normalised.mul_(scale)
        if of_batch:
            rows.addcmul_(saved.raw[block.edges] - saved.mean, slope).add_(offset)
        if back.raw is not None:
            rows.add_(back.raw[block.edges])
        grad_at_source.index_add_(0, block.source, rows)
        at_destination.append(sum_of_runs(rows, block.places, block.starts))
        if saved.weight is not None and grad_weight is not None:
            grad_weight.add_(product(rows.t(), saved.e_hat[block.edges].t()))
            grad_e_hat[block.edges].add_(product(rows, saved.weight.t()))
    return (
        grad_at_source,
        torch.cat(at_destination),
        back.values,
        grad_e_hat.sum(0, keepdim=True) if saved.e_hat.shape[0] == 1 != adjacency.num_edges else grad_e_hat,
        grad_weight,
        back.beta_hat,
        back.normalised_dot * saved.inverse_std,
        back.normalised_sum,
        None,
    )
