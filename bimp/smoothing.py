"""How far the rows of a graph's nodes have become alike: four measures, one value a graph, in float64.

Every function takes the rows of a whole batch, graph after graph (``ptr`` says where each begins), and treats all
graphs at once as tensors padded to the largest: memory grows with graphs x most nodes squared.

- instance information gain: Zhou et al. 2020, https://arxiv.org/abs/2006.06972 (equation 12 of the paper)
- group distance ratio: the same
- Dirichlet energy: Rusch et al. 2023, https://arxiv.org/abs/2303.10993
- mean average distance: Chen et al. 2020, https://arxiv.org/abs/1909.03211
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from bimp.config.requirements import require_choice

Estimator = Literal["kde", "gaussian"]

KERNEL_VARIANCE = 0.1
"""Of the Gaussians around the unit rows of the inputs in the ``kde`` estimate."""

LEAST_SHRINKAGE = 1e-3
"""Of an estimate: one-hot columns depend on each other, and would leave a determinant of 0."""

_SAME_DIRECTION = 1e-12
"""Half the squared distance of unit rows below which they may differ by the rounding of a network alone.

In single precision equal rows leave 16 layers up to 2e-13 apart, where neighbours were added in another order.
"""


def instance_information_gain(
    x: Tensor, h: Tensor, ptr: Tensor, estimator: Estimator = "kde", *, shrinkage: float | None = None
) -> Tensor:
    """Mutual information of a node's inputs x and its row h, over the nodes of each graph.

    ``kde``: nodes are put into buckets by the place of their row's largest value; the gain is the entropy of x less
    the mean entropy within the buckets. Entropies are lower bounds (Kolchinsky and Tracey 2017, Bhattacharyya) of a
    mixture of Gaussians of variance :data:`KERNEL_VARIANCE` around the inputs, scaled to length 1.

    ``gaussian``: x and h as jointly Gaussian, from the log-determinants of their correlations, which are shrunk
    towards those of independent columns. Columns that are constant in a graph tell nothing and change nothing. With as
    many columns as nodes or more the value leans on the shrinkage: compare it between rows of similar width only.

    Args:
        x: node inputs, ``[nodes, node_dim]``; classes as one-hot rows.
        h: rows of a layer, ``[nodes, row_dim]``.
        ptr: ``[graphs + 1]``; graph i owns the rows ``ptr[i]`` to ``ptr[i + 1]``.
        estimator: ``kde`` or ``gaussian``.
        shrinkage: of ``gaussian``, from 0 (none) to 1; None: estimated for each graph (Schaefer and Strimmer 2005), at
            least :data:`LEAST_SHRINKAGE`; a graph of one or two nodes, which supports no estimate, then gains 0.

    Returns:
        ``[graphs]``, in bits.

    Raises:
        ConfigError: an estimator that there is not.
    """
    require_choice("estimator", estimator, get_args(Estimator))
    if estimator == "kde":
        return _kde_gain(x, h, ptr)
    return _gaussian_gain(x, h, ptr, shrinkage)


def group_distance_ratio(h: Tensor, groups: Tensor, ptr: Tensor) -> Tensor:
    """Mean distance between nodes of different groups over that within groups: 1 where groups cannot be told apart.

    Pairs are averaged within each pair of groups first, then over the pairs of groups (both as plain means), so that a
    large group weighs as much as a small one.

    Args:
        h: rows of a layer, ``[nodes, row_dim]``.
        groups: ``[nodes]`` int64, the class of each node.
        ptr: ``[graphs + 1]``.

    Returns:
        ``[graphs]``; NaN where a graph has fewer than two groups, infinite where only the groups are apart.
    """
    rows, mask = _padded(h, ptr)
    classes = F.one_hot(groups).double()
    members, _ = _padded(classes, ptr)
    sizes = members.sum(dim=1)
    shares = members / sizes.clamp(min=1).unsqueeze(1)
    distances = _distances(rows) * _pairs(mask)
    between = shares.transpose(1, 2) @ distances @ shares
    present = sizes > 0
    count = present.sum(dim=1)
    within_sum = between.diagonal(dim1=1, dim2=2).sum(dim=1)
    across = (between.sum(dim=(1, 2)) - within_sum) / (count * (count - 1))
    within = within_sum / count
    ratio = torch.where((across == 0) & (within == 0), torch.ones_like(across), across / within)
    return torch.where(count >= 2, ratio, torch.full_like(ratio, math.nan))


def dirichlet_energy(h: Tensor, edge_index: Tensor, ptr: Tensor) -> Tensor:
    """Sum of ``|h_u - h_v|^2`` over the directed edges of a graph, by its number of nodes: 0 where neighbours agree.

    It grows with the square of the rows' scale.

    Args:
        h: rows of a layer, ``[nodes, row_dim]``.
        edge_index: ``[2, edges]``, sources and destinations.
        ptr: ``[graphs + 1]``.

    Returns:
        ``[graphs]``.
    """
    rows, _ = _padded(h, ptr)
    counts = ptr.diff()
    graph = _graph_of_node(ptr)[edge_index[1]]
    source, destination = edge_index - ptr[graph]
    # Gathering two rows for every edge takes six times as long as every distance of a dense graph.
    squares = _distances(rows)[graph, source, destination].square()
    sums = squares.new_zeros(counts.numel()).index_add(0, graph, squares)
    return sums / counts


def mean_average_distance(h: Tensor, ptr: Tensor) -> Tensor:
    """Mean cosine distance of a node to all nodes in another direction, over the nodes that have such: 0 to 2.

    0 where all rows point the same way, but for a network's rounding in single precision: what is nearer than 1e-12
    counts as the same direction. A row of zeros is at distance 1 of every other row.

    Args:
        h: rows of a layer, ``[nodes, row_dim]``.
        ptr: ``[graphs + 1]``.

    Returns:
        ``[graphs]``.
    """
    rows, mask = _padded(h, ptr)
    is_zero = ~rows.any(dim=2)
    # Of unit rows 1 - cos is half the squared distance, which is exactly 0 for equal rows.
    distances = _distances(_unit(rows)).square() / 2
    distances = torch.where(is_zero.unsqueeze(1) ^ is_zero.unsqueeze(2), torch.ones_like(distances), distances)
    apart = _pairs(mask) & (distances > _SAME_DIRECTION)
    others = apart.sum(dim=2)
    averages = (distances * apart).sum(dim=2) / others.clamp(min=1)
    return averages.sum(dim=1) / (others > 0).sum(dim=1).clamp(min=1)


def _kde_gain(x: Tensor, h: Tensor, ptr: Tensor) -> Tensor:
    inputs, mask = _padded(x, ptr)
    buckets, _ = _padded(h.argmax(dim=1, keepdim=True), ptr)
    pairs = _pairs(mask)
    kernel = torch.exp(_distances(_unit(inputs)).square() / (-8 * KERNEL_VARIANCE)) * pairs
    together = pairs & (buckets == buckets.transpose(1, 2))
    # Every constant of the entropies cancels in their difference; a padded node counts as log 1.
    within = (kernel * together).sum(dim=2) / together.sum(dim=2).clamp(min=1)
    overall = kernel.sum(dim=2) / ptr.diff().unsqueeze(1)
    gains = torch.where(mask, within, 1.0).log2() - torch.where(mask, overall, 1.0).log2()
    return gains.sum(dim=1) / ptr.diff()


def _gaussian_gain(x: Tensor, h: Tensor, ptr: Tensor, shrinkage: float | None) -> Tensor:
    values, mask = _padded(torch.cat([x.double(), h.double()], dim=1), ptr)
    nodes = ptr.diff().double().view(-1, 1, 1)
    centred = (values - values.sum(dim=1, keepdim=True) / nodes) * mask.unsqueeze(2)
    std = (centred.square().sum(dim=1, keepdim=True) / nodes).sqrt()
    varies = std > 1e-12 * values.abs().amax(dim=1, keepdim=True)
    z = torch.where(varies, centred / torch.where(varies, std, 1.0), 0.0)
    correlation = z.transpose(1, 2) @ z / nodes
    correlation.diagonal(dim1=1, dim2=2).zero_()
    intensity = _best_shrinkage(z, correlation, nodes) if shrinkage is None else nodes.new_full((), shrinkage)
    shrunk = correlation * (1 - intensity)
    shrunk.diagonal(dim1=1, dim2=2).fill_(1.0)
    width = x.shape[1]
    parts = (shrunk[:, :width, :width], shrunk[:, width:, width:], shrunk)
    of_x, of_h, of_both = (torch.linalg.slogdet(part).logabsdet for part in parts)
    gains: Tensor = (of_x + of_h - of_both) / (2 * math.log(2))
    return gains


def _best_shrinkage(z: Tensor, correlation: Tensor, nodes: Tensor) -> Tensor:
    """Estimated variance of the off-diagonal correlations by their size, ``[graphs, 1, 1]``."""
    squares = correlation.square().sum(dim=(1, 2), keepdim=True)
    fourth = z.square().sum(dim=2, keepdim=True).square() - z.pow(4).sum(dim=2, keepdim=True)
    scatter = fourth.sum(dim=1, keepdim=True) - nodes * squares
    variance = scatter * nodes / (nodes - 1).clamp(min=1).pow(3)
    estimable = (squares > 0) & (nodes > 2)
    estimate = (variance / torch.where(estimable, squares, 1.0)).clamp(LEAST_SHRINKAGE, 1.0)
    return torch.where(estimable, estimate, 1.0)


def _padded(rows: Tensor, ptr: Tensor) -> tuple[Tensor, Tensor]:
    """``[graphs, most nodes, columns]`` in float64, zero behind each graph's end, and where there is a node."""
    counts = ptr.diff()
    graph = _graph_of_node(ptr)
    place = torch.arange(rows.shape[0], device=rows.device) - ptr[graph]
    most = int(counts.max()) if counts.numel() else 0
    dense = torch.zeros((counts.numel(), most, rows.shape[1]), dtype=torch.float64, device=rows.device)
    dense[graph, place] = rows.double()
    return dense, torch.arange(most, device=rows.device) < counts.unsqueeze(1)


def _graph_of_node(ptr: Tensor) -> Tensor:
    return torch.arange(ptr.numel() - 1, device=ptr.device).repeat_interleave(ptr.diff())


def _pairs(mask: Tensor) -> Tensor:
    return mask.unsqueeze(1) & mask.unsqueeze(2)


def _unit(rows: Tensor) -> Tensor:
    length = rows.norm(dim=-1, keepdim=True)
    return rows / torch.where(length > 0, length, 1.0)


def _distances(rows: Tensor) -> Tensor:
    # Through products of rows, the faster way, equal rows would come out about 1e-8 apart.
    return torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
