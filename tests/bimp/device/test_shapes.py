from __future__ import annotations

import pytest
import torch
from drawn_graphs import drawn
from hypothesis import given, settings
from hypothesis import strategies as st

from bimp.device.shapes import BATCHES_DRAWN, Buckets, Shape, around, drawn_shapes, shapes_of

shapes = st.builds(Shape, graphs=st.sampled_from([4, 8]), nodes=st.integers(2, 200), edges=st.integers(2, 400))


def test_shapes_are_those_of_the_gathered_batches() -> None:
    split = drawn("zinc", 23)
    order = torch.randperm(23, generator=torch.Generator().manual_seed(3))
    gathered = [Shape(batch.num_graphs, batch.num_nodes, batch.num_edges) for batch in split.batches(5, order)]
    assert shapes_of(split.graphs, split.indices[order], 5) == gathered
    assert [shape.graphs for shape in shapes_of(split.graphs, split.indices, 5)] == [5, 5, 5, 5, 3]


@settings(max_examples=40, deadline=None)
@given(given_shapes=st.lists(shapes, min_size=1, max_size=40), most=st.integers(1, 4))
def test_buckets_hold_what_they_were_made_for(given_shapes: list[Shape], most: int) -> None:
    buckets = Buckets(given_shapes, most)
    for graphs in (4, 8):
        assert sum(size.graphs == graphs for size in buckets.sizes) <= most
    for shape in given_shapes:
        found = buckets.smallest(shape)
        assert found is not None
        assert found.graphs == shape.graphs
        assert found.nodes > shape.nodes
        assert found.edges >= shape.edges


def test_two_buckets_are_put_where_they_pad_least() -> None:
    # 9 nodes and their padding node are 10, rounded up to 16; with the large one apart, they stay small.
    small, large = [Shape(4, 9, 16)] * 9, [Shape(4, 199, 400)]
    assert Buckets([*small, *large], most=2).sizes == (Shape(4, 16, 16), Shape(4, 200, 400))
    assert Buckets([*small, *large], most=1).sizes == (Shape(4, 200, 400),)


@pytest.mark.parametrize("shape", [Shape(4, 1, 5), Shape(4, 5, 1), Shape(4, 17, 5), Shape(3, 5, 5)])
def test_what_no_bucket_holds_or_has_no_variance(shape: Shape) -> None:
    assert Buckets([Shape(4, 15, 8)]).smallest(shape) is None


def test_drawn_shapes_are_alike_at_every_call_and_end_in_one_hardly_exceeded() -> None:
    split = drawn("zinc", 64)
    first = drawn_shapes([split], 10)
    assert first == drawn_shapes([split], 10)
    whole, rest = first[: BATCHES_DRAWN + 1], first[BATCHES_DRAWN + 1 :]
    assert [{shape.graphs for shape in part} for part in (whole, rest)] == [{10}, {4}]
    for part in (whole, rest):
        assert part[-1].nodes >= max(shape.nodes for shape in part)
        assert part[-1].edges >= max(shape.edges for shape in part)
    mean = sum(shape.nodes for shape in whole[:-1]) / BATCHES_DRAWN
    assert mean == pytest.approx(10 * split.graphs.node_counts.double().mean().item(), rel=0.03)
    assert [shape.graphs for shape in drawn_shapes([split], 100)[:1]] == [64]


def test_a_size_around_batches_of_several_runs() -> None:
    assert around([Shape(4, 9, 20), Shape(4, 12, 16), Shape(4, 10, 10)]) == Shape(4, 12, 20)
    assert around([Shape(4, 9, 20), Shape(3, 12, 16)]) is None


def test_shapes_drawn_of_several_splits_hold_a_batch_of_each() -> None:
    splits = [drawn("zinc", 23, seed=seed) for seed in range(3)]
    of_all = drawn_shapes(splits, 5)
    assert [
        {shape.graphs for shape in part} for part in (of_all[: BATCHES_DRAWN + 1], of_all[BATCHES_DRAWN + 1 :])
    ] == [
        {5},
        {3},
    ]
    means = [5 * split.graphs.node_counts.double().mean().item() for split in splits]
    drawn_mean = sum(shape.nodes for shape in of_all[:BATCHES_DRAWN]) / BATCHES_DRAWN
    assert max(means) < drawn_mean < sum(means)
    uneven = drawn_shapes([splits[0], drawn("zinc", 21)], 5)
    assert {shape.graphs for shape in uneven} == {5}  # remainders of 3 and of 1 graph are no one size's
