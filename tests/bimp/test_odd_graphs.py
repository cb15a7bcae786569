"""Graphs that one would not think of: each fast way against the plain one, and seeds together against each alone.

Self-loops, copies of edges, nodes without edges, graphs without, a node that all lead to, a single node; with more
clusters than nodes, and gates from nearly shut to nearly uniform.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import NamedTuple

import pytest
import torch
from graph_batches import SmallGraph
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from bimp.config import BACKBONES, Backbone, ModelConfig
from bimp.data import GraphBatch, PackedGraphs
from bimp.device.resident import ResidentGraphs
from bimp.device.shapes import Shape
from bimp.losses import supervised_loss
from bimp.network import Network, NetworkOutput
from bimp.semantics import Semantics
from bimp.stack.batch import StackedBatch
from bimp.stack.network import stack
from bimp.tasks import TaskKind, task_of
from tests.bimp.device.drawn_graphs import LEVELS, trial, without_kernels

HUB = SmallGraph(12, tuple((node, 0) for node in range(1, 12)))
SOURCE_OF_ALL = SmallGraph(12, tuple((0, node) for node in range(1, 12)))


class Seen(NamedTuple):
    """What a training step makes of a batch, and an evaluation after it."""

    scores: Tensor
    beta_hat: list[Tensor]
    loss: Tensor
    gradients: list[Tensor]
    buffers: list[Tensor]
    evaluated: Tensor


@st.composite
def odd_graphs(draw: st.DrawFn) -> SmallGraph:
    if draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from([HUB, SOURCE_OF_ALL]))
    nodes = draw(st.integers(1, 6))
    ends = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(ends, ends), max_size=8))
    return SmallGraph(nodes, tuple(edges * draw(st.integers(1, 2))))


@st.composite
def gated_models(draw: st.DrawFn) -> dict[str, object]:
    layers = draw(st.integers(1, 3))
    return {
        "layers": layers,
        "placement": tuple(sorted(draw(st.sets(st.integers(1, layers), min_size=1)))),
        "gate": draw(st.sampled_from(["bilateral", "uniform"])),
        "num_clusters": draw(st.sampled_from([1, 2, 9])),
        "sigma_m": draw(st.sampled_from([1e-3, 0.3, 1e6])),
    }


SIDES = st.lists(st.lists(odd_graphs(), min_size=1, max_size=3), min_size=2, max_size=3)


def packed(graphs: Sequence[SmallGraph], dataset: str, seed: int) -> PackedGraphs:
    task, generator = task_of(dataset), torch.Generator().manual_seed(seed)
    nodes, edges = sum(graph.nodes for graph in graphs), sum(len(graph.edges) for graph in graphs)

    def inputs(kind: str, dim: int, rows: int) -> Tensor:
        if kind == "embedding":
            return torch.randint(dim, (rows,), generator=generator)
        return torch.rand(rows, dim, generator=generator, dtype=torch.float64)

    level = LEVELS.get(task.kind, "edge")
    items = {"graph": len(graphs), "node": nodes, "edge": edges}[level]
    return PackedGraphs.from_arrays(
        node_counts=torch.tensor([graph.nodes for graph in graphs]),
        edge_counts=torch.tensor([len(graph.edges) for graph in graphs]),
        x=inputs(task.node_input, task.node_dim, nodes),
        edge_index=torch.tensor([edge for graph in graphs for edge in graph.edges]).long().reshape(-1, 2).t(),
        edge_attr=None if task.edge_input == "ones" else inputs(task.edge_input, task.edge_dim, edges),
        y=torch.rand(items, generator=generator, dtype=torch.float64)
        if task.kind == "graph_regression"
        else torch.randint(task.num_outputs, (items,), generator=generator),
        labels=level,  # type: ignore[arg-type]
    )


def network_of(model: ModelConfig, dataset: str, seed: int) -> Network:
    torch.manual_seed(seed)
    network = Network(model, task_of(dataset)).double().train()
    with torch.no_grad():  # where biases are 0, a ReLU of rows that are all alike is decided by rounding
        for parameter in network.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn(parameter.shape, dtype=torch.float64))
    return network


def loss_of(kind: TaskKind, output: NetworkOutput, batch: GraphBatch) -> Tensor:
    assert output.unsupervised_loss is not None
    return supervised_loss(kind, output.scores, batch.y) + output.unsupervised_loss


def seen_by(network: Network, batch: GraphBatch) -> Seen:
    network = deepcopy(network)
    output = network(batch)
    loss = loss_of(network.task.kind, output, batch)
    gradients = torch.autograd.grad(loss, list(network.parameters()), materialize_grads=True)
    beta_hat = [gate.beta_hat.detach() for gate in output.gates]
    buffers = [buffer.clone() for buffer in network.buffers()]
    with torch.no_grad():
        evaluated = network.eval()(batch).scores
    return Seen(output.scores.detach(), beta_hat, loss.detach(), list(gradients), buffers, evaluated)


def seen_together(networks: Sequence[Network], batches: Sequence[GraphBatch]) -> list[Seen]:
    network, _ = stack([deepcopy(each) for each in networks])
    batch, kind = StackedBatch.join(batches), networks[0].task.kind
    outputs = network.outputs_apart(network(batch), batch)
    losses = torch.stack([loss_of(kind, *pair) for pair in zip(outputs, batch.apart, strict=True)])
    gradients = torch.autograd.grad(losses.sum(), list(network.parameters()), materialize_grads=True)
    buffers = [buffer.clone() for buffer in network.buffers()]
    with torch.no_grad():
        evaluated = network.eval().outputs_apart(network(batch), batch)
    return [
        Seen(
            output.scores.detach(),
            [gate.beta_hat.detach() for gate in output.gates],
            losses[seed].detach(),
            [gradient[seed] for gradient in gradients],
            [buffer[seed] for buffer in buffers],
            evaluated[seed].scores,
        )
        for seed, output in enumerate(outputs)
    ]


def padded(graphs: PackedGraphs, batch: GraphBatch) -> GraphBatch:
    size = Shape(len(graphs), batch.num_nodes + 2, batch.num_edges + 3)
    return ResidentGraphs.of(graphs, torch.device("cpu")).gather(torch.arange(len(graphs)), size, padded=True)


def without_padding(seen: Seen, batch: GraphBatch, kind: TaskKind) -> Seen:
    items = {"node_classification": batch.num_nodes, "edge_classification": batch.num_edges}.get(kind, batch.num_graphs)
    beta_hat = [each[: batch.num_edges] for each in seen.beta_hat]
    return seen._replace(scores=seen.scores[:items], evaluated=seen.evaluated[:items], beta_hat=beta_hat)


@pytest.mark.parametrize("semantics", ["paper", "released"])
@pytest.mark.parametrize("backbone", BACKBONES)
@settings(max_examples=15, derandomize=True)
@given(sides=SIDES, settings_of_gate=gated_models(), dataset=st.sampled_from(["zinc", "digits", "cluster", "tsp"]))
def test_every_way_is_the_plain_one(
    backbone: Backbone,
    semantics: Semantics,
    sides: list[list[SmallGraph]],
    settings_of_gate: dict[str, object],
    dataset: str,
) -> None:
    model = trial(dataset, backbone, semantics=semantics, model=settings_of_gate).model
    kind = task_of(dataset).kind
    graphs = [packed(side, dataset, seed) for seed, side in enumerate(sides)]
    batches = [each.gather(torch.arange(len(each))) for each in graphs]
    networks = [network_of(model, dataset, seed) for seed in range(len(sides))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bimp.edge_blocks.BLOCK_EDGES", 3)
        by_kernels = seen_by(networks[0], batches[0])
    together = seen_together(networks, [replace(batch) for batch in batches])
    with pytest.MonkeyPatch.context() as patch:
        without_kernels(patch)
        plain = [seen_by(network, replace(batch)) for network, batch in zip(networks, batches, strict=True)]
        assert_close(seen_together(networks, [replace(batch) for batch in batches]), plain, rtol=1e-7, atol=1e-7)
        if min(batches[0].num_nodes, batches[0].num_edges) > 1:  # others are not padded
            of_padded = seen_by(networks[0], padded(graphs[0], batches[0]))
            assert_close(without_padding(of_padded, batches[0], kind), plain[0], rtol=1e-7, atol=1e-7)
    assert all(gradient.isfinite().all() for gradient in plain[0].gradients)
    assert_close(by_kernels, plain[0], rtol=1e-7, atol=1e-7)
    assert_close(together, plain, rtol=1e-7, atol=1e-7)
