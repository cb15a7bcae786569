"""The bilateral part: soft assignment, modular gradient and the gate that comes of it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bimp.config import Gate
from bimp.data.batch import GraphBatch
from bimp.losses import min_cut_loss, orthogonality_loss
from bimp.neighbourhood import degrees, sum_over_neighbours


@dataclass(frozen=True)
class GateOutput:
    """What one gated layer gets from its gate.

    Attributes:
        beta_hat: ``[edges]``, the factor of each message; sums to 1 over the edges into a node.
        soft_assignment: S, ``[nodes, K]``; each row sums to 1.
        unsupervised_loss: L_u of this layer (equation 7), a scalar.
    """

    beta_hat: Tensor
    soft_assignment: Tensor
    unsupervised_loss: Tensor


class BilateralGate(nn.Module):
    """Modular gradient of one layer and its normalisation (equations 5, 7, 8, 9, 10).

    The nodes are assigned softly to K clusters, ``S = softmax(ReLU(H W_1) W_2)``. The further apart two neighbours'
    assignments lie, ``D(u, v) = ||(s_u - s_v) W_m||``, the smaller ``beta = exp(-D / (2 sigma_m^2))``, and
    ``beta_hat = sigmoid(beta)`` over its sum at the destination. Equal assignments have distance 0, with gradient 0.

    ``gate="uniform"`` is the control: the same parameters and unsupervised loss, but beta_hat = 1/deg, so that the
    metric has no part in the result.

    Args:
        row_dim: D, width of a node's row.
        hidden_dim: D', width between the two assignment layers.
        num_clusters: K.
        sigma_m: sensitivity to the clusters; small values shut out neighbours of other clusters sooner.
        gate: ``bilateral`` or ``uniform``.
    """

    def __init__(self, row_dim: int, hidden_dim: int, num_clusters: int, sigma_m: float, gate: Gate) -> None:
        super().__init__()
        self.sigma_m = sigma_m
        self.gate = gate
        self.first_assignment = nn.Linear(row_dim, hidden_dim)
        self.second_assignment = nn.Linear(hidden_dim, num_clusters)
        self.metric = nn.Linear(num_clusters, num_clusters, bias=False)

    def forward(self, h: Tensor, batch: GraphBatch) -> GateOutput:
        """Gate the edges of ``batch`` by the rows ``h``, ``[nodes, row_dim]``, that enter the layer."""
        soft_assignment = self.assign(h)
        if self.gate == "uniform":
            sigmoids = h.new_ones(batch.num_edges)
            totals = degrees(batch.edge_index, batch.num_nodes, h.dtype)
        else:
            distances = self.distance(soft_assignment, batch.edge_index)
            sigmoids = torch.sigmoid(torch.exp(-distances / (2 * self.sigma_m**2)))
            totals = sum_over_neighbours(sigmoids, batch.edge_index, batch.num_nodes)
        return GateOutput(
            beta_hat=sigmoids / totals.index_select(0, batch.edge_index[1]),
            soft_assignment=soft_assignment,
            unsupervised_loss=min_cut_loss(soft_assignment, batch) + orthogonality_loss(soft_assignment, batch),
        )

    def assign(self, h: Tensor) -> Tensor:
        """Soft assignment S, ``[nodes, K]``, of the rows ``h`` (equation 5)."""
        hidden = torch.relu(self.first_assignment(h))
        return torch.softmax(self.second_assignment(hidden), dim=1)

    def distance(self, soft_assignment: Tensor, edge_index: Tensor) -> Tensor:
        """Generalised Mahalanobis distance D, ``[edges]``, between the ends of each edge (equation 9)."""
        # The metric is linear: mapping the nodes before taking differences spares a product on every edge.
        mapped: Tensor = self.metric(soft_assignment)
        differences = mapped.index_select(0, edge_index[0]) - mapped.index_select(0, edge_index[1])
        # Unlike sqrt of a sum of squares, the norm has the subgradient 0 at 0.
        norms: Tensor = torch.linalg.vector_norm(differences, dim=1)
        return norms
