"""Graph convolution over the in-neighbours."""

from __future__ import annotations

from torch import Tensor, nn

from bimp.adjacency import Adjacency
from bimp.embedded import Embedded
from bimp.kernels.linear import Linear
from bimp.layers.residual import next_rows
from bimp.neighbourhood import mean_neighbour_rows, sum_neighbour_rows
from bimp.row_norm import RowNorm
from bimp.semantics import GCNNormalisation


class GCNLayer(nn.Module):
    """GCN (equations S1, S2): ``h_v + ReLU(BN(U (1/deg_v) sum_u beta_hat_uv h_u))``; beta_hat = 1 where there is none.

    Printed S2 divides by the degree although beta_hat sums to 1 already; so does this layer. U has a bias.

    Args:
        row_dim: width of a node's row before the layer.
        out_dim: width of it after; None: ``row_dim``. Where they differ there is no residual.
        normalisation: ``mean``, or ``symmetric``: (outdeg_u indeg_v)^-1/2 takes the place of 1/deg_v.
    """

    def __init__(self, row_dim: int, out_dim: int | None = None, normalisation: GCNNormalisation = "mean") -> None:
        super().__init__()
        out_dim = row_dim if out_dim is None else out_dim
        self.aggregate = _symmetric_sum if normalisation == "symmetric" else mean_neighbour_rows
        self.update = Linear(row_dim, out_dim)
        self.norm = RowNorm(out_dim)

    def forward(
        self, h: Tensor, adjacency: Adjacency, beta_hat: Tensor | None = None, embedded: Embedded | None = None
    ) -> Tensor:
        """Map node rows ``[nodes, row_dim]`` along the edges, gated by ``[edges]``, to ``[nodes, out_dim]``.

        ``embedded`` is what ``h`` was embedded from, if that is known.
        """
        bias = self.norm.without_rest(self.update.bias, adjacency.num_nodes)
        if embedded is None:
            updated = self.update.of(self.aggregate(h, adjacency, beta_hat), bias)
        else:  # of few different rows the map comes first: a sum of maps is a map of the sum
            updated = self.aggregate(embedded.mapped(self.update.weight), adjacency, beta_hat) + bias
        return next_rows(h, updated, self.norm, "relu", adjacency)


def _symmetric_sum(h: Tensor, adjacency: Adjacency, beta_hat: Tensor | None) -> Tensor:
    of_source, of_destination = adjacency.inverse_roots(h.dtype).unbind()
    return sum_neighbour_rows(h * of_source, adjacency, beta_hat) * of_destination
