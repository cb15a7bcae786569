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
from bimp.config import BACKBONES, Backbone
from bimp.data import PackedGraphs
from bimp.device.ahead import FEWEST_SHARING, BatchesAhead
from bimp.device.capture import Capture, State, Step
from bimp.device.resident import GatheredRows, ResidentGraphs
from bimp.device.shapes import Shape
from bimp.edge_orders import EdgeOrders
from bimp.edge_weights import EdgeWeights
from bimp.gated_runs import GatedRuns, Runs
from bimp.padding import Padding, RealRows, RowShares
from bimp.semantics import Semantics
from bimp.stack.parts import Parts
from bimp.stack.together import fit_together

CPU = torch.device("cpu")


def size_around(graphs: PackedGraphs, picks: Tensor, spare: int) -> Shape:
    """Room for the batches ``[steps, runs, graphs]``, and some more."""
    nodes, edges = (int(counts[picks].sum(-1).max()) for counts in (graphs.node_counts, graphs.edge_counts))
    return Shape(picks.shape[-1], nodes + 1 + spare, edges + spare)


FOUND_AHEAD = ("orders", "node_shares", "edge_shares")


def assert_same_rows(found: GatheredRows, expected: GatheredRows, with_shares: bool) -> None:
    for name, value in vars(expected).items():
        if isinstance(value, Tensor):
            torch.testing.assert_close(getattr(found, name), value, rtol=0, atol=0)
        elif name not in FOUND_AHEAD:
            assert getattr(found, name) is value
    for shares, real in ((found.node_shares, expected.real_nodes), (found.edge_shares, expected.real_edges)):
        assert (shares is not None) == with_shares
        if shares is None:
            continue
        for of_run, mask in zip(shares.ones_and_shares, real, strict=True):
            count = int(mask.sum())
            assert of_run[0].tolist() == mask.tolist()
            assert of_run[1].tolist() == [1 / count if is_real else 0 for is_real in mask.tolist()]
        assert shares.unbiased.shape == (len(real), 1)


def assert_same_runs(found: Runs, expected: Runs) -> None:
    assert torch.equal(found.picks, expected.picks)
    assert torch.equal(found.starts, expected.starts)
    assert found.skipped == expected.skipped


def assert_orders_of(found: EdgeOrders, edge_index: Tensor, nodes: int) -> None:
    alone = Adjacency(edge_index, nodes)
    for name in ("starts", "by_source", "source_starts", "destination_by_source"):
        assert torch.equal(getattr(found, name), getattr(alone, name)), name


def assert_weights_of(found: EdgeWeights, edge_index: Tensor, nodes: int, orders: EdgeOrders) -> None:
    alone = Adjacency(edge_index, nodes, orders=replace(orders, weights=None))
    shares, (normalised, row_sums) = alone.shares(found.dtype), alone.normalised(found.dtype)
    assert torch.equal(found.shares, shares)
    assert torch.equal(found.shares_by_source, shares[alone.by_source])
    assert torch.equal(found.normalised, normalised)
    assert torch.equal(found.normalised_by_source, normalised[alone.by_source])
    assert torch.equal(found.row_sums, row_sums)
    assert torch.equal(found.inverse_roots, alone.inverse_roots(found.dtype))
    # Without known orders they are added up as they come.
    torch.testing.assert_close(row_sums, Adjacency(edge_index, nodes).normalised(found.dtype)[1])


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
        ahead = BatchesAhead(
            resident, size, runs, torch.float64, has_gated_runs=runs == 1, has_weights=dataset != "cluster"
        )
    ahead.begin(list(picks.flip(0)))
    ahead.advance()
    ahead.take()  # an epoch that is broken off after its first step
    ahead.begin(list(picks))
    for of_step in picks:
        ahead.advance()
        found, expected = ahead.take(), resident.gather_rows(of_step, size, padded=True)
        assert_same_rows(found, expected, with_shares=most >= FEWEST_SHARING)
        first_node = torch.arange(0, runs * size.nodes, size.nodes).unsqueeze(1)
        joined = (expected.edge_index + first_node).view(2, -1)
        assert found.orders is not None
        assert_orders_of(found.orders, joined, runs * size.nodes)
        assert (found.orders.weights is not None) == (dataset != "cluster" and most >= FEWEST_SHARING)
        if found.orders.weights is not None:
            assert_weights_of(found.orders.weights, joined, runs * size.nodes, found.orders)
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
        ahead = BatchesAhead(resident, size, runs, torch.float32, has_gated_runs=False, has_weights=True)
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


def test_weights_by_hand() -> None:
    # Of two batches: 0 -> 1, 2 -> 1, 1 -> 2 and a loop on padding, then 0 <-> 1 and two loops.
    edge_index = torch.tensor([[[0, 2, 1, 3], [1, 0, 2, 3]], [[1, 1, 2, 3], [0, 1, 2, 3]]])
    joined = EdgeOrders.of(edge_index, 4, None).side_by_side()
    assert joined.starts.tolist() == [0, 0, 2, 3, 4, 5, 6, 7, 8]
    assert joined.by_source.tolist() == [0, 2, 1, 3, 5, 4, 6, 7]
    assert joined.source_starts.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert joined.destination_by_source.tolist() == [1, 2, 1, 3, 5, 4, 6, 7]
    adjacency = Adjacency(torch.cat([edge_index[:, 0], edge_index[:, 1] + 4], dim=1), 8, orders=joined)
    assert adjacency.shares(torch.float64).tolist() == [0.5, 0.5, 1, 1, 1, 1, 1, 1]
    normalised, row_sums = adjacency.normalised(torch.float64)
    # Degrees are means of those in and out: 0.5, 1.5 and 1 in the first batch, else 1.
    weights = torch.tensor([0.75**-0.5, 1.5**-0.5, 1.5**-0.5, *[1.0] * 5], dtype=torch.float64)
    torch.testing.assert_close(normalised, weights)
    of_first = [weights[0] / 2, weights[0] / 2 + weights[1], weights[1], *[1.0] * 5]
    torch.testing.assert_close(row_sums, torch.tensor(of_first, dtype=torch.float64))
    assert adjacency.in_order_of_source(normalised) is adjacency.in_order_of_source(normalised)
    torch.testing.assert_close(adjacency.in_order_of_source(normalised), weights[joined.by_source])
    given = torch.arange(8)  # a layer's own weights are put in order each time
    assert adjacency.in_order_of_source(given) is not adjacency.in_order_of_source(given)
    assert torch.equal(adjacency.in_order_of_source(given), joined.by_source)
    out_of, into = adjacency.inverse_roots(torch.float64).squeeze(2).tolist()
    assert out_of == [1.0] * 8
    assert into == pytest.approx([1.0, 2**-0.5, *[1.0] * 6])


def test_shares_of_rows_by_hand() -> None:
    real = torch.tensor([[True, True, False, False], [True, True, True, True], [True, False, False, False]])
    shares = RowShares.of(real, torch.float64)
    assert shares.ones_and_shares.tolist() == [
        [[1, 1, 0, 0], [0.5, 0.5, 0, 0]],
        [[1, 1, 1, 1], [0.25, 0.25, 0.25, 0.25]],
        [[1, 0, 0, 0], [1, 0, 0, 0]],
    ]
    torch.testing.assert_close(shares.unbiased, torch.tensor([[2.0], [4 / 3], [1.0]], dtype=torch.float64))


def finding_nothing(_: object, state: State) -> Capture:
    """In place of a capture: within a step nothing may be worked out that follows from its graphs alone."""

    counted = Parts.counted.func

    def refused(*_: object) -> None:
        raise AssertionError("found within a step")

    def counted_in_evaluation(parts: Parts) -> Tensor:
        # The gate's spread is over so many edges; of graphs the number is known to the host.
        return refused() if torch.is_grad_enabled() and parts.counts is None else counted(parts)

    def watched(step: Step) -> Step:
        def run() -> None:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(RowShares, "of", refused)
                patch.setattr(Parts, "counted", property(counted_in_evaluation))
                patch.setattr(Adjacency, "_normalise", refused)
                patch.setattr(Tensor, "reciprocal", refused)  # of degrees
                step()

        return run

    return watched


@pytest.mark.parametrize("together", [False, True], ids=["alone", "together"])
@pytest.mark.parametrize("semantics", ["paper", "released"])
@pytest.mark.parametrize("backbone", BACKBONES)
def test_a_step_reads_what_follows_from_its_graphs(
    on_device: list[TapedSteps],
    monkeypatch: pytest.MonkeyPatch,
    backbone: Backbone,
    semantics: Semantics,
    together: bool,
) -> None:
    for module in ("bimp.device.run", "bimp.stack.on_device"):
        monkeypatch.setattr(f"{module}.capture_on", finding_nothing)
    model = {} if semantics == "released" else {"gate": "uniform"}
    config = trial("zinc", backbone, semantics=semantics, model=model, max_epochs=1)
    runs = seeds_of(config, (10, 10) if together else (10,))
    assert len(list(fit_together(runs))) == 1
