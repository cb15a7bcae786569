from pathlib import Path

import numpy as np
import pytest
import torch

from bimp.data import DataError, PreparedDataset, prepare
from bimp.data.cluster import block_model_graph


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> PreparedDataset:
    return prepare("cluster", tmp_path_factory.mktemp("data"), seed=7, size=600)


def test_statistics_are_the_published_ones_within_sampling_error(cluster: PreparedDataset) -> None:
    statistics = cluster.statistics
    assert statistics.graphs == 720
    # Four standard errors over 720 graphs.
    nodes, edges = cluster.graphs.node_counts.double(), cluster.graphs.edge_counts.double()
    assert abs(statistics.mean_nodes - 117.20) < 4 * nodes.std().item() / 720**0.5
    assert abs(statistics.mean_edges - 4301.72) < 4 * edges.std().item() / 720**0.5
    assert nodes.std().item() == pytest.approx(21.2, rel=0.1)  # sqrt(6 * (30^2 - 1) / 12)


def test_edges_are_symmetric_and_as_frequent_as_published(cluster: PreparedDataset) -> None:
    batch = cluster.graphs.gather(torch.arange(720))
    source, destination = batch.edge_index
    forward = (source * batch.num_nodes + destination).sort().values
    backward = (destination * batch.num_nodes + source).sort().values
    assert torch.equal(forward, backward)
    assert not (source == destination).any()
    assert forward.unique().numel() == forward.numel()

    sizes = torch.stack([(batch.y == community) for community in range(6)]).double()
    of_graph = torch.zeros(720, 6, dtype=torch.float64).index_add_(0, batch.batch, sizes.t())
    pairs_inside = (of_graph * (of_graph - 1)).sum().item()
    total = of_graph.sum(dim=1)
    pairs_across = (total * (total - 1)).sum().item() - pairs_inside
    inside = (batch.y[source] == batch.y[destination]).sum().item()
    # The standard error is below 0.001 in both.
    assert inside / pairs_inside == pytest.approx(0.55, abs=0.004)
    assert (batch.num_edges - inside) / pairs_across == pytest.approx(0.25, abs=0.004)
    assert (of_graph.min().item(), of_graph.max().item()) == (5, 34)


def test_one_node_of_each_community_is_labelled(cluster: PreparedDataset) -> None:
    batch = cluster.graphs.gather(torch.arange(720))
    assert batch.x.dtype == batch.y.dtype == torch.int64
    for community in range(6):
        marked = batch.x == community + 1
        assert batch.batch[marked].tolist() == list(range(720))
        assert (batch.y[marked] == community).all()
    assert (batch.x > 0).sum() == 6 * 720


def test_the_labelled_node_is_any_node_of_its_community() -> None:
    rng = np.random.default_rng(5)
    places = []
    for _ in range(400):
        x, _, community = block_model_graph(rng)
        members = np.flatnonzero(community == 2)
        places.append(np.flatnonzero(x[members])[0] / (members.size - 1))
    # Uniform on 0..1: mean 1/2, the standard error is about 0.31 / 20.
    assert np.mean(places) == pytest.approx(0.5, abs=0.06)


def test_splits(cluster: PreparedDataset) -> None:
    assert [cluster.split(name).indices.tolist() for name in ("train", "val", "test")] == [
        list(range(600)),
        list(range(600, 660)),
        list(range(660, 720)),
    ]
    assert cluster.parameters == {"seed": 7, "size": 600}


def test_seed_and_size_name_the_data(tmp_path: Path) -> None:
    first = prepare("cluster", tmp_path / "a", seed=1, size=20)
    same = prepare("cluster", tmp_path / "b", seed=1, size=20)
    other = prepare("cluster", tmp_path / "c", seed=2, size=20)
    larger = prepare("cluster", tmp_path / "d", seed=1, size=40)
    assert first.fingerprint == same.fingerprint
    assert len({first.fingerprint, other.fingerprint, larger.fingerprint}) == 3
    # A smaller dataset is the beginning of a larger one.
    for name in ("train", "val", "test"):
        few, many = first.split(name), larger.split(name)
        beginning = many.graphs.gather(many.indices[: len(few)])
        assert torch.equal(few.graphs.gather(few.indices).edge_index, beginning.edge_index)


@pytest.mark.parametrize(("seed", "size", "named"), [(-1, None, "seed=-1"), (None, 0, "size=0")])
def test_impossible_parameters_are_named(tmp_path: Path, seed: int | None, size: int | None, named: str) -> None:
    with pytest.raises(DataError, match=named):
        prepare("cluster", tmp_path, seed=seed, size=size)
    assert not (tmp_path / "cluster").exists()
