"""The measures of over-smoothing against closed forms and against plain loops over nodes."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bimp.config import ConfigError
from bimp.smoothing import (
    KERNEL_VARIANCE,
    dirichlet_energy,
    group_distance_ratio,
    instance_information_gain,
    mean_average_distance,
)


def one_graph(rows: list[list[float]]) -> tuple[Tensor, Tensor]:
    return torch.tensor(rows, dtype=torch.float64), torch.tensor([0, len(rows)])


@st.composite
def batches(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Inputs, rows, groups and ptr of one to three graphs, some nodes alike."""
    sizes = draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    nodes = sum(sizes)
    x = torch.tensor(generator.integers(-1, 2, size=(nodes, 3)), dtype=torch.float32)
    h = torch.tensor(generator.integers(-2, 3, size=(nodes, 4)) / 3, dtype=torch.float32)
    groups = torch.tensor(generator.integers(0, 3, size=nodes))
    return x, h, groups, torch.tensor([0, *np.cumsum(sizes)])


def entropy_bits(points: np.ndarray) -> float:
    """Bhattacharyya bound of a mixture of Gaussians around ``points``, term by term and with every constant."""
    count, dimensions = points.shape
    total = 0.0
    for one in points:
        density = 0.0
        for other in points:
            density += math.exp(-sum((one - other) ** 2) / (8 * KERNEL_VARIANCE)) / count
        total -= math.log(density) / count
    constant = dimensions / 2 + dimensions / 2 * math.log(2 * math.pi * KERNEL_VARIANCE)
    return (total + constant) / math.log(2)


def unit(row: np.ndarray) -> np.ndarray:
    length = math.sqrt(sum(row**2))
    return row / length if length else row


def kde_gain_by_loops(x: np.ndarray, h: np.ndarray) -> float:
    points = np.array([unit(row) for row in x])
    buckets: dict[int, list[int]] = {}
    for node, row in enumerate(h):
        buckets.setdefault(int(np.argmax(row)), []).append(node)
    within = sum(len(members) / len(x) * entropy_bits(points[members]) for members in buckets.values())
    return entropy_bits(points) - within


def graph_slices(ptr: Tensor) -> list[slice]:
    return [slice(int(start), int(end)) for start, end in pairwise(ptr)]


@given(batch=batches())
@settings(max_examples=60, deadline=None)
def test_kde_gain_is_that_of_plain_loops(batch: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
    x, h, _, ptr = batch
    expected = [kde_gain_by_loops(x[part].double().numpy(), h[part].double().numpy()) for part in graph_slices(ptr)]
    found = instance_information_gain(x, h, ptr)
    assert found.dtype == torch.float64
    assert found.tolist() == pytest.approx(expected, abs=1e-10)


def test_kde_gain_of_two_opposite_clusters_that_the_rows_tell_apart() -> None:
    """Inputs 2 apart: density 1 in the bucket, (1 + exp(-4/0.8)) / 2 overall, so the gain is 1 - log2(1 + e^-5)."""
    x, ptr = one_graph([[3.0, 0.0], [1.0, 0.0], [-2.0, 0.0], [-1.0, 0.0]])
    h = torch.tensor([[5.0, 0.0], [1.0, 0.5], [0.0, 1.0], [0.0, 2.0]])
    gain = instance_information_gain(x, h, ptr)
    assert gain.tolist() == pytest.approx([1 - math.log2(1 + math.exp(-5))])


def test_kde_gain_is_zero_where_rows_fall_into_one_bucket() -> None:
    x, ptr = one_graph([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    assert instance_information_gain(x, torch.ones(3, 2), ptr).tolist() == [0.0]


def gaussian_gain_by_hand(x: np.ndarray, h: np.ndarray, shrinkage: float) -> float:
    correlation = np.corrcoef(np.concatenate([x, h], axis=1), rowvar=False)
    shrunk = (1 - shrinkage) * correlation + shrinkage * np.eye(len(correlation))
    width = x.shape[1]
    determinants = [np.linalg.det(part) for part in (shrunk[:width, :width], shrunk[width:, width:], shrunk)]
    return 0.5 * math.log2(determinants[0] * determinants[1] / determinants[2])


def test_gaussian_gain_of_two_columns_is_that_of_their_correlation() -> None:
    """x = -1, -1, 1, 1 and h = -1, 1, 1, 1 have correlation 1/sqrt(3): -log2(1 - 1/3) / 2 bits."""
    x, ptr = one_graph([[-1.0], [-1.0], [1.0], [1.0]])
    h = torch.tensor([[-1.0], [1.0], [1.0], [1.0]])
    found = instance_information_gain(x, h, ptr, "gaussian", shrinkage=0.0)
    assert found.tolist() == pytest.approx([-math.log2(2 / 3) / 2])


def test_gaussian_gain_is_that_of_determinants_for_each_graph_alone() -> None:
    generator = np.random.default_rng(5)
    x, h = generator.normal(size=(40, 2)), generator.normal(size=(40, 3))
    h[:, 0] += 2 * x[:, 0]
    parts = (slice(0, 15), slice(15, 40))
    expected = [gaussian_gain_by_hand(x[part], h[part], 0.2) for part in parts]
    arguments = (torch.tensor(x), torch.tensor(h), torch.tensor([0, 15, 40]))
    assert instance_information_gain(*arguments, "gaussian", shrinkage=0.2).tolist() == pytest.approx(expected)


def test_gaussian_gain_estimates_its_shrinkage() -> None:
    """The variance of each correlation, pair by pair and node by node."""
    generator = np.random.default_rng(6)
    x, h = generator.normal(size=(12, 2)), generator.normal(size=(12, 3))
    h[:, 0] += 2 * x[:, 0]
    values = np.concatenate([x, h], axis=1)
    z = (values - values.mean(axis=0)) / values.std(axis=0)
    variances, squares = 0.0, 0.0
    for one, other in product(range(5), range(5)):
        if one != other:
            products = z[:, one] * z[:, other]
            variances += 12 / 11**3 * sum((products - products.mean()) ** 2)
            squares += products.mean() ** 2
    expected = gaussian_gain_by_hand(x, h, variances / squares)
    found = instance_information_gain(torch.tensor(x), torch.tensor(h), torch.tensor([0, 12]), "gaussian")
    assert found.tolist() == pytest.approx([expected])


def test_gaussian_gain_ignores_scale_and_constant_columns() -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(30, 2, generator=generator, dtype=torch.float64)
    h = torch.cat([x[:, :1] + torch.randn(30, 1, generator=generator, dtype=torch.float64), x[:, 1:]], dim=1)
    ptr = torch.tensor([0, 30])
    plain = instance_information_gain(x, h, ptr, "gaussian", shrinkage=0.1)
    wider = torch.cat([torch.full((30, 1), 0.3), h * 1000, torch.zeros(30, 1)], dim=1)
    assert instance_information_gain(x, wider, ptr, "gaussian", shrinkage=0.1).tolist() == pytest.approx(plain.tolist())
    constant = torch.full((30, 4), 0.1)
    assert instance_information_gain(x, constant, ptr, "gaussian").tolist() == pytest.approx([0.0])


def test_gaussian_gain_is_finite_with_more_columns_than_nodes() -> None:
    generator = torch.Generator().manual_seed(2)
    x, h = torch.randn(9, 3, generator=generator), torch.randn(9, 40, generator=generator)
    gains = instance_information_gain(x, h, torch.tensor([0, 1, 3, 9]), "gaussian")
    assert torch.isfinite(gains).all()
    assert gains[:2].tolist() == [0.0, 0.0]


def test_gaussian_gain_of_one_hot_inputs_is_finite() -> None:
    """Columns (z, -z) against z with all correlations +-c, c = 1 - 0.001: from the determinants of 2 x 2 and 3 x 3."""
    x, ptr = one_graph([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    c = 0.999
    expected = 0.5 * math.log2((1 - c**2) / (1 - 3 * c**2 + 2 * c**3))
    assert instance_information_gain(x, x[:, :1], ptr, "gaussian").tolist() == pytest.approx([expected])


def ratio_by_loops(h: np.ndarray, groups: list[int]) -> float:
    names = sorted(set(groups))
    if len(names) < 2:
        return math.nan
    means = {}
    for one, other in product(names, names):
        pairs = [(u, v) for u in range(len(h)) for v in range(len(h)) if (groups[u], groups[v]) == (one, other)]
        means[one, other] = sum(math.dist(h[u], h[v]) for u, v in pairs) / len(pairs)
    within = sum(means[name, name] for name in names) / len(names)
    across = sum(value for pair, value in means.items() if pair[0] != pair[1]) / (len(names) * (len(names) - 1))
    if within == 0:
        return 1.0 if across == 0 else math.inf
    return across / within


@given(batch=batches())
@settings(max_examples=60, deadline=None)
def test_group_distance_ratio_is_that_of_plain_loops(batch: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
    _, h, groups, ptr = batch
    expected = [ratio_by_loops(h[part].double().numpy(), groups[part].tolist()) for part in graph_slices(ptr)]
    assert group_distance_ratio(h, groups, ptr).tolist() == pytest.approx(expected, nan_ok=True)


def test_an_estimator_that_is_none_is_refused() -> None:
    h, ptr = one_graph([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ConfigError, match=r"^estimator: found 'KDE', expected one of kde, gaussian$"):
        instance_information_gain(h, h, ptr, "KDE")  # type: ignore[arg-type]


def test_group_distance_ratio_by_hand() -> None:
    """On a line: groups {0, 2} and {10}: within (1 + 0)/2, across (10 + 8)/2 = 9, so 18."""
    h, ptr = one_graph([[0.0], [2.0], [10.0]])
    assert group_distance_ratio(h, torch.tensor([0, 0, 1]), ptr).tolist() == [18.0]
    assert group_distance_ratio(torch.ones(3, 2), torch.tensor([0, 0, 1]), ptr).tolist() == [1.0]


def test_dirichlet_energy_by_hand_and_of_equal_rows() -> None:
    """Graph 1: edge 0-1 both ways, |(3, 4)|^2 = 25 twice over 2 nodes. Graph 2: one edge, 4 over 3 nodes."""
    h = torch.tensor([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0], [1.0, 3.0], [9.0, 9.0]])
    edge_index = torch.tensor([[1, 0, 2], [0, 1, 3]])
    ptr = torch.tensor([0, 2, 5])
    assert dirichlet_energy(h, edge_index, ptr).tolist() == pytest.approx([25.0, 4 / 3])
    assert dirichlet_energy(torch.full((5, 3), 0.1), edge_index, ptr).tolist() == [0.0, 0.0]


def average_distance_by_loops(h: np.ndarray) -> float:
    averages = []
    for u, v_row in enumerate(h):
        distances = []
        for v, other in enumerate(h):
            lengths = math.sqrt(sum(v_row**2)) * math.sqrt(sum(other**2))
            both_zero = not v_row.any() and not other.any()
            distance = 0.0 if both_zero or u == v else 1 - (sum(v_row * other) / lengths if lengths else 0.0)
            if distance > 1e-9:
                distances.append(distance)
        if distances:
            averages.append(sum(distances) / len(distances))
    return sum(averages) / len(averages) if averages else 0.0


@given(batch=batches())
@settings(max_examples=60, deadline=None)
def test_mean_average_distance_is_that_of_plain_loops(batch: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
    _, h, _, ptr = batch
    expected = [average_distance_by_loops(h[part].double().numpy()) for part in graph_slices(ptr)]
    assert mean_average_distance(h, ptr).tolist() == pytest.approx(expected, abs=1e-12)


def test_mean_average_distance_by_hand() -> None:
    """Directions 0, 0, 90 degrees: the first two are 1 away from the third alone, the third 1 from both."""
    h, ptr = one_graph([[1.0, 0.0], [7.0, 0.0], [0.0, 0.3]])
    assert mean_average_distance(h, ptr).tolist() == pytest.approx([1.0])
    opposite, ptr = one_graph([[1.0, 1.0], [-2.0, -2.0]])
    assert mean_average_distance(opposite, ptr).tolist() == pytest.approx([2.0])
    same_way = torch.tensor([[0.25, 0.75], [0.5, 1.5]])
    assert mean_average_distance(same_way, ptr).tolist() == [0.0]


def test_mean_average_distance_takes_directions_that_rounding_parted_for_one() -> None:
    """Two nodes differ in the last bit of single precision: each is 1 from the third alone, as that is from both."""
    h, ptr = one_graph([[1.0, 1.0], [1.0, 1.0], [1.0, -1.0]])
    rounded = h.float()
    rounded[1, 1] = torch.nextafter(rounded[1, 1], torch.tensor(2.0))
    assert mean_average_distance(rounded, ptr).tolist() == pytest.approx([1.0], abs=1e-6)
