"""Graph attention."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bimp.adjacency import Adjacency
from bimp.embedded import Embedded, map_rows
from bimp.kernels.attention import HeadColumns, attend
from bimp.kernels.choice import kernels_serve
from bimp.kernels.linear import Linear
from bimp.layers.residual import next_rows
from bimp.neighbourhood import softmax_over_neighbours, sum_over_neighbours
from bimp.padded import attention
from bimp.padded.choice import written_out
from bimp.row_norm import RowNorm
from bimp.semantics import ATTENTION_SLOPE


class GATLayer(nn.Module):
    """GAT (equations S5 to S8): per head ``sum_u beta_hat_uv e_uv U h_u``, heads side by side, BN, ELU, residual.

    ``e`` is the softmax over the in-neighbours of ``LeakyReLU(V Concat(U h_v, U h_u))``. All heads share one
    beta_hat, and the gated attention is not normalised again.

    Args:
        row_dim: width of a node's row before the layer.
        heads: attention heads, each ``out_dim / heads`` wide.
        out_dim: width of a node's row after the layer, a multiple of ``heads``; None: ``row_dim``. Where they differ
            there is no residual.
        slope: negative slope of the LeakyReLU on the attention logits.
        bias: whether U and V have biases.
    """

    def __init__(
        self,
        row_dim: int,
        heads: int,
        out_dim: int | None = None,
        slope: float = ATTENTION_SLOPE,
        bias: bool = False,
    ) -> None:
        super().__init__()
        out_dim = row_dim if out_dim is None else out_dim
        self.heads = heads
        self.slope = slope
        self.projection = Linear(row_dim, out_dim, bias=bias)
        self.attention_source = nn.Parameter(torch.empty(heads, out_dim // heads))
        self.attention_destination = nn.Parameter(torch.empty(heads, out_dim // heads))
        self.attention_bias = nn.Parameter(torch.zeros(heads)) if bias else None
        self.norm = RowNorm(out_dim)
        nn.init.xavier_uniform_(self.attention_source)
        nn.init.xavier_uniform_(self.attention_destination)

    def forward(
        self, h: Tensor, adjacency: Adjacency, beta_hat: Tensor | None = None, embedded: Embedded | None = None
    ) -> Tensor:
        """Map node rows ``[nodes, row_dim]`` along the edges, gated by ``[edges]``, to ``[nodes, out_dim]``.

        ``embedded`` is what ``h`` was embedded from, if that is known.
        """
        columns = HeadColumns(heads=self.heads, width=self.projection.out_features // self.heads)
        if self.slope >= 0 and kernels_serve(h, beta_hat):
            mapped = self._map_nodes(h, columns.unused, embedded)
            aggregate = attend(mapped, columns, beta_hat, adjacency, self.slope)
        elif written_out(adjacency, self.norm):
            aggregate = attention.attend(self._map_nodes(h), columns, beta_hat, adjacency, self.slope)
        else:
            aggregate = self._attend_plainly(self._map_nodes(h), columns, beta_hat, adjacency)
        return next_rows(h, aggregate, self.norm, "elu", adjacency)

    def _map_nodes(self, h: Tensor, unused: int = 0, embedded: Embedded | None = None) -> Tensor:
        """U h, and what a node adds to logits as a source and as a destination, ``[nodes, columns]``.

        V Concat(a, b) is a product with each half of V: done on the nodes, it leaves one sum for the edges. The halves
        meet U before they meet the nodes, so that one product gives all three.
        """
        halves = (self.attention_source, self.attention_destination)
        by_head = self.projection.weight.view(self.heads, -1, h.shape[1])
        of_halves = torch.bmm(torch.stack(halves, dim=1), by_head).transpose(0, 1).reshape(-1, h.shape[1])
        weights = [self.projection.weight, of_halves]
        weights += [h.new_zeros(unused, h.shape[1])] if unused else []
        bias = None
        if self.attention_bias is not None:
            of_heads = self.projection.bias.view(self.heads, -1)
            source_bias, destination_bias = ((half * of_heads).sum(1) for half in halves)
            biases = [self.projection.bias, source_bias, destination_bias + self.attention_bias]
            bias = torch.cat([*biases, h.new_zeros(unused)] if unused else biases)
        return map_rows(h, torch.cat(weights), bias, embedded)

    def _attend_plainly(
        self, mapped: Tensor, columns: HeadColumns, beta_hat: Tensor | None, adjacency: Adjacency
    ) -> Tensor:
        """The nodes' aggregates, ``[nodes, heads * width]``, as the equations have them."""
        projected = mapped[:, : columns.values].view(len(mapped), columns.heads, columns.width)
        at_source, at_destination = mapped[:, columns.source], mapped[:, columns.destination]
        source, destination = adjacency.edge_index
        logits = at_source.index_select(0, source) + at_destination.index_select(0, destination)
        weights = softmax_over_neighbours(F.leaky_relu(logits, self.slope), adjacency)
        if beta_hat is not None:
            weights = weights * beta_hat.unsqueeze(1)
        messages = weights.unsqueeze(2) * projected.index_select(0, source)
        return sum_over_neighbours(messages, adjacency).flatten(1)
