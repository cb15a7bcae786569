"""GraphSAGE with a max aggregator."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bimp.adjacency import Adjacency
from bimp.embedded import Embedded
from bimp.kernels.choice import kernels_serve
from bimp.kernels.linear import Linear, linear
from bimp.kernels.unit_rows import positive_unit_rows
from bimp.layers.residual import next_rows
from bimp.neighbourhood import max_rectified_neighbour_rows
from bimp.row_norm import RowNorm
from bimp.semantics import ConcatenatedRow


class GraphSAGELayer(nn.Module):
    """GraphSAGE with max pooling (equations S3, S4): U Concat(h_v, max_u beta_hat_uv ReLU(V h_u)).

    Its rows are divided by their L2 norm, then ReLU, BN and residual; U and V have biases. The maximum over no
    neighbour is 0.

    Args:
        row_dim: width of a node's row before the layer.
        out_dim: width of it after; None: ``row_dim``. Where they differ there is no residual.
        concatenated_row: what of the node itself is concatenated: its ``input`` h_v, or ReLU(V h_v), ``pooled`` as
            its neighbours are, and never gated.
    """

    def __init__(self, row_dim: int, out_dim: int | None = None, concatenated_row: ConcatenatedRow = "input") -> None:
        super().__init__()
        out_dim = row_dim if out_dim is None else out_dim
        self.concatenated_row = concatenated_row
        self.pool = Linear(row_dim, row_dim)
        self.update = Linear(2 * row_dim, out_dim)
        self.norm = RowNorm(out_dim)

    def forward(
        self, h: Tensor, adjacency: Adjacency, beta_hat: Tensor | None = None, embedded: Embedded | None = None
    ) -> Tensor:
        """Map node rows ``[nodes, row_dim]`` along the edges, gated by ``[edges]``, to ``[nodes, out_dim]``.

        ``embedded`` is what ``h`` was embedded from, if that is known.
        """
        mapped = self.pool(h) if embedded is None else embedded.mapped(self.pool.weight, self.pool.bias)
        largest = max_rectified_neighbour_rows(mapped, adjacency, beta_hat)
        if self.concatenated_row == "pooled":
            updated = self.update.of_both(torch.relu(mapped), largest)
        elif embedded is None:
            updated = self.update.of_both(h, largest)
        else:
            of_own, of_largest = torch.split(self.update.weight, h.shape[1], dim=1)
            updated = embedded.mapped(of_own, self.update.bias) + linear(largest, of_largest, None)
        is_few = adjacency.padding is not None or kernels_serve(updated)
        unit = positive_unit_rows(updated) if is_few else torch.relu(F.normalize(updated, dim=1))
        return next_rows(h, unit, self.norm, "none", adjacency)
