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
from bimp.edge_blocks import Block
from bimp.kernels.linear import add_product
from bimp.kernels.room import empty_like_with_room, empty_with_room
from bimp.kernels.segments import sum_of_both_ends, sum_of_runs
from bimp.once import differentiable_once
from bimp.row_norm import RowNorm


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
        mapped: Tensor,
        e_hat: Tensor,
        weight: Tensor | None,
        columns: Tensor | None,
        beta_hat: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """The nodes' rows before their normalisation, and new rows of the edges.

        Args:
            mapped: ``[nodes, 4 width]``, four rows for each node: what it adds to the rows of the edges out of it, and
                of those into it; what it sends; what it keeps for itself.
            e_hat: ``[edges, width]``, or ``[1, width]`` for all edges.
            weight: ``[width, columns]``, the map of ``columns``; its bias is in ``mapped``. None: nothing is added to
                what both ends of an edge add to its row.
            columns: what is mapped, ``[edges, columns]``, without a gradient; None: ``e_hat``.
            beta_hat: ``[edges]``, or None for 1.

        Returns:
            ``[nodes, width]``, what a node keeps plus the gated mean of its messages; and ``[edges, width]``.
        """
        norm = self.norm
        outputs: tuple[Tensor, Tensor] = _EdgeGates.apply(  # type: ignore[no-untyped-call]
            mapped, e_hat, weight, columns, beta_hat, norm.weight, norm.bias, self
        )
        return outputs


class _EdgeGates(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        mapped: Tensor,
        e_hat: Tensor,
        weight: Tensor | None,
        columns: Tensor | None,
        beta_hat: Tensor | None,
        norm_weight: Tensor,
        norm_bias: Tensor,
        layer: EdgeGates,
    ) -> tuple[Tensor, Tensor]:
        adjacency = layer.adjacency
        raw = _raw_rows(mapped, e_hat, weight, columns, adjacency)
        mean, inverse_std, of_batch = layer.norm.statistics(raw)
        scale = norm_weight * inverse_std
        shift = norm_bias - mean * scale
        new_e_hat = empty_like_with_room(raw)
        sums, totals = [], []
        for block in adjacency.blocks:
            rows, new_rows = raw[block.edges], new_e_hat[block.edges]
            torch.addcmul(shift, rows, scale, out=new_rows)
            new_rows.relu_().add_(_rows_of(e_hat, block.edges))
            gate = torch.sigmoid(rows if layer.gate_by_raw else new_rows)
            messages = _sent(mapped, adjacency, block).mul_(gate)
            if beta_hat is not None:
                messages.mul_(beta_hat[block.edges].unsqueeze(1))
            sums.append(sum_of_runs(messages, block.places, block.starts))
            totals.append(sum_of_runs(gate, block.places, block.starts))
        total = _joined(totals).add_(layer.epsilon)
        aggregate = _joined(sums).div_(total)
        ctx.layer, ctx.of_batch = layer, of_batch
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(
            raw, new_e_hat, mapped, e_hat, weight, columns, beta_hat, mean, inverse_std, scale, shift, aggregate, total
        )
        return aggregate + mapped[:, 3 * raw.shape[1] :], new_e_hat

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad_nodes: Tensor | None, grad_new: Tensor | None) -> tuple[Tensor | None, ...]:
        saved = _Saved(*ctx.saved_tensors)
        if grad_nodes is None:
            grad_nodes = torch.zeros_like(saved.aggregate)
        back = _backward_through_gates(ctx.layer, saved, grad_nodes, grad_new)
        at_destination, grad_weight = _backward_through_rows(ctx.layer, saved, back, ctx.of_batch)
        adjacency: Adjacency = ctx.layer.adjacency
        by_source, starts = adjacency.by_source, adjacency.source_starts
        at_source = sum_of_runs(back.raw, by_source, starts)
        grad_values = sum_of_runs(back.sent, by_source, starts)
        of_nodes = [at_source, at_destination, grad_values, grad_nodes]
        is_shared = saved.e_hat.shape[0] == 1 != adjacency.num_edges
        return (
            torch.cat(of_nodes, dim=1, out=empty_with_room(len(at_source), 4 * at_source.shape[1], like=at_source)),
            back.new_e_hat.sum(0, keepdim=True) if is_shared else back.new_e_hat,
            grad_weight,
            None,
            back.beta_hat,
            back.norm_weight,
            back.norm_bias,
            None,
        )


@dataclass(frozen=True)
class _Saved:
    raw: Tensor
    new_e_hat: Tensor
    mapped: Tensor
    e_hat: Tensor
    weight: Tensor | None
    columns: Tensor | None
    beta_hat: Tensor | None
    mean: Tensor
    inverse_std: Tensor
    scale: Tensor
    shift: Tensor
    aggregate: Tensor
    total: Tensor


@dataclass(frozen=True)
class _Back:
    """Gradients after the first pass; the second one completes ``raw`` and ``new_e_hat``.

    Attributes:
        new_e_hat: with respect to the new rows, ``[edges, width]``.
        raw: of the rows after normalisation, ``[edges, width]``.
        raw_by_gate: the part of the raw rows' that does not go through the normalisation; None where there is none.
        sent: of what each edge carries, before its gate, ``[edges, width]``.
        beta_hat, norm_weight, norm_bias: as in the forward pass.
    """

    new_e_hat: Tensor
    raw: Tensor
    raw_by_gate: Tensor | None
    sent: Tensor
    beta_hat: Tensor | None
    norm_weight: Tensor
    norm_bias: Tensor


def _raw_rows(
    mapped: Tensor, e_hat: Tensor, weight: Tensor | None, columns: Tensor | None, adjacency: Adjacency
) -> Tensor:
    """What both ends add to the row of each edge, and the map of ``columns`` or else of ``e_hat``."""
    raw = mapped.new_empty(adjacency.num_edges, mapped.shape[1] // 4)
    factor = e_hat if columns is None else columns
    for block in adjacency.blocks:
        rows = sum_of_both_ends(mapped, 4, adjacency, block.edges)
        if weight is None:
            raw[block.edges] = rows
        else:
            add_product(rows, factor[block.edges], weight, out=raw[block.edges])
    return raw


def _joined(parts: list[Tensor]) -> Tensor:
    """The rows of all blocks, without a copy where there is one block."""
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _sent(mapped: Tensor, adjacency: Adjacency, block: Block) -> Tensor:
    """What the source of each edge of the block sends, a new tensor."""
    return mapped.view(-1, mapped.shape[1] // 4).index_select(0, adjacency.row_sent[block.edges])


def _rows_of(e_hat: Tensor, edges: slice) -> Tensor:
    return e_hat if e_hat.shape[0] == 1 else e_hat[edges]


def _backward_through_gates(layer: EdgeGates, saved: _Saved, grad_nodes: Tensor, grad_new: Tensor | None) -> _Back:
    """From the nodes' sums back to the normalised rows of the edges."""
    adjacency = layer.adjacency
    grad_sum = grad_nodes / saved.total
    grad_total = (grad_sum * saved.aggregate).neg_()
    norm_weight, norm_bias = torch.zeros_like(saved.mean), torch.zeros_like(saved.mean)
    grad_e_hat, grad_sent = torch.empty_like(saved.raw), torch.empty_like(saved.raw)
    grad_raw = empty_like_with_room(saved.raw)
    grad_by_gate = torch.empty_like(saved.raw) if layer.gate_by_raw else None
    grad_beta_hat = None if saved.beta_hat is None else torch.empty_like(saved.beta_hat)
    for block in adjacency.blocks:
        raw = saved.raw[block.edges]
        gate = torch.sigmoid(raw if layer.gate_by_raw else saved.new_e_hat[block.edges])
        sent = _sent(saved.mapped, adjacency, block)
        grad_messages = grad_sum.index_select(0, block.destination)
        if saved.beta_hat is not None and grad_beta_hat is not None:
            torch.sum((grad_messages * gate).mul_(sent), dim=1, out=grad_beta_hat[block.edges])
            grad_messages.mul_(saved.beta_hat[block.edges].unsqueeze(1))
        torch.mul(grad_messages, gate, out=grad_sent[block.edges])
        grad_gate = grad_total.index_select(0, block.destination).addcmul_(grad_messages, sent)
        rows = grad_e_hat[block.edges]
        through_gate = rows if grad_by_gate is None else grad_by_gate[block.edges]
        torch.ops.aten.sigmoid_backward.grad_input(grad_gate, gate, grad_input=through_gate)
        if grad_by_gate is not None:
            rows.zero_()
        if grad_new is not None:
            rows.add_(grad_new[block.edges])
        normalised = torch.addcmul(saved.shift, raw, saved.scale, out=grad_raw[block.edges])
        torch.ops.aten.threshold_backward.grad_input(rows, normalised, 0, grad_input=normalised)
        if len(raw) > 0:  # the operator divides by the number of rows, even where the result is not wanted
            _, of_weight, of_bias = torch.ops.aten.native_batch_norm_backward(
                normalised, raw, saved.scale, None, None, saved.mean, saved.inverse_std, True, 0.0, [False, True, True]
            )
            norm_weight.add_(of_weight)
            norm_bias.add_(of_bias)
    return _Back(
        new_e_hat=grad_e_hat,
        raw=grad_raw,
        raw_by_gate=grad_by_gate,
        sent=grad_sent,
        beta_hat=grad_beta_hat,
        norm_weight=norm_weight,
        norm_bias=norm_bias,
    )


def _backward_through_rows(
    layer: EdgeGates, saved: _Saved, back: _Back, of_batch: bool
) -> tuple[Tensor, Tensor | None]:
    """From the normalised rows of the edges back to the raw ones, the old ones, and to destinations and the map."""
    adjacency = layer.adjacency
    at_destination = []
    grad_weight = None if saved.weight is None else torch.zeros_like(saved.weight)
    factor = saved.e_hat if saved.columns is None else saved.columns
    edges = max(adjacency.num_edges, 1)
    slope = -saved.scale * back.norm_weight * saved.inverse_std / edges
    offset = -saved.scale * back.norm_bias / edges - saved.mean * slope
    for block in adjacency.blocks:
        rows = back.raw[block.edges]
        if of_batch:
            centring = torch.addcmul(offset, saved.raw[block.edges], slope)
            torch.addcmul(centring, rows, saved.scale, out=rows)
        else:
            rows.mul_(saved.scale)
        if back.raw_by_gate is not None:
            rows.add_(back.raw_by_gate[block.edges])
        at_destination.append(sum_of_runs(rows, block.places, block.starts))
        if saved.weight is not None and grad_weight is not None:
            grad_weight.addmm_(rows.t(), factor[block.edges])
            if saved.columns is None:
                old_rows = back.new_e_hat[block.edges]
                add_product(old_rows, rows, saved.weight.t(), out=old_rows)
    return _joined(at_destination), grad_weight
