"""Graph convolution over the mean of the in-neighbours."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bimp.layers.row_norm import RowNorm
from bimp.neighbourhood import mean_neighbour_rows


class GCNLayer(nn.Module):
    """GCN (equations S1, S2): ``h_v + ReLU(BN(U (1/deg_v) sum_u beta_hat_uv h_u))``; beta_hat = 1 where there is none.

    Printed S2 divides by the degree although beta_hat sums to 1 already; so does this layer. U has a bias.

    Args:
        row_dim: width of a node's row, before and after.
    """

    def __init__(self, row_dim: int) -> None:
        super().__init__()
        self.update = nn.Linear(row_dim, row_dim)
        self.norm = RowNorm(row_dim)

    def forward(self, h: Tensor, edge_index: Tensor, beta_hat: Tensor | None = None) -> Tensor:
        """Map node rows ``[nodes, row_dim]`` along ``[2, edges]``, gated by ``[edges]``, to ``[nodes, row_dim]``."""
        aggregate = mean_neighbour_rows(h, edge_index, beta_hat)
        return h + torch.relu(self.norm(self.update(aggregate)))
