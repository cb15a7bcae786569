"""What the paper's tables cost: which models, how many runs, how many steps."""

from __future__ import annotations

import pytest

from benchmarks.graphs import drawn_graphs
from benchmarks.paper_cost import SPLITS, Cost, batched, drawn_for, strict
from benchmarks.paper_models import PaperModel, paper_models
from reports.published.rows import paper_datasets


@pytest.fixture(scope="module")
def models() -> tuple[PaperModel, ...]:
    return paper_models()


def test_76_models_in_448_runs(models: tuple[PaperModel, ...]) -> None:
    assert len(models) == 76
    assert sum(model.runs for model in models) == 448
    assert sum(model.runs == 4 for model in models) == 52


def test_every_model_has_the_width_and_batch_of_its_printed_row(models: tuple[PaperModel, ...]) -> None:
    for model in models:
        config, row = model.config, model.row
        assert (config.model.hidden_dim, config.train.batch_size) == (row.hidden_dim, row.batch_size), row.name


def test_gated_tsp_graph_by_graph_is_36_million_steps(models: tuple[PaperModel, ...]) -> None:
    costs = [
        Cost(model=model, batch_size=size, seconds_an_epoch=0.36)
        for model in models
        if model.config.dataset == "tsp"
        for size in {model.config.train.batch_size, 64}
    ]
    single = [cost for cost in costs if cost.batch_size == 1]
    assert sum(cost.steps for cost in single) == pytest.approx(36e6, rel=0.01)
    assert {cost.batch_size for cost in batched(costs)} == {64}
    assert len(strict(costs)) == len(batched(costs)) == 8
    # Each of four seeds trains epochs 0 to 199 as printed: 800 epochs of 0.36 s are 0.08 hours.
    bi_gcn = next(cost for cost in single if cost.model.row.row == "bi-GCN")
    assert bi_gcn.hours == pytest.approx(0.08)


def test_a_shortened_epoch_is_made_of_whole_batches() -> None:
    assert [drawn_for(size) for size in (1, 20, 64)] == [24, 60, 192]


@pytest.mark.parametrize("dataset", SPLITS)
def test_drawn_graphs_are_of_the_published_size(dataset: str) -> None:
    published = next(line for line in paper_datasets() if line.dataset.lower() == dataset)
    graphs = drawn_graphs(dataset, 400 if dataset in ("dd", "enzymes", "proteins") else 100)
    nodes, edges = float(graphs.node_counts.double().mean()), float(graphs.edge_counts.double().mean())
    assert nodes == pytest.approx(published.nodes, rel=0.06)
    assert edges == pytest.approx(published.edges * (1 if published.edges_directed else 2), rel=0.06)
