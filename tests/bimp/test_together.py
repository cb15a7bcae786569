"""Seeds trained together against the same seeds trained one by one."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import astuple, replace
from itertools import chain, islice
from typing import Any

import numpy as np
import pytest
import torch
from graph_batches import ONE_NODE, SmallGraph, batch_of, small_graphs
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close
from torch_geometric.data import Data

from bimp.config import BACKBONES, Backbone, ModelConfig, TrainConfig, TrialConfig
from bimp.data import GraphBatch, GraphSplit, PackedGraphs
from bimp.data.positional import positional_encodings
from bimp.engine import EpochResult, Evaluation, fit
from bimp.row_norm import RowNorm
from bimp.semantics import Semantics, preset
from bimp.stack.batch import StackedBatch, without_graphs
from bimp.stack.parts import Parts
from bimp.stack.row_norm import StackedRowNorm
from bimp.stack.team import SeedRun
from bimp.stack.together import fit_together
from bimp.stack.worth import is_worth_stacking
from bimp.tasks import task_of
from tests.crossing import crossed

DATASETS = ("digits", "zinc", "cluster", "tsp", "enzymes")
EVERY_BACKBONE = pytest.mark.parametrize("backbone", BACKBONES)


def graphs(dataset: str, count: int, encodings: int = 0) -> PackedGraphs:
    """Random graphs of 1 to 9 nodes with the inputs and labels of ``dataset``; some have no edge."""
    task, draw = task_of(dataset), np.random.default_rng(7)
    made = []
    for number in range(count):
        nodes = 1 if number == 2 else int(draw.integers(1, 10))
        present = draw.random((nodes, nodes)) < 0.4
        np.fill_diagonal(present, False)
        edge_index = torch.tensor(np.array(present.nonzero()))
        items = {"node_classification": nodes, "edge_classification": edge_index.shape[1]}.get(task.kind, 1)
        y = torch.tensor(draw.integers(0, task.num_outputs, items))
        made.append(
            Data(
                x=_inputs(draw, task.node_input, nodes, task.node_dim),
                edge_index=edge_index,
                edge_attr=_inputs(draw, task.edge_input, edge_index.shape[1], task.edge_dim),
                y=torch.tensor(draw.random(1), dtype=torch.get_default_dtype())
                if task.kind == "graph_regression"
                else y,
            )
        )
    labels = {"node_classification": "node", "edge_classification": "edge"}.get(task.kind, "graph")
    packed = PackedGraphs.pack(made, labels=labels)  # type: ignore[arg-type]
    return replace(packed, pos_enc=positional_encodings(packed, encodings).double()) if encodings else packed


def _inputs(draw: np.random.Generator, kind: str, rows: int, width: int) -> torch.Tensor | None:
    if kind == "ones":
        return None
    if kind == "embedding":
        return torch.tensor(draw.integers(0, width, rows))
    return torch.tensor(draw.random((rows, width)), dtype=torch.get_default_dtype())


def config_of(
    dataset: str, backbone: Backbone, *, gated: bool = True, semantics: Semantics = "paper", **changes: object
) -> TrialConfig:
    settings = preset(semantics, dataset=dataset, backbone=backbone, gated=gated)
    of_model = {name: value for name, value in settings.items() if name in ModelConfig.__dataclass_fields__}
    of_training = {name: value for name, value in settings.items() if name in TrainConfig.__dataclass_fields__}
    gate = {"placement": "boosting", "gate": "bilateral", "num_clusters": 3, "sigma_m": 1.0} if gated else {}
    heads, hidden_dim = (2, 4) if backbone == "gat" else (1, 8)
    shape = {"backbone": backbone, "layers": 3, "hidden_dim": hidden_dim, "heads": heads, "semantics": semantics}
    model = ModelConfig(**{**shape, **gate, **of_model})  # type: ignore[arg-type]
    schedule = {"max_epochs": 3, "batch_size": 5, "learning_rate": 1e-3, "lr_patience": 1}
    weight = {"unsupervised_weight": 0.5 if gated else None}
    train = TrainConfig(**{**schedule, **weight, **of_training, **changes})  # type: ignore[arg-type]
    return TrialConfig(dataset=dataset, model=model, train=train, seed=0)


def seed_runs(config: TrialConfig, packed: PackedGraphs, sizes: tuple[int, ...] = (12, 12, 12)) -> list[SeedRun]:
    """A seed for each size; its training split holds so many graphs, of which it begins with another one."""
    whole = torch.arange(len(packed))
    return [
        SeedRun(
            config=replace(config, seed=41 + number),
            train=GraphSplit(graphs=packed, indices=whole.roll(number)[:size]),
            validation=GraphSplit(graphs=packed, indices=whole[-7 + number % 2 :]),
        )
        for number, size in enumerate(sizes)
    ]


def apart(runs: list[SeedRun]) -> list[list[EpochResult]]:
    return [list(fit(run.config, run.train, run.validation, checkpoint=run.checkpoint)) for run in runs]


def together(runs: list[SeedRun]) -> list[list[EpochResult]]:
    results: list[list[EpochResult]] = [[] for _ in runs]
    for of_epoch in fit_together(runs):
        for number, result in of_epoch.items():
            results[number].append(result)
    return results


def assert_same_runs(found: list[list[EpochResult]], expected: list[list[EpochResult]], rtol: float = 1e-7) -> None:
    for of_run, of_expected in zip(found, expected, strict=True):
        assert [(r.epoch, r.status, r.reason) for r in of_run] == [(r.epoch, r.status, r.reason) for r in of_expected]
        assert [r.learning_rate for r in of_run] == [r.learning_rate for r in of_expected]
        for one, other in zip(of_run, of_expected, strict=True):
            assert_same_evaluation(one.train, other.train, rtol)
            assert_same_evaluation(one.validation, other.validation, rtol)


def assert_same_evaluation(found: Evaluation | None, expected: Evaluation | None, rtol: float) -> None:
    if found is None or expected is None:
        assert found is expected
        return
    for one, other in zip(astuple(found), astuple(expected), strict=True):
        assert one == other or one == pytest.approx(other, rel=rtol, abs=1e-9)


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    """In which rounding is so small that a wrong formula cannot hide in it."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(("dataset", "backbone"), crossed(DATASETS, BACKBONES))
def test_equals_one_by_one(dataset: str, backbone: Backbone) -> None:
    runs = seed_runs(config_of(dataset, backbone), graphs(dataset, 20))
    assert_same_runs(together(runs), apart(runs))


@EVERY_BACKBONE
def test_equals_one_by_one_without_a_gate(backbone: Backbone) -> None:
    runs = seed_runs(config_of("zinc", backbone, gated=False), graphs("zinc", 20))
    assert_same_runs(together(runs), apart(runs))


@pytest.mark.parametrize(("dataset", "backbone"), crossed(["zinc", "cluster"], BACKBONES))
def test_equals_one_by_one_by_the_released_code(dataset: str, backbone: Backbone) -> None:
    runs = seed_runs(config_of(dataset, backbone, semantics="released"), graphs(dataset, 20))
    assert_same_runs(together(runs), apart(runs))


PLAIN = ("bimp.neighbourhood", "bimp.kernels.linear", "bimp.layers.gat", "bimp.layers.gated_gcn")


@pytest.mark.parametrize("semantics", ["paper", "released"])
@EVERY_BACKBONE
def test_equals_one_by_one_where_no_kernel_serves(
    backbone: Backbone, semantics: Semantics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on an accelerator: every step by the same operators for all seeds."""
    for module in (*PLAIN, "bimp.stack.maps", "bimp.stack.row_norm"):
        monkeypatch.setattr(f"{module}.kernels_serve", lambda *_: False)
    runs = seed_runs(config_of("tsp", backbone, semantics=semantics), graphs("tsp", 20))
    assert_same_runs(together(runs), apart(runs))


def test_batches_of_many_rows() -> None:
    """Enough of them for the products of :mod:`bimp.kernels.linear`."""
    wide = config_of("enzymes", "graphsage", batch_size=100)
    runs = seed_runs(replace(wide, model=replace(wide.model, hidden_dim=20)), graphs("enzymes", 150), (120, 150))
    assert_same_runs(together(runs), apart(runs))


def test_splits_of_different_sizes() -> None:
    """One seed has fewer steps, another a last batch of one graph of one node, as folds may have them."""
    packed = graphs("enzymes", 20)
    loner = int((packed.node_counts == 1).nonzero()[0])
    runs = seed_runs(config_of("enzymes", "gated_gcn"), packed, (16, 7, 11))
    last = GraphSplit(graphs=packed, indices=torch.cat([torch.arange(1, 11), torch.tensor([loner])]))
    runs[2] = replace(runs[2], train=GraphSplit(graphs=packed, indices=torch.full((1,), loner)))
    assert_same_runs(together(runs), apart(runs))
    runs[2] = replace(runs[2], train=last, validation=last)
    assert_same_runs(together(runs), apart(runs))


@EVERY_BACKBONE
@pytest.mark.parametrize("gated", [False, True])
def test_edges_are_scored_where_a_graph_has_none(backbone: Backbone, gated: bool) -> None:
    """Alone in its batch it adds nothing to the loss, whatever the others of the step do."""
    runs = seed_runs(config_of("tsp", backbone, gated=gated, batch_size=1), graphs("tsp", 20), (12, 9, 5))
    assert all((run.train.graphs.edge_counts[run.train.indices] == 0).any() for run in runs)
    found = together(runs)
    assert {results[-1].reason for results in found} == {"max_epochs"}
    assert_same_runs(found, apart(runs))


@pytest.mark.parametrize(("backbone", "batch_size"), [("gcn", 1), ("gcn", 4), ("gated_gcn", 4)])
def test_rounding_is_not_made_steps_of(backbone: Backbone, batch_size: int) -> None:
    """In single precision, where the rest of a gradient of 0 is large enough for Adam to make whole steps of it."""
    torch.set_default_dtype(torch.float32)
    config = config_of("cluster", backbone, gated=False, batch_size=batch_size)
    runs = seed_runs(config, graphs("cluster", 30), (12, 9, 5))
    for found, expected in zip(chain(*together(runs)), chain(*apart(runs)), strict=True):
        assert_close(astuple(found.train)[0], astuple(expected.train)[0], rtol=5e-6, atol=5e-6)
        assert_close(astuple(found.validation)[0], astuple(expected.validation)[0], rtol=5e-6, atol=5e-6)


@pytest.mark.parametrize(
    ("backbone", "limit", "rows"),
    [
        ("gated_gcn", "MOST_EDGES", "edge_counts"),
        ("gcn", "MOST_NODES", "node_counts"),
        ("gat", "MOST_NODES", "node_counts"),
        ("graphsage", "MOST_NODES_OF_GRAPHSAGE", "node_counts"),
    ],
)
def test_large_batches_are_trained_one_after_another(
    backbone: Backbone, limit: str, rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From as many rows on as one network of all is slower; who has ended leaves there too."""
    config = config_of("zinc", backbone, max_epochs=40, learning_rate=0.05, lr_patience=0, min_lr=0.02)
    runs = seed_runs(config, graphs("zinc", 20))
    train = runs[0].train
    of_a_batch = 5 * int(getattr(train.graphs, rows)[train.indices].sum()) / 12  # on average
    monkeypatch.setattr(f"bimp.stack.worth.{limit}", of_a_batch)
    assert is_worth_stacking(config, train, torch.device("cpu"))
    monkeypatch.setattr(f"bimp.stack.worth.{limit}", of_a_batch - 0.1)
    assert not is_worth_stacking(config, train, torch.device("cpu"))
    assert is_worth_stacking(config, train, torch.device("cuda"))
    monkeypatch.setattr(f"bimp.stack.worth.{limit}", 0)
    monkeypatch.setattr("bimp.stack.together.Team", None)
    expected = apart(runs)
    assert len({len(results) for results in expected}) > 1
    assert_same_runs(together(runs), expected, rtol=0)
    ended = replace(runs[0], checkpoint=expected[0][-1].checkpoint())
    assert_same_runs(together([ended, *runs[1:]]), [[], *expected[1:]], rtol=0)


def test_signs_of_positional_encodings_are_each_seeds_own() -> None:
    encoded = config_of("zinc", "gcn")
    encoded = replace(encoded, model=replace(encoded.model, pos_enc_dim=2))
    runs = seed_runs(encoded, graphs("zinc", 20, encodings=3))
    assert_same_runs(together(runs), apart(runs))


def test_norms_of_gradients_are_each_seeds_own() -> None:
    runs = seed_runs(config_of("zinc", "gcn", clip_norm=0.05), graphs("zinc", 20))
    found = together(runs)
    assert_same_runs(found, apart(runs))
    free = together(seed_runs(config_of("zinc", "gcn"), graphs("zinc", 20)))
    assert found[0][-1].validation != free[0][-1].validation


def test_who_has_ended_leaves_the_others() -> None:
    """By a schedule of its own, and one that had ended before gives nothing."""
    config = config_of("zinc", "gat", max_epochs=40, learning_rate=0.05, lr_patience=0, min_lr=0.02)
    runs = seed_runs(config, graphs("zinc", 20))
    expected = apart(runs)
    assert len({len(results) for results in expected}) > 1
    assert {results[-1].reason for results in expected} == {"min_lr"}
    assert_same_runs(together(runs), expected)
    ended = replace(runs[0], checkpoint=expected[0][-1].checkpoint())
    assert_same_runs(together([ended, *runs[1:]]), [[], *expected[1:]])


def test_who_diverges_leaves_the_others() -> None:
    packed = graphs("digits", 20)
    packed.x[int(packed.node_offsets[3])] = float("nan")
    runs = seed_runs(config_of("digits", "gcn"), packed)
    clean = torch.tensor([0, 1, 2, 4, 5, 6, 7, 8, 9, 10])
    runs = [replace(run, validation=GraphSplit(graphs=packed, indices=clean)) for run in runs]
    runs[1:] = [replace(run, train=GraphSplit(graphs=packed, indices=clean)) for run in runs[1:]]
    found = together(runs)
    assert [(result.status, result.reason) for result in found[0]] == [("diverged", "epoch 1: loss nan in training")]
    assert (found[0][0].train, found[0][0].validation) == (None, None)
    assert_same_runs(found[1:], apart(runs)[1:])
    runs = [
        replace(run, train=runs[1].train, validation=GraphSplit(graphs=packed, indices=torch.arange(5 - number)))
        for number, run in enumerate(runs)
    ]
    found = together(runs)
    assert [results[-1].reason for results in found] == ["epoch 1: loss nan in evaluation"] * 2 + ["max_epochs"]
    assert_same_runs(found[2:], apart(runs)[2:])


def test_statistics_are_never_taken_in_half_precision() -> None:
    """A mean of 300 among deviations of 1 has no place in bfloat16."""
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float32)
    norms = [RowNorm(4), RowNorm(4)]
    stacked = StackedRowNorm(4)
    stacked.weight, stacked.bias = torch.nn.Parameter(torch.ones(2, 4)), torch.nn.Parameter(torch.zeros(2, 4))
    stacked.running_mean, stacked.running_var = torch.zeros(2, 4), torch.ones(2, 4)
    stacked.num_batches_tracked = torch.zeros(2, dtype=torch.int64)
    stacked.parts = Parts.of((30, 20), 30)
    rows = 300 + torch.randn(60, 4, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = stacked(rows)
    for part, own, norm in zip(stacked.parts.apart(found), stacked.parts.apart(rows), norms, strict=True):
        assert_close(part, norm(own), rtol=1e-4, atol=1e-3)
    assert_close(stacked.running_var, torch.stack([norm.running_var for norm in norms]), rtol=1e-4, atol=1e-4)


def through_a_file(checkpoint: dict[str, Any]) -> dict[str, Any]:
    buffer = io.BytesIO()
    torch.save(checkpoint, buffer)
    buffer.seek(0)
    loaded: dict[str, Any] = torch.load(buffer, weights_only=True)
    return loaded


@EVERY_BACKBONE
def test_each_way_goes_on_from_the_others_checkpoints(backbone: Backbone) -> None:
    """Trained by turns together, alone and together again, all but one, which joins them an epoch late."""
    runs = seed_runs(config_of("cluster", backbone, semantics="released", max_epochs=5), graphs("cluster", 20))
    expected = apart(runs)
    found: list[list[EpochResult]] = [[] for _ in runs]

    def goes_on(number: int, result: EpochResult) -> None:
        found[number].append(result)
        runs[number] = replace(runs[number], checkpoint=through_a_file(result.checkpoint()))

    for of_epoch in islice(fit_together(runs[:2]), 2):
        for number, result in of_epoch.items():
            goes_on(number, result)
    for number, run in enumerate(runs):
        goes_on(number, next(fit(run.config, run.train, run.validation, checkpoint=run.checkpoint)))
    for of_epoch in fit_together(runs):
        for number, result in of_epoch.items():
            goes_on(number, result)
    assert_same_runs(found, expected)
    for run, results in zip(runs, expected, strict=True):
        assert run.checkpoint is not None
        whole = results[-1].checkpoint()
        assert_close(run.checkpoint["network"], whole["network"], rtol=1e-6, atol=1e-9)
        assert run.checkpoint["optimizer"]["param_groups"] == whole["optimizer"]["param_groups"]
        for number, moments in whole["optimizer"]["state"].items():
            assert_close(run.checkpoint["optimizer"]["state"][number], moments, rtol=1e-6, atol=1e-9)


def test_a_checkpoint_is_no_larger_than_that_of_a_run_alone() -> None:
    runs = seed_runs(config_of("zinc", "gcn", max_epochs=1), graphs("zinc", 20))

    def size(checkpoint: dict[str, Any]) -> int:
        buffer = io.BytesIO()
        torch.save(checkpoint, buffer)
        return buffer.tell()

    alone = [size(results[-1].checkpoint()) for results in apart(runs)]
    (of_epoch,) = fit_together(runs)
    found = {number: size(result.checkpoint()) for number, result in of_epoch.items()}
    assert all(found[number] <= 1.02 * alone[number] for number in range(len(runs)))


def test_what_cannot_be_trained_together_is_refused() -> None:
    runs = seed_runs(config_of("zinc", "gcn"), graphs("zinc", 20))
    other = replace(runs[1], config=replace(runs[1].config, train=replace(runs[1].config.train, batch_size=6)))
    with pytest.raises(ValueError, match="expected them to differ in seed and fold alone"):
        next(fit_together([runs[0], other]))
    own = replace(runs[0].config, model=replace(runs[0].config.model, backbone="my_lab.layers:MyConv"))
    with pytest.raises(ValueError, match="train its seeds one by one"):
        next(fit_together([replace(run, config=replace(own, seed=run.config.seed)) for run in runs]))


@given(sides=st.lists(st.lists(small_graphs(), max_size=3), min_size=1, max_size=3).filter(any))
def test_a_joined_batch_holds_each_seeds_own(sides: list[list[SmallGraph]]) -> None:
    batches = [numbered(side) for side in sides]
    joined = StackedBatch.join(batches)
    assert bool((joined.edge_index[1].diff() >= 0).all())
    assert bool((joined.batch.diff() >= 0).all())
    assert bool((joined.ptr.diff() >= 0).all())
    assert int(joined.ptr[-1]) == joined.num_nodes
    for batch, own in zip(batches, joined.apart, strict=True):
        assert_close(vars(own), vars(batch))
    real = joined.nodes.real.view(-1)
    source, destination = joined.edge_index
    counted = joined.edges.real.view(-1)
    assert bool((real[source] == counted).all())  # padding edges join padding nodes, each with itself
    assert bool((source == destination)[~counted].all())
    rows = torch.zeros(joined.num_graphs * joined.most_nodes + 1).index_add(0, joined.places, torch.ones(len(real)))
    assert rows[:-1].tolist() == [float(r) for b, g in each_graph(joined) for r in in_place(b, g, joined.most_nodes)]


def numbered(side: list[SmallGraph]) -> GraphBatch:
    """The graphs as a batch in which no two inputs are equal."""
    if not side:
        return without_graphs(numbered([ONE_NODE]))
    nodes, edges = sum(graph.nodes for graph in side), sum(len(graph.edges) for graph in side)
    return batch_of(
        *side,
        x=torch.arange(1.0, nodes + 1).unsqueeze(1),
        edge_attr=torch.arange(1.0, edges + 1).unsqueeze(1),
        y=torch.arange(1.0, len(side) + 1),
    )


def each_graph(joined: StackedBatch) -> list[tuple[GraphBatch, int]]:
    return [(own, graph) for own in joined.apart for graph in range(joined.graphs.length)]


def in_place(own: GraphBatch, graph: int, most_nodes: int) -> list[int]:
    nodes = int(own.ptr[graph + 1] - own.ptr[graph]) if graph < own.num_graphs else 0
    return [1] * nodes + [0] * (most_nodes - nodes)
