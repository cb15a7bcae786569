"""Batches that are gathered several at a time against each of them gathered by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from drawn_graphs import DATASETS, drawn, seeds_of, trial
from hypothesis import given, settings
from hypothesis import strategies as st
from tape import TapedSteps
from taped_runs import assert_same, frozen, plainly, results_of
from torch import Tensor

from bimp.adjacency import Adjacency
from bimp.data import PackedGraphs
from bimp.device.ahead import BatchesAhead
from bimp.device.resident import GatheredRows, ResidentGraphs
from bimp.device.shapes import Shape
from bimp.edge_orders import EdgeOrders
from bimp.gated_runs import GatedRuns, Runs
from bimp.padding import Padding, RealRows
from bimp.stack.together import fit_together

CPU = torch.device("cpu")


def size_around(graphs: PackedGraphs, picks: Tensor, spare: int) -> Shape:
    """Room for the batches ``[steps, runs, graphs]``, and some more."""
    nodes, edges = (int(counts[picks].sum(-1).max()) for counts in (graphs.node_counts, graphs.edge_counts))
    return Shape(picks.shape[-1], nodes + 1 + spare, edges + spare)


def assert_same_rows(found: GatheredRows, expected: GatheredRows) -> None:
    for name, value in vars(expected).items():
        if isinstance(value, Tensor):
            torch.testing.assert_close(getattr(found, name), value, rtol=0, atol=0)
        elif name != "orders":
            assert getattr(found, name) is value


def assert_same_runs(found: Runs, expected: Runs) -> None:
    assert torch.equal(found.picks, expected.picks)
    assert torch.equal(found.starts, expected.starts)
    assert found.skipped == expected.skipped


def assert_orders_of(found: EdgeOrders, edge_index: Tensor, nodes: int) -> None:
    alone = Adjacency(edge_index, nodes)
    for name in ("starts", "by_source", "source_starts", "destination_by_source"):
        assert torch.equal(getattr(found, name), getattr(alone, name)), name


@settings(max_examples=60, deadline=None)
@given(
    dataset=st.sampled_from(DATASETS),
    steps=st.integers(1, 7),
    runs=st.integers(1, 3),
    graphs=st.integers(1, 5),
    spare=st.integers(0, 9),
    most=st.integers(1, 8),
    seed=st.integers(0, 9),
)
def test_each_step_takes_its_own(
    dataset: str, steps: int, runs: int, graphs: int, spare: int, most: int, seed: int
) -> None:
    packed = drawn(dataset, 20, encodings=2).graphs
    generator = torch.Generator().manual_seed(seed)
    picks = torch.randint(20, (steps, runs, graphs), generator=generator)
    size, resident = size_around(packed, picks, spare), ResidentGraphs.of(packed, CPU)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bimp.device.ahead.MOST_STEPS", most)
        ahead = BatchesAhead(resident, size, runs, has_gated_runs=runs == 1)
    ahead.begin(list(picks.flip(0)))
    ahead.advance()
    ahead.take()  # an epoch that is broken off after its first step
    ahead.begin(list(picks))
    for of_step in picks:
        ahead.advance()
        found, expected = ahead.take(), resident.gather_rows(of_step, size, padded=True)
        assert_same_rows(found, expected)
        first_node = torch.arange(0, runs * size.nodes, size.nodes).unsqueeze(1)
        joined = (expected.edge_index + first_node).view(2, -1)
        assert found.orders is not None
        assert_orders_of(found.orders, joined, runs * size.nodes)
        assert (found.orders.gated_runs is None) == (runs > 1)
        if found.orders.gated_runs is not None:
            mask = expected.real_edges.view(-1)
            alone = GatedRuns.of(joined, found.orders.starts, mask)
            for name in ("to_edges", "to_destinations", "to_nodes"):
                assert_same_runs(getattr(found.orders.gated_runs, name), getattr(alone, name))
            assert torch.equal(found.orders.gated_runs.at_destinations, alone.at_destinations)


def test_large_batches_are_gathered_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    resident = ResidentGraphs.of(drawn("zinc", 20).graphs, CPU)
    monkeypatch.setattr("bimp.device.ahead.MOST_ROWS", 100)
    gathered: list[int] = []
    gather_rows = ResidentGraphs.gather_rows

    def counted(resident: ResidentGraphs, indices: Tensor, shape: Shape, *, padded: bool) -> GatheredRows:
        gathered.append(len(indices))
        return gather_rows(resident, indices, shape, padded=padded)

    monkeypatch.setattr(ResidentGraphs, "gather_rows", counted)
    for size, runs, expected in (
        (Shape(1, 20, 5), 1, [4, 1]),
        (Shape(1, 20, 5), 2, [4, 4, 2]),
        (Shape(1, 60, 80), 1, [1] * 5),
    ):
        gathered.clear()
        ahead = BatchesAhead(resident, size, runs, has_gated_runs=False)
        ahead.begin([torch.zeros(runs, 1, dtype=torch.int64)] * 5)
        for _ in range(5):
            ahead.advance()
        assert gathered == expected


def test_orders_by_hand() -> None:
    # 0 -> 1, 2 -> 1, 1 -> 2; the last edge is padding, of node 3.
    edge_index = torch.tensor([[0, 2, 1, 3], [1, 1, 2, 3]])
    real = torch.tensor([True, True, True, False])
    orders = EdgeOrders.of(edge_index, 4, real)
    assert orders.starts.tolist() == [0, 0, 2, 3, 4]
    assert orders.by_source.tolist() == [0, 2, 1, 3]
    assert orders.source_starts.tolist() == [0, 1, 2, 3, 4]
    assert orders.destination_by_source.tolist() == [1, 2, 1, 3]
    runs = orders.gated_runs
    assert runs is not None
    # Four rows a node: what it adds to edges out of it and into it, what it sends, what it keeps. 15 stands for none.
    assert runs.to_edges.picks.tolist() == [0, 5, 8, 5, 4, 9, 15, 15, 2, 10, 6, 15]
    assert runs.to_edges.starts.tolist() == [0, 2, 4, 6, 8, 9, 10, 11, 12]
    assert runs.to_edges.skipped == 15
    assert runs.to_destinations.picks.tolist() == list(range(8))
    assert runs.to_destinations.starts.tolist() == [0, 0, 2, 3, 4, 4, 6, 7, 8]
    assert runs.at_destinations.tolist() == [1, 1, 2, 3, 5, 5, 6, 7]
    # Of node 0: edge 0 out, none in, edge 0 of the second half, its own row; and so on.
    assert runs.to_nodes.picks.tolist() == [0, 4, 8, 2, 0, 1, 6, 9, 1, 2, 5, 10, 3, 3, 7, 11]
    assert runs.to_nodes.starts.tolist() == [0, 1, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]


def test_an_adjacency_takes_orders_that_it_is_given() -> None:
    edge_index, real = torch.tensor([[0, 2, 1, 3], [1, 1, 2, 3]]), torch.tensor([True, True, True, False])
    orders = EdgeOrders.of(edge_index, 4, real)
    padding = Padding(RealRows(torch.tensor([True, True, True, False])), RealRows(real))
    adjacency = Adjacency(edge_index, 4, padding, orders)
    for name in ("starts", "by_source", "source_starts", "destination_by_source", "gated_runs"):
        assert getattr(adjacency, name) is getattr(orders, name)
    assert adjacency.in_degree.tolist() == [0, 2, 1, 1]
    assert adjacency.out_degree.tolist() == [1, 1, 1, 1]
    without = replace(adjacency, orders=replace(orders, gated_runs=None))
    assert torch.equal(without.gated_runs.to_nodes.picks, adjacency.gated_runs.to_nodes.picks)


@pytest.mark.parametrize("backbone", ["graphsage", "gated_gcn"])
@pytest.mark.parametrize("most", [1, 2])
def test_training_equals_the_plain_one_where_an_epoch_is_gathered_in_several_goes(
    on_device: list[TapedSteps], monkeypatch: pytest.MonkeyPatch, backbone: str, most: int
) -> None:
    monkeypatch.setattr("bimp.device.ahead.MOST_STEPS", most)
    config = trial("zinc", backbone, model={"pos_enc_dim": 2}, max_epochs=3)
    train, validation = drawn("zinc", 33, encodings=2), drawn("zinc", 22, seed=1, encodings=2)
    assert_same(results_of(config, train, validation), plainly(config, train, validation))


def test_so_it_does_for_seeds_together(on_device: list[TapedSteps], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bimp.device.ahead.MOST_STEPS", 2)
    runs = seeds_of(trial("digits", "gated_gcn", max_epochs=2), (23, 23))
    found = [[], []]
    for of_epoch in fit_together(runs):
        for number, result in of_epoch.items():
            found[number].append(frozen(result))
    for ours, run in zip(found, runs, strict=True):
        assert_same(ours, plainly(run.config, run.train, run.validation))
