from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from drawn_graphs import DATASETS, drawn
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bimp.data import GraphBatch, GraphSplit, PackedGraphs
from bimp.device.placing import fits
from bimp.device.resident import ResidentGraphs, bytes_of
from bimp.device.shapes import Shape, around
from bimp.padding import UNLABELLED
from bimp.stack.batch import StackedBatch

CPU = torch.device("cpu")


def own_shape(graphs: PackedGraphs, picks: Tensor) -> Shape:
    return Shape(len(picks), int(graphs.node_counts[picks].sum()), int(graphs.edge_counts[picks].sum()))


def fields(batch: GraphBatch) -> dict[str, Tensor | None]:
    return {name: getattr(batch, name) for name in ("x", "edge_index", "edge_attr", "y", "batch", "ptr", "pos_enc")}


@settings(max_examples=60, deadline=None)
@given(
    dataset=st.sampled_from(DATASETS),
    picks=st.lists(st.integers(0, 19), min_size=1, max_size=8),
    nodes=st.integers(1, 9),
    edges=st.integers(0, 30),
)
def test_a_padded_batch_is_the_gathered_one_and_loops_on_padding(
    dataset: str, picks: list[int], nodes: int, edges: int
) -> None:
    graphs, indices = drawn(dataset, 20, encodings=2).graphs, torch.tensor(picks)
    expected, shape = graphs.gather(indices), own_shape(graphs, indices)
    resident = ResidentGraphs.of(graphs, CPU)
    exact = resident.gather(indices, shape, padded=False)
    for name, value in fields(exact).items():
        if value is None:
            assert getattr(expected, name) is None
        else:
            torch.testing.assert_close(value, getattr(expected, name), rtol=0, atol=0)
    padded = resident.gather(indices, replace(shape, nodes=shape.nodes + nodes, edges=shape.edges + edges), padded=True)
    assert (padded.num_graphs, padded.num_nodes, padded.num_edges) == (
        len(picks),
        shape.nodes + nodes,
        shape.edges + edges,
    )
    assert padded.padding is not None
    assert padded.padding.nodes.mask.tolist() == [True] * shape.nodes + [False] * nodes
    assert padded.padding.edges.mask.tolist() == [True] * shape.edges + [False] * edges
    assert padded.ptr.tolist() == [*expected.ptr.tolist(), shape.nodes + nodes]
    for name, real in (("x", shape.nodes), ("pos_enc", shape.nodes), ("edge_attr", shape.edges)):
        value = getattr(padded, name)
        if value is not None:
            torch.testing.assert_close(value[:real], getattr(expected, name), rtol=0, atol=0)
            assert not value[real:].any()
    assert padded.batch.tolist() == expected.batch.tolist() + [len(picks)] * nodes
    assert torch.equal(padded.edge_index[:, : shape.edges], expected.edge_index)
    source, destination = padded.edge_index[:, shape.edges :]
    assert torch.equal(source, destination)
    assert bool((padded.edge_index[1].diff() >= 0).all())
    if edges:
        assert int(destination[0]) == shape.nodes
        assert int(destination[-1]) < shape.nodes + nodes
        taken = torch.bincount(destination - shape.nodes, minlength=nodes)
        assert int(taken.max() - taken.min()) <= 1  # spread evenly
    assert padded.y[: expected.y.numel()].tolist() == expected.y.tolist()
    assert all(label == UNLABELLED for label in padded.y[expected.y.numel() :])


def test_what_a_dataset_takes_and_whether_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = PackedGraphs(
        node_offsets=torch.tensor([0, 3]),  # 16 bytes
        edge_offsets=torch.tensor([0, 4]),  # 16
        x=torch.zeros(3),  # 12
        edge_index=torch.zeros(2, 4, dtype=torch.uint8),  # 8
        edge_attr=None,
        y=torch.zeros(1),  # 4
        labels="graph",
        pos_enc=torch.zeros(3, 2),  # 24
    )
    assert bytes_of(GraphSplit(graphs, torch.tensor([0]))) == 80
    assert bytes_of(GraphSplit(graphs, torch.tensor([0, 0]))) == 80 * 2 - 16  # both offsets begin with one 0
    assert fits(80, CPU)
    for free, is_enough in ((320, True), (319, False)):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _, free=free: (free, 10**9))
        assert fits(80, torch.device("cuda")) == is_enough


@settings(max_examples=40, deadline=None)
@given(
    dataset=st.sampled_from(DATASETS),
    picks=st.integers(1, 6).flatmap(
        lambda graphs: st.lists(st.lists(st.integers(0, 19), min_size=graphs, max_size=graphs), min_size=1, max_size=4)
    ),
    spare=st.integers(0, 9),
)
def test_batches_of_several_seeds_at_once_are_those_of_each(dataset: str, picks: list[list[int]], spare: int) -> None:
    graphs, indices = drawn(dataset, 20, encodings=2).graphs, torch.tensor(picks)
    size = around([own_shape(graphs, of_seed) for of_seed in indices])
    assert size is not None
    size = replace(size, nodes=size.nodes + 1 + spare, edges=size.edges + spare)
    resident = ResidentGraphs.of(graphs, CPU)
    stacked = StackedBatch.of_gathered(resident.gather_rows(indices, size, padded=True), size, resident.most_nodes)
    assert bool((stacked.edge_index[1].diff() >= 0).all())
    assert int(stacked.ptr[-1]) == stacked.num_nodes == len(picks) * size.nodes
    for seed, of_seed in enumerate(indices):
        own = resident.gather(of_seed, size, padded=True)
        assert own.padding is not None
        nodes, edges = (
            slice(seed * size.nodes, (seed + 1) * size.nodes),
            slice(seed * size.edges, (seed + 1) * size.edges),
        )
        first_graph = seed * (size.graphs + 1)
        assert torch.equal(stacked.edge_index[:, edges] - nodes.start, own.edge_index)
        assert torch.equal(stacked.batch[nodes] - first_graph, own.batch)
        assert torch.equal(stacked.ptr[first_graph : first_graph + size.graphs + 2] - nodes.start, own.ptr)
        assert torch.equal(stacked.nodes.real[seed], own.padding.nodes.mask)
        assert torch.equal(stacked.edges.real[seed], own.padding.edges.mask)
        assert torch.equal(stacked.y.view(len(picks), -1)[seed], own.y)
        for name, rows in (("x", nodes), ("pos_enc", nodes), ("edge_attr", edges)):
            if getattr(own, name) is not None:
                assert torch.equal(getattr(stacked, name)[rows], getattr(own, name))
    assert stacked.graphs.real.tolist() == [[True] * size.graphs + [False]] * len(picks)
