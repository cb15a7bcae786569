from dataclasses import fields, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from bimp.data import DataError, GraphBatch, GraphSplit, PackedGraphs
from bimp.data.packed import LabelLevel


def data(nodes: int, edges: list[tuple[int, int]], **values: torch.Tensor) -> Data:
    edge_index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t()
    values.setdefault("x", torch.arange(nodes) + 10 * nodes)
    values.setdefault("y", torch.tensor([nodes]))
    return Data(edge_index=edge_index, **values)


@st.composite
def graph_lists(draw: st.DrawFn) -> tuple[list[Data], LabelLevel]:
    level: LabelLevel = draw(st.sampled_from(["graph", "node", "edge"]))
    with_edge_attr, columns = draw(st.booleans()), draw(st.sampled_from([None, 1, 3]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))

    def values(rows: int) -> torch.Tensor:
        return torch.rand((rows,) if columns is None else (rows, columns), generator=generator)

    graphs = []
    for _ in range(draw(st.integers(1, 6))):
        nodes = draw(st.integers(1, 7))
        edges = draw(st.integers(0, 12))
        labels = {"graph": 1, "node": nodes, "edge": edges}[level]
        graph = Data(
            x=values(nodes),
            edge_index=torch.randint(nodes, (2, edges), generator=generator),
            y=torch.rand(labels, generator=generator),
        )
        if with_edge_attr:
            graph.edge_attr = values(edges)
        graphs.append(graph)
    return graphs, level


def edge_rows(edge_index: torch.Tensor, *columns: torch.Tensor | None) -> list[tuple[float, ...]]:
    values = [column.double() for column in columns if column is not None]
    parts = [edge_index.t().double(), *(value if value.dim() == 2 else value.unsqueeze(1) for value in values)]
    return sorted(map(tuple, torch.cat(parts, dim=1).tolist()))


@settings(max_examples=150, deadline=None)
@given(graph_lists(), st.data())
def test_gather_equals_collation_up_to_edge_order(drawn: tuple[list[Data], LabelLevel], choice: st.DataObject) -> None:
    graphs, level = drawn
    packed = PackedGraphs.pack(graphs, labels=level)
    indices = choice.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=8))

    with pytest.MonkeyPatch.context() as patch:
        # Rows of a graph are copied as a whole, or found one by one.
        patch.setattr("bimp.data.graph_runs.FEWEST_COPIED", choice.draw(st.sampled_from([0, 1024])))
        ours = packed.gather(torch.tensor(indices))
    theirs = Batch.from_data_list([graphs[index] for index in indices])

    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.batch, theirs.batch)
    assert torch.equal(ours.ptr, theirs.ptr)
    assert ours.edge_index.dtype == ours.batch.dtype == ours.ptr.dtype == torch.int64
    assert (ours.edge_index[1].diff() >= 0).all()
    edge_labels = (ours.y, theirs.y) if level == "edge" else (None, None)
    assert edge_rows(ours.edge_index, ours.edge_attr, edge_labels[0]) == edge_rows(
        theirs.edge_index, theirs.edge_attr, edge_labels[1]
    )
    if level != "edge":
        assert torch.equal(ours.y, theirs.y)


def test_a_batch_worked_by_hand() -> None:
    # Graph 0: 3 nodes, edges 2->1 (a), 0->1 (b), 1->0 (c). Graph 1: one node. Graph 2: 2 nodes, edge 0->1 (d).
    packed = PackedGraphs.pack(
        [
            data(3, [(2, 1), (0, 1), (1, 0)], edge_attr=torch.tensor([1, 2, 3])),
            data(1, [], edge_attr=torch.tensor([], dtype=torch.int64)),
            data(2, [(0, 1)], edge_attr=torch.tensor([4])),
        ],
        labels="graph",
    )
    batch = packed.gather(torch.tensor([2, 1, 0, 2]))
    assert batch.ptr.tolist() == [0, 2, 3, 6, 8]
    assert batch.batch.tolist() == [0, 0, 1, 2, 2, 2, 3, 3]
    assert batch.x.tolist() == [20, 21, 10, 30, 31, 32, 20, 21]
    # By destination: d, then of graph 0 first c (into 0), then a and b (into 1) in their old order, then d again.
    assert batch.edge_index.tolist() == [[0, 4, 5, 3, 6], [1, 3, 4, 4, 7]]
    assert batch.edge_attr is not None
    assert batch.edge_attr.tolist() == [4, 3, 1, 2, 4]
    assert batch.y.tolist() == [2, 1, 3, 2]
    assert (batch.num_graphs, batch.num_nodes, batch.num_edges) == (4, 8, 5)


def test_graphs_without_edges_or_nodes() -> None:
    edgeless = Data(x=torch.ones(2, 3), y=torch.tensor(1.5))
    empty = Data(x=torch.ones(0, 3), y=torch.tensor(2.5))
    packed = PackedGraphs.pack([edgeless, empty, edgeless], labels="graph")
    batch = packed.gather(torch.tensor([1, 0, 1]))
    assert batch.ptr.tolist() == [0, 0, 2, 2]
    assert batch.edge_index.shape == (2, 0)
    assert batch.y.tolist() == [2.5, 1.5, 2.5]
    nothing = packed.gather(torch.tensor([], dtype=torch.int64))
    assert (nothing.num_graphs, nothing.num_nodes, nothing.num_edges) == (0, 0, 0)


def test_edge_labels_follow_their_edges() -> None:
    packed = PackedGraphs.pack([data(2, [(0, 1), (1, 0)], y=torch.tensor([7, 8]))], labels="edge")
    batch = packed.gather(torch.tensor([0]))
    assert batch.edge_index.tolist() == [[1, 0], [0, 1]]
    assert batch.y.tolist() == [8, 7]


def test_a_batch_can_be_written_to_without_changing_the_packed_graphs() -> None:
    packed = PackedGraphs.pack([data(2, [(0, 1)], edge_attr=torch.ones(1))], labels="graph")
    batch = packed.gather(torch.tensor([0]))
    for tensor in (batch.x, batch.edge_index, batch.edge_attr, batch.y, batch.ptr):
        assert tensor is not None
        tensor.fill_(99)
    again = packed.gather(torch.tensor([0]))
    assert again.x.tolist() == [20, 21]
    assert again.edge_index.tolist() == [[0], [1]]
    assert again.y.tolist() == [2]


@pytest.mark.parametrize(("nodes", "dtype"), [(256, torch.uint8), (257, torch.int16), (32_769, torch.int32)])
def test_node_numbers_take_the_smallest_type_that_holds_them(nodes: int, dtype: torch.dtype) -> None:
    packed = PackedGraphs.pack([data(nodes, [(0, nodes - 1)]), data(nodes, [(nodes - 1, 0)])], labels="graph")
    assert packed.edge_index.dtype == dtype
    batch = packed.gather(torch.tensor([0, 1]))
    assert batch.edge_index.tolist() == [[0, 2 * nodes - 1], [nodes - 1, nodes]]


def test_counts() -> None:
    packed = PackedGraphs.pack([data(3, [(2, 1), (0, 1)]), data(1, [])], labels="graph")
    assert len(packed) == 2
    assert packed.node_counts.tolist() == [3, 1]
    assert packed.edge_counts.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ([], "no graphs"),
        ([data(2, [(0, 1)]), data(2, [(0, 2)])], "edge to a node"),
        ([data(2, [(-1, 0)])], "edge to a node"),
        ([data(2, [(0, 1)]), data(2, [(0, 1)], edge_attr=torch.ones(1))], "graph 1 differs from graph 0"),
        ([Data(edge_index=torch.tensor([[0], [1]]), y=torch.ones(1))], "graph 0 has no x"),
        ([Data(x=torch.ones(2))], "graph 0 has no y"),
        ([data(2, [(0, 1)], y=torch.ones(2))], r"y: found shape \[2\], expected 1 in dimension 0"),
        ([data(2, [], y=torch.ones(1, 1))] * 3, r"y: found shape \[3, 1\], expected one label each, \[3\]"),
        ([data(2, [(0, 1)], edge_attr=torch.ones(2))], r"edge_attr: found shape \[2\], expected 1"),
    ],
)
def test_what_cannot_be_packed_is_named(graphs: list[Data], message: str) -> None:
    with pytest.raises(DataError, match=message):
        PackedGraphs.pack(graphs, labels="graph")


@settings(max_examples=100, deadline=None)
@given(graph_lists(), st.data())
def test_batches_gathered_at_once_are_those_gathered_one_by_one(
    drawn: tuple[list[Data], LabelLevel], choice: st.DataObject
) -> None:
    graphs, level = drawn
    packed = PackedGraphs.pack(graphs, labels=level)
    packed = replace(packed, pos_enc=torch.arange(2.0 * packed.x.shape[0]).view(-1, 2))
    indices = torch.tensor(choice.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=12)))
    batch_size = choice.draw(st.integers(1, 13))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bimp.data.graph_runs.FEWEST_COPIED", choice.draw(st.sampled_from([0, 1024])))
        together = packed.gather_batches(indices, batch_size)
        apart = [packed.gather(part) for part in indices.split(batch_size)]
    for found, expected in zip(together, apart, strict=True):
        for field in fields(GraphBatch):
            ours, theirs = getattr(found, field.name), getattr(expected, field.name)
            assert torch.equal(ours, theirs) if isinstance(theirs, torch.Tensor) else ours is theirs, field.name


@pytest.mark.parametrize("most_rows", [1, 5, 1000])
def test_a_split_gathers_few_rows_at_once(most_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bimp.data.graph_split.MOST_ROWS_AT_ONCE", most_rows)
    asked: list[int] = []
    gather = PackedGraphs.gather_batches
    monkeypatch.setattr(
        PackedGraphs,
        "gather_batches",
        lambda self, indices, size: asked.append(len(indices)) or gather(self, indices, size),
    )
    split = split_of(8, [6, 1, 3, 0, 7])  # graphs of one node
    assert labels_of(list(split.batches(2))) == [[60, 10], [30, 0], [70]]
    assert asked == {1: [2, 2, 1], 5: [4, 1], 1000: [5]}[most_rows]


def test_what_is_gathered_at_once_follows_the_graphs_of_the_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bimp.data.graph_split.MOST_ROWS_AT_ONCE", 40)
    graphs = PackedGraphs.pack([data(1, [])] * 90 + [data(10, [])] * 10, labels="graph")
    assert GraphSplit(graphs, torch.arange(90, 100)).batches_at_once(2) == 2
    assert GraphSplit(graphs, torch.arange(90)).batches_at_once(2) == 16
    assert GraphSplit(graphs, torch.arange(0)).batches_at_once(2) == 16


def test_edge_inputs_are_left_out() -> None:
    graph = data(2, [(0, 1)], edge_attr=torch.ones(1))
    split = GraphSplit(PackedGraphs.pack([graph], labels="graph"), torch.tensor([0]))
    assert next(split.batches(1)).edge_attr is not None
    batch = next(split.without_edge_attr().batches(1))
    assert batch.edge_attr is None
    assert batch.num_edges == 1


def split_of(count: int, indices: list[int]) -> GraphSplit:
    graphs = [data(1, [], y=torch.tensor([10 * number])) for number in range(count)]
    return GraphSplit(PackedGraphs.pack(graphs, labels="graph"), torch.tensor(indices, dtype=torch.int64))


def labels_of(batches: list[GraphBatch]) -> list[list[int]]:
    return [batch.y.tolist() for batch in batches]


def test_batches_of_a_split() -> None:
    split = split_of(8, [6, 1, 3, 0, 7])
    assert len(split) == 5
    assert labels_of(list(split.batches(2))) == [[60, 10], [30, 0], [70]]
    order = torch.tensor([4, 0, 3, 2, 1])
    assert labels_of(list(split.batches(3, order))) == [[70, 60, 0], [30, 10]]
    assert list(split_of(2, []).batches(3)) == []


def test_an_order_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="found 2 places, expected 3"):
        list(split_of(4, [0, 1, 2]).batches(2, torch.tensor([0, 1])))


@pytest.mark.parametrize("batch_size", [0, -2])
def test_a_batch_of_no_graph_is_refused(batch_size: int) -> None:
    with pytest.raises(ValueError, match=f"^batch_size: found {batch_size}, expected 1 or more$"):
        list(split_of(4, [0, 1, 2]).batches(batch_size))


def test_a_device_is_named_by_its_text_too() -> None:
    batch = PackedGraphs.pack([data(3, [(2, 1), (0, 1)])], labels="graph").gather(torch.tensor([0]))
    assert batch.to("cpu") is batch
    assert batch.to("meta").edge_index.device.type == "meta"


def test_main_memory_is_not_read_before_a_copy_to_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    # Asked not to block, PyTorch gives back tensors of main memory that a GPU has yet to fill.
    batch = PackedGraphs.pack([data(3, [(2, 1), (0, 1)])], labels="graph").gather(torch.tensor([0]))
    elsewhere, here, blocks = batch.to("meta"), torch.zeros(1), []

    def copied(tensor: torch.Tensor, device: torch.device, non_blocking: bool = False) -> torch.Tensor:
        assert tensor.device.type == "meta"
        assert device.type == "cpu"
        blocks.append(not non_blocking)
        return here

    monkeypatch.setattr(torch.Tensor, "to", copied)
    assert elsewhere.to("cpu").x is here
    assert blocks == [True] * 5


def test_node_numbers_of_a_long_batch_outgrow_the_type_they_are_stored_in() -> None:
    # Three graphs of 150 nodes and 1,200 edges, numbered in one byte: the batch counts to 449.
    local = torch.arange(1200) // 8
    graph = Data(x=torch.zeros(150, 1), edge_index=torch.stack([149 - local, local]), y=torch.zeros(150))
    packed = PackedGraphs.pack([graph] * 3, labels="node")
    assert packed.edge_index.dtype == torch.uint8
    edge_index = packed.gather(torch.arange(3)).edge_index
    assert edge_index[:, 2400].tolist() == [300 + 149, 300]
    assert edge_index[:, -1].tolist() == [300, 300 + 149]
