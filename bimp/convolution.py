"""The gate of the paper for the convolutions of PyTorch Geometric, outside of :class:`bimp.network.Network`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, overload

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from bimp.config import Gate
from bimp.given_graph import graph_batch, require_columns, require_edges, require_rows
from bimp.gradient import BilateralGate, GateOutput


class BilateralConv(nn.Module):
    """A convolution of PyTorch Geometric whose messages are gated by beta_hat (equations 5, 7 to 10).

    A convolution that takes an ``edge_weight`` (GraphConv, GCNConv) is given beta_hat as that weight; of every other
    one (GINEConv, SAGEConv) each message is multiplied by it, after the convolution's own nonlinearity and before the
    aggregation. Columns of ``edge_index`` stand in any order. ::

        conv = BilateralConv(GraphConv(16, 32), row_dim=16, num_clusters=4)
        rows = conv(x, edge_index)
        rows, gate = conv(x, edge_index, batch, return_gate=True)
        loss = task_loss(rows) + gate.unsupervised_loss  # gate.beta_hat[i] belongs to edge_index[:, i]

    Args:
        conv: the convolution, of nodes of one kind, without ``cached`` normalisation. Those that send messages along
            other edges than they are given (self-loops of GATConv, relations of RGCNConv, hyperedges) are refused when
            they are called.
        row_dim: D, width of the rows that enter it.
        num_clusters: K.
        sigma_m: sensitivity to the clusters (equation 8).
        gate: ``bilateral``, or the control ``uniform``: the same parameters, beta_hat = 1/deg.
        hidden_dim: D', width between the two assignment layers; None: ``row_dim``.
        settings: further arguments of :class:`bimp.gradient.BilateralGate`, by which the released code departs.

    Raises:
        TypeError: ``conv`` is not a MessagePassing of PyTorch Geometric.
        ValueError: ``conv`` is of nodes of several kinds, or caches the normalised weights of its first call, which
            would freeze the gate; or a setting of the gate has no meaning.
    """

    def __init__(
        self,
        conv: MessagePassing,
        row_dim: int,
        num_clusters: int,
        sigma_m: float = 1.0,
        gate: Gate = "bilateral",
        hidden_dim: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        _require_gateable(conv)
        self.conv = conv
        self.gate = BilateralGate(
            row_dim, row_dim if hidden_dim is None else hidden_dim, num_clusters, sigma_m, gate, **settings
        )

    @overload
    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = ..., *, return_gate: Literal[True], **inputs: Any
    ) -> tuple[Tensor, GateOutput]: ...

    @overload
    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = ...,
        *,
        return_gate: Literal[False] = ...,
        **inputs: Any,
    ) -> Tensor: ...

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, *, return_gate: bool = False, **inputs: Any
    ) -> Tensor | tuple[Tensor, GateOutput]:
        """Convolve the rows ``x``, ``[nodes, row_dim]``, along ``edge_index``, ``[2, edges]``, gated by themselves.

        Args:
            x: the rows that the gate and the convolution see.
            edge_index: columns (source, destination), in any order.
            batch: ``[nodes]``, the graph of each node, ascending and without gaps; None: all are of one graph. The
                unsupervised loss is a mean over graphs; beta_hat does not depend on it.
            return_gate: give beta_hat, the soft assignment and the unsupervised loss as well.
            inputs: what else the convolution takes, such as ``edge_attr``. An ``edge_weight`` is multiplied by
                beta_hat.

        Raises:
            ValueError: ``x``, ``edge_index``, ``batch`` or an ``edge_weight`` is not as told above, an edge joins two
                graphs, or the convolution sends other messages than one along each edge, as with self-loops of its own.
        """
        gate_output = self._gate_output(x, edge_index, batch)
        # PyTorch Geometric's sums want numbers of nodes in int64.
        rows = gated_convolution(self.conv, x, edge_index.long(), gate_output.beta_hat, **inputs)
        return (rows, gate_output) if return_gate else rows

    def _gate_output(self, x: Tensor, edge_index: Tensor, batch: Tensor | None) -> GateOutput:
        first = self.gate.first_assignment
        require_rows(x, first.in_features, first.weight.dtype)
        require_edges(edge_index, x)
        ends = edge_index.long() if self.conv.flow == "source_to_target" else edge_index.long().flip(0)
        # The gate reads each neighbourhood as one run of columns; beta_hat goes back to the caller's order.
        order = ends[1].argsort(stable=True)
        given: GateOutput = self.gate(x, graph_batch(x, ends[:, order], batch))
        place = torch.empty_like(order)
        place[order] = torch.arange(order.numel(), device=order.device)
        return GateOutput(
            beta_hat=given.beta_hat.index_select(0, place),
            soft_assignment=given.soft_assignment,
            min_cut=given.min_cut,
            orthogonality=given.orthogonality,
            unsupervised_loss=given.unsupervised_loss,
        )


def gated_convolution(
    conv: MessagePassing, x: Tensor, edge_index: Tensor, beta_hat: Tensor | None = None, **inputs: Any
) -> Tensor:
    """``conv(x, edge_index, **inputs)`` with every message gated by ``beta_hat``, ``[edges]``; None: no gate.

    The gate enters as :class:`BilateralConv` says. A layer of a study's own is made of it in one line.

    Raises:
        TypeError: ``conv`` is not a MessagePassing of PyTorch Geometric, or takes none of ``inputs``.
        ValueError: ``conv`` cannot be gated or sends other messages than one along each edge, or ``beta_hat`` or an
            ``edge_weight`` is not ``[edges]``.
    """
    if beta_hat is None:
        return _called(conv, x, edge_index, inputs)
    _require_gateable(conv)
    require_columns(edge_index)
    _require_one_each("beta_hat", beta_hat, edge_index)
    if "edge_weight" in inspect.signature(conv.forward).parameters:
        weight = inputs.get("edge_weight")
        if weight is not None:
            _require_one_each("edge_weight", weight, edge_index)
        weight = beta_hat if weight is None else weight * beta_hat
        try:
            return _called(conv, x, edge_index, {**inputs, "edge_weight": weight})
        except AssertionError as error:  # all that FAConv says of a weight
            raise ValueError(
                f"conv: {type(conv).__name__} as it is made takes no edge_weight, expected one that takes beta_hat; "
                "make it with normalize=False"
            ) from error
    rows: Tensor = _called_scaled(conv, x, edge_index, beta_hat, inputs)
    return rows


@torch.compiler.disable  # type: ignore[untyped-decorator]  # no hook is called where messages are compiled
def _called_scaled(
    conv: MessagePassing, x: Tensor, edge_index: Tensor, beta_hat: Tensor, inputs: dict[str, Any]
) -> Tensor:
    with _messages_scaled(conv, edge_index, beta_hat):
        return _called(conv, x, edge_index, inputs)


def _called(conv: MessagePassing, x: Tensor, edge_index: Tensor, inputs: dict[str, Any]) -> Tensor:
    # Where the edges do not come second, as in PointNetConv or GCN2Conv, they are told by their name.
    rows: Tensor
    if "edge_index" in inspect.signature(conv.forward).parameters:
        rows = conv(x, edge_index=edge_index, **inputs)
    else:
        rows = conv(x, edge_index, **inputs)
    return rows


def _require_one_each(name: str, factors: Tensor, edge_index: Tensor) -> None:
    expected = [edge_index.shape[1]]
    found = list(factors.shape) if isinstance(factors, Tensor) else factors
    if found != expected:
        raise ValueError(f"{name}: found {found}, expected {expected}, one for each edge")


def _require_gateable(conv: MessagePassing) -> None:
    if not isinstance(conv, MessagePassing):
        raise TypeError(f"conv: found {type(conv).__name__}, expected a MessagePassing of PyTorch Geometric")
    if "edge_index_dict" in inspect.signature(conv.forward).parameters:
        raise ValueError(f"conv: found {type(conv).__name__} of nodes of several kinds, expected one of a single kind")
    if getattr(conv, "cached", False):
        raise ValueError(
            f"conv: found {type(conv).__name__} with cached=True, expected cached=False: "
            "the gate changes from one call to the next"
        )


@contextmanager
def _messages_scaled(conv: MessagePassing, edge_index: Tensor, beta_hat: Tensor) -> Iterator[None]:
    """Within it, the messages of ``conv`` along ``edge_index`` are multiplied by ``beta_hat``."""
    scaled = False

    def check(_: MessagePassing, inputs: tuple[Any, ...]) -> None:
        travelled = inputs[0]
        if travelled is not edge_index and not torch.equal(travelled, edge_index):
            mend = (
                "make it with add_self_loops=False" if getattr(conv, "add_self_loops", False) else "it cannot be gated"
            )
            raise ValueError(
                f"conv: {type(conv).__name__} sends messages along {travelled.shape[1]} edges that are not the "
                f"{edge_index.shape[1]} given ones, expected the same; {mend}"
            )

    def scale(_: MessagePassing, __: tuple[Any, ...], messages: Tensor) -> Tensor:
        nonlocal scaled
        scaled = True
        shape = [1] * messages.dim()
        shape[conv.node_dim] = -1
        return messages * beta_hat.view(shape)

    handles = (conv.register_propagate_forward_pre_hook(check), conv.register_message_forward_hook(scale))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
    if not scaled:
        raise ValueError(
            f"conv: {type(conv).__name__} made no message that a hook sees, expected one along each edge; "
            "let its propagate call message(), or give its forward an edge_weight"
        )
