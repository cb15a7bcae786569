"""A batch of graphs as a network takes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from bimp.adjacency import Adjacency
from bimp.edge_orders import EdgeOrders
from bimp.padding import Padding


@dataclass(frozen=True, kw_only=True)
class GraphBatch:
    """Several graphs laid side by side as one graph without edges between them.

    Attributes:
        x: node inputs, ``[nodes, node_dim]`` float, or ``[nodes]`` int64 where the task embeds them.
        edge_index: ``[2, edges]`` int64; row 0 the source u, row 1 the destination v; sorted by destination.
        edge_attr: edge inputs, ``[edges, edge_dim]`` float or ``[edges]`` int64; None where the task has none.
        y: labels: ``[graphs]``, ``[nodes]`` or ``[edges]`` as the task's kind says; float for a regression, else int64.
        batch: ``[nodes]`` int64, the graph of each node, ascending.
        ptr: ``[graphs + 1]`` int64; graph i owns the nodes ``ptr[i]`` to ``ptr[i + 1]``. Networks want one or more.
        pos_enc: Laplacian positional encodings, ``[nodes, k]`` float32, the eigenvector of the smallest eigenvalue
            first; None where the dataset was prepared without. A model that wants fewer takes the first columns.
        padding: what of a padded batch is real: its last graph is none, and ``y`` says nothing of that. None: all is.
        orders: of the edges, where they are known already; None: they are found when they are first asked for.
        most_nodes: no real graph has more; None: not looked up yet, which on an accelerator would wait for the device.
    """

    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None
    y: Tensor
    batch: Tensor
    ptr: Tensor
    pos_enc: Tensor | None = None
    padding: Padding | None = None
    orders: EdgeOrders | None = None
    most_nodes: int | None = None

    @property
    def num_graphs(self) -> int:
        """Number of real graphs."""
        return self.ptr.numel() - (1 if self.padding is None else 2)

    @property
    def num_nodes(self) -> int:
        return self.x.shape[0]

    @property
    def num_edges(self) -> int:
        return self.edge_index.shape[1]

    @cached_property
    def adjacency(self) -> Adjacency:
        """The edges in the orders in which the layers read them; found once a batch."""
        return Adjacency(self.edge_index, self.num_nodes, self.padding, self.orders)

    def to(self, device: torch.device | str) -> GraphBatch:
        """The same batch on ``device``; a GPU copies it while the host goes on."""
        device = torch.device(device)
        if self.x.device == device:
            return self
        assert self.padding is None, "batches are padded where they are used"

        def moved(tensor: Tensor) -> Tensor:
            on_its_way = tensor.pin_memory() if device.type == "cuda" and tensor.device.type == "cpu" else tensor
            # Nobody waits before main memory is read.
            return on_its_way.to(device, non_blocking=device.type != "cpu")

        return replace(
            self,
            x=moved(self.x),
            edge_index=moved(self.edge_index),
            edge_attr=None if self.edge_attr is None else moved(self.edge_attr),
            y=moved(self.y),
            batch=moved(self.batch),
            ptr=moved(self.ptr),
            pos_enc=None if self.pos_enc is None else moved(self.pos_enc),
            most_nodes=self.most_nodes or int(self.ptr.diff().max()),  # known here without waiting for the device
        )
