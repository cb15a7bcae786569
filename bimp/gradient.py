"""The bilateral part: soft assignment, modular gradient and the gate that comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bimp.adjacency import Adjacency
from bimp.config import Gate
from bimp.config.requirements import require_above_zero, require_at_least_one, require_choice
from bimp.data.batch import GraphBatch
from bimp.kernels.linear import Linear
from bimp.losses import min_cut_loss, orthogonality_loss
from bimp.neighbourhood import softmax_over_neighbours, sum_along_edges, sum_over_neighbours
from bimp.padded.assignment_losses import MOST_CLUSTERS, min_cut_and_orthogonality
from bimp.padded.edge_shares import beta_hat_of
from bimp.semantics import CutAdjacency, CutScope, GateNormalisation


@dataclass(frozen=True)
class GateOutput:
    """What one gated layer gets from its gate.

    Attributes:
        beta_hat: ``[edges]``, the factor of each message; sums to 1 over the edges into a node.
        soft_assignment: S, ``[nodes, K]``; each row sums to 1.
        min_cut: L_c of this layer (first term of equation 7), a scalar.
        orthogonality: L_o of this layer (second term of equation 7), a scalar.
        unsupervised_loss: L_u of this layer (equation 7), a scalar: their sum, up to ``cut_epsilon``.
    """

    beta_hat: Tensor
    soft_assignment: Tensor
    min_cut: Tensor
    orthogonality: Tensor
    unsupervised_loss: Tensor


class BilateralGate(nn.Module):
    """Modular gradient of one layer and its normalisation (equations 5, 7, 8, 9, 10).

    The nodes are assigned softly to K clusters, ``S = softmax(ReLU(H W_1) W_2)``. The further apart two neighbours'
    assignments lie, ``D(u, v) = ||(s_u - s_v) W_m||``, the smaller ``beta = exp(-D / (2 sigma_m^2))``, and
    ``beta_hat = sigmoid(beta)`` over its sum at the destination. Equal assignments have distance 0, with gradient 0.
    The keyword arguments are the settings by which the released code departs from this; docs/protocol.md has them.

    ``gate="uniform"`` is the control: the same parameters and unsupervised loss, but beta_hat = 1/deg, so that the
    metric has no part in the result.

    Args:
        row_dim: D, width of a node's row.
        hidden_dim: D', width between the two assignment layers.
        num_clusters: K.
        sigma_m: sensitivity to the clusters; small values shut out neighbours of other clusters sooner.
        gate: ``bilateral`` or ``uniform``.
        assignment_bias: whether the two assignment layers have biases.
        metric_bias: whether W_m has a bias, which makes D(u, v) differ from D(v, u).
        metric_relu: whether a ReLU stands between W_m and the norm.
        distance_epsilon: added inside the square root of D and to the exponent of beta.
        normalisation: beta_hat is ``sigmoid`` of beta over its sum, or the ``softmax`` of beta over the neighbours.
        epsilon: added to the sum of the sigmoids.
        cut_scope, cut_adjacency: of the unsupervised loss, as in :func:`bimp.losses.min_cut_loss`.
        cut_epsilon: added to the min-cut ratio and, within its norm, to every entry of S^T S.

    Raises:
        ConfigError: a width or number of clusters below 1, a ``sigma_m`` that is not above 0, or a choice that there is
            not.
    """

    def __init__(
        self,
        row_dim: int,
        hidden_dim: int,
        num_clusters: int,
        sigma_m: float,
        gate: Gate,
        *,
        assignment_bias: bool = True,
        metric_bias: bool = False,
        metric_relu: bool = False,
        distance_epsilon: float = 0.0,
        normalisation: GateNormalisation = "sigmoid",
        epsilon: float = 0.0,
        cut_scope: CutScope = "graph",
        cut_adjacency: CutAdjacency = "normalised",
        cut_epsilon: float = 0.0,
    ) -> None:
        super().__init__()
        for key, number in (("row_dim", row_dim), ("hidden_dim", hidden_dim), ("num_clusters", num_clusters)):
            require_at_least_one(key, number)
        require_above_zero("sigma_m", sigma_m)
        require_choice("gate", gate, get_args(Gate))
        require_choice("normalisation", normalisation, get_args(GateNormalisation))
        require_choice("cut_scope", cut_scope, get_args(CutScope))
        require_choice("cut_adjacency", cut_adjacency, get_args(CutAdjacency))
        self.sigma_m = sigma_m
        self.gate = gate
        self.metric_relu = metric_relu
        self.distance_epsilon = distance_epsilon
        self.normalisation = normalisation
        self.epsilon = epsilon
        self.cut_scope: CutScope = cut_scope
        self.cut_adjacency: CutAdjacency = cut_adjacency
        self.cut_epsilon = cut_epsilon
        self.first_assignment = Linear(row_dim, hidden_dim, bias=assignment_bias)
        self.second_assignment = Linear(hidden_dim, num_clusters, bias=assignment_bias)
        self.metric = nn.Linear(num_clusters, num_clusters, bias=metric_bias)

    def forward(self, h: Tensor, batch: GraphBatch) -> GateOutput:
        """Gate the edges of ``batch`` by the rows ``h``, ``[nodes, row_dim]``, that enter the layer.

        Under autocast it is computed in full precision all the same: beta_hat takes differences of assignments apart.
        """
        if torch.amp.is_autocast_available(h.device.type) and torch.is_autocast_enabled(h.device.type):
            with torch.autocast(h.device.type, enabled=False):
                return self.forward(h.to(self.metric.weight.dtype), batch)
        soft_assignment = self.assign(h)
        beta_hat = self._beta_hat(soft_assignment, batch)
        min_cut, orthogonality = self._losses(soft_assignment, batch)
        unsupervised_loss = min_cut + orthogonality
        if self.cut_epsilon > 0:
            shifted = self._orthogonality(soft_assignment, batch, self.cut_epsilon)
            unsupervised_loss = min_cut - self.cut_epsilon + shifted
        return GateOutput(
            beta_hat=beta_hat,
            soft_assignment=soft_assignment,
            min_cut=min_cut,
            orthogonality=orthogonality,
            unsupervised_loss=unsupervised_loss,
        )

    def assign(self, h: Tensor) -> Tensor:
        """Soft assignment S, ``[nodes, K]``, of the rows ``h`` (equation 5)."""
        hidden = torch.relu(self.first_assignment(h))
        return torch.softmax(self.second_assignment(hidden), dim=1)

    def distance(self, soft_assignment: Tensor, adjacency: Adjacency) -> Tensor:
        """Generalised Mahalanobis distance D, ``[edges]``, between the ends of each edge (equation 9).

        With a bias in the metric D(u, v) differs from D(v, u), the difference being source minus destination.
        """
        # The metric is linear: mapping the nodes before taking differences spares a product on every edge.
        mapped = self._mapped(soft_assignment)
        differences = sum_along_edges(mapped, -mapped, adjacency)
        if self.metric.bias is not None:
            differences = self._shifted(differences)
        if self.metric_relu:
            differences = torch.relu(differences)
        if self.distance_epsilon > 0:
            return (differences.square().sum(1) + self.distance_epsilon).sqrt()
        # Unlike sqrt of a sum of squares, the norm has the subgradient 0 at 0.
        norms: Tensor = torch.linalg.vector_norm(differences, dim=1)
        return norms

    # Maps and losses by the gate's own parameters, which a gate of several seeds does for each seed by itself.

    def _mapped(self, soft_assignment: Tensor) -> Tensor:
        return F.linear(soft_assignment, self.metric.weight)

    def _shifted(self, differences: Tensor) -> Tensor:
        return differences + self.metric.bias

    def _losses(self, soft_assignment: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """L_c and L_o."""
        is_usual = self.cut_scope == "graph" and self.cut_adjacency == "normalised"
        if batch.padding is not None and is_usual and soft_assignment.shape[1] <= MOST_CLUSTERS:
            return min_cut_and_orthogonality(soft_assignment, batch)
        return self._min_cut(soft_assignment, batch), self._orthogonality(soft_assignment, batch)

    def _min_cut(self, soft_assignment: Tensor, batch: GraphBatch) -> Tensor:
        return min_cut_loss(soft_assignment, batch, self.cut_scope, self.cut_adjacency)

    def _orthogonality(self, soft_assignment: Tensor, batch: GraphBatch, epsilon: float = 0.0) -> Tensor:
        return orthogonality_loss(soft_assignment, batch, self.cut_scope, epsilon)

    def _beta_hat(self, soft_assignment: Tensor, batch: GraphBatch) -> Tensor:
        adjacency = batch.adjacency
        if self.gate == "uniform":
            return adjacency.shares(soft_assignment.dtype)
        is_plain = self.metric.bias is None and not self.metric_relu and self.distance_epsilon == 0
        if adjacency.padding is not None and is_plain and self.normalisation == "sigmoid":
            return beta_hat_of(self._mapped(soft_assignment), adjacency, self.sigma_m, self.epsilon)
        beta = self._beta(self.distance(soft_assignment, adjacency))
        if self.normalisation == "softmax":
            return softmax_over_neighbours(beta.unsqueeze(1), adjacency).squeeze(1)
        sigmoids = torch.sigmoid(beta)
        totals = sum_over_neighbours(sigmoids, adjacency)
        if self.epsilon > 0:
            totals = totals + self.epsilon
        return sigmoids / totals.index_select(0, adjacency.destination)

    def _beta(self, distances: Tensor) -> Tensor:
        exponents = -distances / (2 * self.sigma_m**2)
        return torch.exp(exponents + self.distance_epsilon if self.distance_epsilon > 0 else exponents)
