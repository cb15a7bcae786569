"""Residual gated graph convolution, with rows on the edges."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bimp.adjacency import Adjacency
from bimp.embedded import Embedded, map_rows
from bimp.kernels.choice import kernels_serve
from bimp.kernels.edge_gates import EdgeGates
from bimp.kernels.linear import Linear, linear
from bimp.layers.residual import add_residual, next_rows
from bimp.neighbourhood import sum_over_neighbours
from bimp.padded.choice import written_out
from bimp.padded.gated_gcn import GatedLayer
from bimp.row_norm import RowNorm
from bimp.semantics import EdgeGate

EPSILON = 1e-6
"""Added to the sum of the edge gates (equation S10)."""

WeightAndBias = tuple[Tensor, Tensor]


@dataclass(frozen=True, kw_only=True)
class Maps:
    """The five maps of a layer, A, B, V, U and C in this order, as a step reads them."""

    source: WeightAndBias
    destination: WeightAndBias
    values: WeightAndBias
    own: WeightAndBias
    edge: WeightAndBias


class GatedGCNLayer(nn.Module):
    """GatedGCN (equations S9 to S12).

    First the edges, ``e_hat + ReLU(BN(A h_u + B h_v + C e_hat))``; then, with e the sigmoid of the new e_hat over its
    sum at the destination, the nodes, ``h_v + ReLU(BN(U h_v + sum_u e_uv * beta_hat_uv V h_u))``. The five maps have
    biases.

    Args:
        row_dim: width of a node's and an edge's row before the layer.
        out_dim: width of them after; None: ``row_dim``. Where they differ there is no residual.
        edge_gate: e is the sigmoid of the ``updated`` e_hat, or of the ``raw`` A h_u + B h_v + C e_hat.
    """

    def __init__(self, row_dim: int, out_dim: int | None = None, edge_gate: EdgeGate = "updated") -> None:
        super().__init__()
        out_dim = row_dim if out_dim is None else out_dim
        self.edge_gate = edge_gate
        self.edge_source = Linear(row_dim, out_dim)
        self.edge_destination = Linear(row_dim, out_dim)
        self.edge_self = Linear(row_dim, out_dim)
        self.node_self = Linear(row_dim, out_dim)
        self.node_source = Linear(row_dim, out_dim)
        self.edge_norm = RowNorm(out_dim)
        self.node_norm = RowNorm(out_dim)

    def forward(
        self,
        h: Tensor,
        e_hat: Tensor,
        adjacency: Adjacency,
        beta_hat: Tensor | None = None,
        embedded: Embedded | None = None,
        embedded_edges: Embedded | None = None,
        edges_are_alike: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """The next node rows and edge rows.

        Args:
            h: ``[nodes, row_dim]``.
            e_hat: ``[edges, row_dim]``, or ``[1, row_dim]`` for all edges. On a padded batch there is a row for each
                edge, 0 on padding.
            adjacency: of the edges.
            beta_hat: ``[edges]``, the factor of each message; None: 1.
            embedded: what ``h`` was embedded from, if that is known.
            embedded_edges: what ``e_hat`` was embedded from, if that is known.
            edges_are_alike: whether all edges have the same row.
        """
        width = self.edge_self.out_features
        maps = self._maps(adjacency, edges_are_alike)
        if written_out(adjacency, self.edge_norm, self.node_norm):
            return self._written_out(h, e_hat, adjacency, beta_hat, maps)
        fits = adjacency.padding is None and e_hat.shape[1] == width and self.edge_norm.fits_kernels
        if fits and kernels_serve(h, e_hat, beta_hat):
            rows, e_hat = self._by_kernel(h, e_hat, adjacency, beta_hat, maps, embedded, embedded_edges)
        else:
            rows, e_hat = self._plainly(h, e_hat, adjacency, beta_hat, maps)
        return next_rows(h, rows, self.node_norm, "relu", adjacency), e_hat

    def _maps(self, adjacency: Adjacency, edges_are_alike: bool) -> Maps:
        """Without gradients that a normalisation leaves nothing of (:meth:`bimp.row_norm.RowNorm.without_rest`)."""

        def of_edges(shift: Tensor) -> Tensor:
            if self.edge_gate == "raw":  # the gate sees the rows before they are normalised
                return shift
            return self.edge_norm.without_rest(shift, adjacency.num_edges)

        weight = self.edge_self.weight
        return Maps(
            source=(self.edge_source.weight, of_edges(self.edge_source.bias)),
            destination=(self.edge_destination.weight, of_edges(self.edge_destination.bias)),
            values=(self.node_source.weight, self.node_source.bias),
            own=(self.node_self.weight, self.node_norm.without_rest(self.node_self.bias, adjacency.num_nodes)),
            edge=(of_edges(weight) if edges_are_alike else weight, of_edges(self.edge_self.bias)),
        )

    def _plainly(
        self, h: Tensor, e_hat: Tensor, adjacency: Adjacency, beta_hat: Tensor | None, maps: Maps
    ) -> tuple[Tensor, Tensor]:
        """The nodes' rows before normalisation, and the new rows of the edges, as the equations have them."""
        source, destination = adjacency.edge_index
        at_source, at_destination, at_node = self._map_nodes(h, maps)
        from_source, values = at_source.index_select(0, source).chunk(2, dim=1)
        raw = from_source + at_destination.index_select(0, destination) + self._map(e_hat, maps.edge)
        e_hat = add_residual(e_hat, torch.relu(self.edge_norm(raw, adjacency.real_edges)))
        edge_gate = torch.sigmoid(raw if self.edge_gate == "raw" else e_hat)
        messages = edge_gate * values
        if beta_hat is not None:
            messages = beta_hat.unsqueeze(1) * messages
        # The denominator of e belongs to the destination, so it is divided by once for each node.
        total = sum_over_neighbours(edge_gate, adjacency) + EPSILON
        return at_node + sum_over_neighbours(messages, adjacency) / total, e_hat

    def _map_nodes(self, h: Tensor, maps: Maps) -> tuple[Tensor, Tensor, Tensor]:
        """A h and V h side by side, ``[nodes, 2 * out_dim]``, B h and U h: one product maps the nodes four times."""
        mapped = self._map(h, maps.source, maps.values, maps.destination, maps.own)
        width = self.node_self.out_features
        at_source, at_destination, at_node = torch.split(mapped, [2 * width, width, width], dim=1)
        return at_source, at_destination, at_node

    def _map(self, rows: Tensor, *maps: WeightAndBias) -> Tensor:
        """The rows by all of the maps, side by side."""
        weights, biases = zip(*maps, strict=True)
        return linear(rows, torch.cat(weights), torch.cat(biases))

    def _written_out(
        self, h: Tensor, e_hat: Tensor, adjacency: Adjacency, beta_hat: Tensor | None, maps: Maps
    ) -> tuple[Tensor, Tensor]:
        """The whole layer by :mod:`bimp.padded.gated_gcn`."""
        layer = GatedLayer(
            adjacency=adjacency,
            edge_norm=self.edge_norm,
            node_norm=self.node_norm,
            gate_by_raw=self.edge_gate == "raw",
            epsilon=EPSILON,
        )
        in_order = (maps.source, maps.destination, maps.values, maps.own, maps.edge)
        return layer(h, e_hat, in_order, beta_hat)

    def _by_kernel(
        self,
        h: Tensor,
        e_hat: Tensor,
        adjacency: Adjacency,
        beta_hat: Tensor | None,
        maps: Maps,
        embedded: Embedded | None,
        embedded_edges: Embedded | None,
    ) -> tuple[Tensor, Tensor]:
        """The same by :mod:`bimp.kernels.edge_gates`."""
        edge_weight, of_every_edge = maps.edge
        weight: Tensor | None = edge_weight
        columns = None
        if e_hat.shape[0] == 1:
            weight, of_every_edge = None, self._map(e_hat, maps.edge).view(-1)
        elif embedded_edges is not None:
            columns, weight = embedded_edges.as_map(edge_weight)
            added = embedded_edges.added(edge_weight)
            of_every_edge = of_every_edge if added is None else of_every_edge + added
        # What every edge adds goes in with the bias of its destination: one product maps the nodes four times.
        destination = (maps.destination[0], maps.destination[1] + of_every_edge)
        weights, biases = zip(maps.source, destination, maps.values, maps.own, strict=True)
        mapped = map_rows(h, torch.cat(weights), torch.cat(biases), embedded)
        gates = EdgeGates(
            adjacency=adjacency, norm=self.edge_norm, gate_by_raw=self.edge_gate == "raw", epsilon=EPSILON
        )
        return gates(mapped, e_hat, weight, columns, beta_hat)
