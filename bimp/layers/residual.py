"""The end of a layer: normalisation, activation and the residual connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from bimp.adjacency import Adjacency
from bimp.kernels.choice import kernels_serve
from bimp.kernels.row_update import Activation, update_rows
from bimp.padded.choice import written_out
from bimp.padded.normalisation import update_real_rows
from bimp.row_norm import RowNorm

ACTIVATIONS: Mapping[Activation, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "elu": F.elu,
    "none": lambda rows: rows,
}


def next_rows(before: Tensor, rows: Tensor, norm: RowNorm, activation: Activation, adjacency: Adjacency) -> Tensor:
    """``before + activation(norm(rows))`` where both are equally wide, else ``activation(norm(rows))``.

    Args:
        before: ``[rows, row_dim]``, the rows that entered the layer.
        rows: ``[rows, out_dim]``, what the layer made of them.
        norm: batch normalisation of ``rows``.
        activation: entry by entry.
        adjacency: which of the nodes are real.
    """
    real = adjacency.real_nodes
    added = before if before.shape == rows.shape else None
    if real is None and norm.fits_kernels and kernels_serve(before, rows, norm.weight):
        return update_rows(added, rows, norm, activation)
    if real is not None and written_out(adjacency, norm):
        return update_real_rows(added, rows, norm, activation, real)
    return add_residual(before, ACTIVATIONS[activation](norm(rows, real)))


def add_residual(before: Tensor, after: Tensor) -> Tensor:
    """The rows before a layer plus those after it where they are equally wide, else the rows after it."""
    return before + after if before.shape[1] == after.shape[1] else after
