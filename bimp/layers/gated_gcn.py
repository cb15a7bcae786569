"""Residual gated graph convolution, with rows on the edges."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bimp.layers.row_norm import RowNorm
from bimp.neighbourhood import sum_over_neighbours

EPSILON = 1e-6
"""Added to the sum of the edge gates (equation S10)."""


class GatedGCNLayer(nn.Module):
    """GatedGCN (equations S9 to S12).

    First the edges, ``e_hat + ReLU(BN(A h_u + B h_v + C e_hat))``; then, with e the sigmoid of the new e_hat over its
    sum at the destination, the nodes, ``h_v + ReLU(BN(U h_v + sum_u e_uv * beta_hat_uv V h_u))``. The five maps have
    biases.

    Args:
        row_dim: width of a node's and an edge's row, before and after.
    """

    def __init__(self, row_dim: int) -> None:
        super().__init__()
        self.edge_source = nn.Linear(row_dim, row_dim)
        self.edge_destination = nn.Linear(row_dim, row_dim)
        self.edge_self = nn.Linear(row_dim, row_dim)
        self.node_self = nn.Linear(row_dim, row_dim)
        self.node_source = nn.Linear(row_dim, row_dim)
        self.edge_norm = RowNorm(row_dim)
        self.node_norm = RowNorm(row_dim)

    def forward(
        self, h: Tensor, e_hat: Tensor, edge_index: Tensor, beta_hat: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Map node rows ``[nodes, row_dim]`` and edge rows ``[edges, row_dim]``, gated by ``[edges]``, to the next."""
        source, destination = edge_index
        e_hat = e_hat + torch.relu(
            self.edge_norm(
                self.edge_source(h).index_select(0, source)
                + self.edge_destination(h).index_select(0, destination)
                + self.edge_self(e_hat)
            )
        )
        edge_gate = torch.sigmoid(e_hat)
        messages = edge_gate * self.node_source(h).index_select(0, source)
        if beta_hat is not None:
            messages = beta_hat.unsqueeze(1) * messages
        # The denominator of e belongs to the destination, so it is divided by once for each node.
        aggregate = sum_over_neighbours(messages, edge_index, h.shape[0]) / (
            sum_over_neighbours(edge_gate, edge_index, h.shape[0]) + EPSILON
        )
        h = h + torch.relu(self.node_norm(self.node_self(h) + aggregate))
        return h, e_hat
