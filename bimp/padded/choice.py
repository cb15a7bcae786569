"""When the functions of this package take the place of the plain ones."""

from __future__ import annotations

import torch

from bimp.adjacency import Adjacency
from bimp.row_norm import RowNorm


def written_out(adjacency: Adjacency, *norms: RowNorm) -> bool:
    """Whether a layer over ``adjacency`` with ``norms`` is taken by the functions of this package.

    They serve training on a padded batch, in one precision.
    """
    device = adjacency.edge_index.device.type
    return (
        adjacency.padding is not None
        and all(norm.fits_kernels and norm.training for norm in norms)
        and not (torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device))
    )
