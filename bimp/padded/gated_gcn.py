"""A GatedGCN layer on a padded batch in one function (equations S9 to S12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bimp.adjacency import Adjacency
from bimp.once import differentiable_once
from bimp.padded.normalisation import Normalised, add_real, backward_through, normalise_
from bimp.padding import Padding
from bimp.row_norm import RowNorm

aten = torch.ops.aten


@dataclass(frozen=True, kw_only=True)
class GatedLayer:
    """What of a GatedGCN layer is no tensor that is differentiated.

    Attributes:
        adjacency: the edges.
        edge_norm, node_norm: the normalisations.
        gate_by_raw: the gate is the sigmoid of the row before normalisation, not of the new row.
        epsilon: added to the sum of the gates.
    """

    adjacency: Adjacency
    edge_norm: RowNorm
    node_norm: RowNorm
    gate_by_raw: bool
    epsilon: float

    @property
    def padding(self) -> Padding:
        """What is real."""
        assert self.adjacency.padding is not None
        return self.adjacency.padding

    def __call__(
        self,
        h: Tensor,
        e_hat: Tensor,
        maps: Sequence[tuple[Tensor, Tensor]],
        beta_hat: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """The next rows of nodes and edges; those of the padding stay as they are, or become 0 where they widen.

        Args:
            h: ``[nodes, row_dim]``.
            e_hat: ``[edges, row_dim]``, 0 on padding.
            maps: weight and bias of A, B, V, U and C, each from ``row_dim`` to ``width``.
            beta_hat: ``[edges]``, or None for 1.
        """
        outputs: tuple[Tensor, Tensor] = _GatedLayer.apply(  # type: ignore[no-untyped-call]
            self,
            h,
            e_hat,
            beta_hat,
            self.edge_norm.weight,
            self.edge_norm.bias,
            self.node_norm.weight,
            self.node_norm.bias,
            *(weight for weight, _ in maps),
            *(bias for _, bias in maps),
        )
        return outputs


@dataclass(frozen=True)
class _Kept:
    """What the backward pass needs; shapes as in :class:`GatedLayer`.

    Attributes:
        gate: ``[edges, width]``.
        sent: ``[edges, width]``, V h_u.
        aggregate, total: ``[nodes, width]``: the gated mean of the messages, and what it was divided by.
    """

    h: Tensor
    e_hat: Tensor
    node_weight: Tensor
    edge_weight: Tensor
    beta_hat: Tensor | None
    edge_norm_weight: Tensor
    node_norm_weight: Tensor
    gate: Tensor
    sent: Tensor
    aggregate: Tensor
    total: Tensor


class _GatedLayer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        layer: GatedLayer,
        h: Tensor,
        e_hat: Tensor,
        beta_hat: Tensor | None,
        edge_norm_weight: Tensor,
        edge_norm_bias: Tensor,
        node_norm_weight: Tensor,
        node_norm_bias: Tensor,
        *maps: Tensor,
    ) -> tuple[Tensor, Tensor]:
        nodes, edges, runs = layer.padding.nodes, layer.padding.edges, layer.adjacency.gated_runs
        edge_weight, edge_bias = maps[4], maps[9]
        width = len(edge_weight)
        has_residual = h.shape[1] == width
        node_bias, node_weight = _one_below_the_other(maps[5:9], maps[:4])
        mapped = torch.addmm(node_bias, h, node_weight.t())
        raw, sent = runs.to_edges.sums(mapped.view(-1, width)).chunk(2)
        raw.addmm_(e_hat, edge_weight.t())
        gates_and_messages = raw.new_empty(2 * len(raw), width)
        gate, messages = gates_and_messages.chunk(2)
        if layer.gate_by_raw:
            torch.sigmoid(raw + edge_bias, out=gate)
        # The bias of C is the same on all edges, so that the normalisation takes it out again.
        edge_rows = normalise_(raw, edges, layer.edge_norm, "relu", is_masked=True, shift=edge_bias)
        new_e_hat = add_real(e_hat if has_residual else None, edge_rows.activated, edges)
        if not layer.gate_by_raw:
            torch.sigmoid(new_e_hat, out=gate)
        torch.mul(gate, sent, out=messages)
        if beta_hat is not None:
            messages.mul_(beta_hat.unsqueeze(1))
        total, summed = runs.to_destinations.sums(gates_and_messages).chunk(2)
        aggregate = summed.div_(total.add_(layer.epsilon))
        rows = torch.addcmul(aggregate, mapped[:, 3 * width :], nodes.column(h.dtype))
        node_rows = normalise_(rows, nodes, layer.node_norm, "relu", is_masked=True)
        kept = _Kept(
            h=h,
            e_hat=e_hat,
            node_weight=node_weight,
            edge_weight=edge_weight,
            beta_hat=beta_hat,
            edge_norm_weight=edge_norm_weight,
            node_norm_weight=node_norm_weight,
            gate=gate,
            sent=sent,
            aggregate=aggregate,
            total=total,
        )
        ctx.layer = layer
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*vars(edge_rows).values(), *vars(node_rows).values(), *vars(kept).values())
        return add_real(h if has_residual else None, node_rows.activated, nodes), new_e_hat

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, grad_h: Tensor | None, grad_e_hat: Tensor | None) -> tuple[Tensor | None, ...]:
        layer: GatedLayer = ctx.layer
        edge_rows, node_rows = Normalised(*ctx.saved_tensors[:3]), Normalised(*ctx.saved_tensors[3:6])
        kept = _Kept(*ctx.saved_tensors[6:])
        nodes, edges, runs = layer.padding.nodes, layer.padding.edges, layer.adjacency.gated_runs
        (num_nodes, width), num_edges = kept.aggregate.shape, len(kept.gate)
        has_residual = kept.h.shape[1] == width
        if grad_h is None:
            grad_h = torch.zeros_like(kept.aggregate)
        # Rows of the edges before their normalisation, what they send, and what the nodes keep.
        grads = grad_h.new_empty(2 * num_edges + num_nodes, width)
        grad_raw, grad_sent, grad_own = torch.split(grads, [num_edges, num_edges, num_nodes])
        _, *node_norm = backward_through(node_rows, grad_h, nodes, kept.node_norm_weight, "relu", out=grad_own)
        minus_grad_gate, grad_beta_hat = _backward_through_mean(layer, kept, grad_own, grad_sent)
        minus_through_gate = aten.sigmoid_backward(minus_grad_gate, kept.gate)
        grad_new = grad_e_hat
        edge_norm: list[Tensor] | list[None] = [None, None]
        if not layer.gate_by_raw:
            grad_new = minus_through_gate.neg_() if grad_e_hat is None else grad_e_hat - minus_through_gate
        if grad_new is None:
            torch.neg(minus_through_gate, out=grad_raw)
        else:
            _, *edge_norm = backward_through(edge_rows, grad_new, edges, kept.edge_norm_weight, "relu", out=grad_raw)
            if layer.gate_by_raw:
                grad_raw.sub_(minus_through_gate)
        grad_mapped = runs.to_nodes.sums(grads).view(num_nodes, -1)
        grad_bias = (nodes.column(grads.dtype).t() @ grad_mapped).view(-1)
        grad_node_weight = grad_mapped.t() @ kept.h
        if layer.gate_by_raw or not has_residual or grad_new is None:
            grad_old = _plus_product(grad_new if has_residual else None, grad_raw, kept.edge_weight)
        else:
            grad_old = grad_new.addmm_(grad_raw, kept.edge_weight)  # a tensor of this function's own
        return (
            None,
            _plus_product(grad_h if has_residual else None, grad_mapped, kept.node_weight),
            grad_old,
            grad_beta_hat,
            *edge_norm,
            *node_norm,
            *grad_node_weight.chunk(4),
            grad_raw.t() @ kept.e_hat,
            *grad_bias.chunk(4),
            grad_bias[width : 2 * width],  # every edge leads to one node, so that C's bias has the gradient of B's
        )


def _one_below_the_other(biases: Sequence[Tensor], weights: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """All biases as one, ``[maps * width]``, and all weights, ``[maps * width, row_dim]``, in one launch."""
    joined = torch.cat([each.reshape(-1) for each in (*biases, *weights)])
    rows = sum(len(bias) for bias in biases)
    return joined[:rows], joined[rows:].view(rows, -1)


def _plus_product(rows: Tensor | None, left: Tensor, right: Tensor) -> Tensor:
    return left @ right if rows is None else torch.addmm(rows, left, right)


def _backward_through_mean(
    layer: GatedLayer, kept: _Kept, grad_aggregate: Tensor, grad_sent: Tensor
) -> tuple[Tensor, Tensor | None]:
    """From the gated means back to the gates, with the sign turned, and to beta_hat; ``grad_sent`` is written.

    Args:
        layer: whose means they are.
        kept: in the forward pass.
        grad_aggregate: ``[nodes, width]``.
        grad_sent: ``[edges, width]``.
    """
    nodes = len(grad_aggregate)
    of_totals_and_sums = grad_aggregate.new_empty(2 * nodes, grad_aggregate.shape[1])
    of_totals, of_sums = of_totals_and_sums.chunk(2)
    torch.div(grad_aggregate, kept.total, out=of_sums)
    torch.mul(of_sums, kept.aggregate, out=of_totals)
    minus_of_gate, of_message = of_totals_and_sums.index_select(0, layer.adjacency.gated_runs.at_destinations).chunk(2)
    grad_beta_hat = None
    if kept.beta_hat is not None:
        grad_beta_hat = (of_message * kept.sent).mul_(kept.gate).sum(1)
        of_message.mul_(kept.beta_hat.unsqueeze(1))
    torch.mul(of_message, kept.gate, out=grad_sent)
    return minus_of_gate.addcmul_(of_message, kept.sent, value=-1), grad_beta_hat
