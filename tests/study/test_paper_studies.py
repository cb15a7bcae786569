"""The studies of the paper's tables against the published facts, row by row, and the searches against what is fair."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bimp.budget import parameters_of, solve_hidden_dim
from bimp.config import GAT_HEADS, ModelConfig, TrialConfig
from bimp.head import smallest_hidden_dim
from bimp.tasks import TASKS, TaskSpec
from reports.published.rows import PAPER_TABLES, PaperRow, paper_rows
from study.plan import StudyPlan, plan, resolve
from study.plan.cells import Cell
from study.spec import StudySpec, load_study

FOLDER = Path(__file__).parents[2] / "search_spaces"
COUNTED = Path(__file__).parents[1] / "bimp" / "paper_configs.csv"

# Which file holds which rows of which of the paper's tables.
STUDIES = {
    "paper_zinc": ("graph_level", "zinc"),
    "paper_smnist": ("graph_level", "smnist"),
    "paper_cifar10": ("graph_level", "cifar10"),
    "paper_tsp": ("node_edge_level", "tsp"),
    "paper_cluster": ("node_edge_level", "cluster"),
    "paper_zinc_placement": ("placement", "zinc"),
    "paper_dd": ("small", "dd"),
    "paper_enzymes": ("small", "enzymes"),
    "paper_proteins": ("small", "proteins"),
}

# Patience, least learning rate and most epochs of the paper's training.
SCHEDULES = {
    **dict.fromkeys(("zinc", "smnist", "cifar10"), (10, 1e-5, 1000)),
    "tsp": (10, 1e-5, 500),
    "cluster": (5, 1e-5, 1000),
    **dict.fromkeys(("dd", "enzymes", "proteins"), (25, 1e-6, 1000)),
}

SEARCHES = ("zinc", "smnist", "cifar10", "tsp", "cluster", "pattern", "dd", "enzymes", "proteins")
ONE_SIZE = ("zinc_100k", "cluster_500k", "enzymes_100k")
BACKBONES = ("gcn", "graphsage", "gat", "gated_gcn")


def published(study: str) -> list[PaperRow]:
    table, dataset = STUDIES[study]
    return [row for row in paper_rows() if row.table == table and row.dataset.lower() == dataset]


def trials(spec: StudySpec) -> Iterator[tuple[Cell, TrialConfig]]:
    for cell in plan(spec).cells:
        seed, fold = cell.confirm_runs[0]
        yield cell, resolve(cell, {}, spec, seed=seed, fold=fold)


def as_planned(cell: Cell, trial: TrialConfig) -> tuple[Any, ...]:
    """What the paper's tables say of a model, as a study would run it."""
    model, train = trial.model, trial.train
    return (
        model.backbone,
        model.placement,
        model.layers,
        model.hidden_dim,
        model.heads,
        model.num_clusters,
        model.sigma_m,
        model.pos_enc_dim or 0,
        train.batch_size,
        train.learning_rate,
        cell.params.single,
    )


def as_published(row: PaperRow) -> tuple[Any, ...]:
    return (
        row.backbone,
        row.placement,
        row.layers,
        row.hidden_dim,
        row.heads,
        row.num_clusters,
        row.sigma_m,
        row.pos_enc_dim,
        row.batch_size,
        row.learning_rate,
        row.params_true,
    )


def test_the_files_hold_the_tables_whole() -> None:
    assert sorted(path.stem for path in FOLDER.glob("paper_*.yaml")) == sorted(STUDIES)
    assert {row.table for row in paper_rows()} == set(PAPER_TABLES)
    assert sum(len(published(study)) for study in STUDIES) == len(paper_rows()) == 80


@pytest.mark.parametrize("study", STUDIES)
def test_every_published_row_is_planned_exactly_once(study: str) -> None:
    planned = Counter(as_planned(cell, trial) for cell, trial in trials(load_study(FOLDER / f"{study}.yaml")))
    assert planned == Counter(as_published(row) for row in published(study))
    assert set(planned.values()) == {1}


@pytest.mark.parametrize("study", STUDIES)
def test_counts_and_k_are_those_of_the_networks_that_were_counted(study: str) -> None:
    """Against the second list of facts, which names the tables' rows by itself."""
    with COUNTED.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if (row["table"], row["dataset"].lower()) == STUDIES[study]]
    expected = [
        (row["backbone"], row["placement"], int(row["layers"]), row["num_clusters"], int(row["params_true"]))
        for row in rows
    ]
    found = [
        (
            cell.backbone,
            cell.placement,
            cell.setting("layers"),
            str(cell.setting("num_clusters") or ""),
            cell.params.single,
        )
        for cell in plan(load_study(FOLDER / f"{study}.yaml")).cells
    ]
    assert Counter(found) == Counter(expected)


@pytest.mark.parametrize("study", STUDIES)
def test_rows_are_trained_by_the_papers_protocol(study: str) -> None:
    dataset = STUDIES[study][1]
    is_small = STUDIES[study][0] == "small"
    spec = load_study(FOLDER / f"{study}.yaml")
    for cell, trial in trials(spec):
        model, train = trial.model, trial.train
        assert (train.lr_patience, train.min_lr, train.max_epochs) == SCHEDULES[dataset]
        assert (train.lr_factor, train.time_limit_s) == (0.5, 12 * 60 * 60)
        assert (model.semantics, trial.departures, cell.trials) == ("released", {}, 0)
        assert cell.seeds == ((41,) if is_small else (41, 95, 12, 35))
        assert cell.folds == (tuple(range(10)) if is_small else None)
        is_gated = model.placement != "none"
        assert (model.gate, train.unsupervised_weight) == (("bilateral", 1.0) if is_gated else (None, None))
        assert model.readout == ("sum" if dataset == "dd" and is_gated else "mean")
        # The number of runs behind a printed mean.
        assert {row.runs for row in published(study)} == {len(cell.confirm_runs)}


@pytest.fixture
def unsized(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan without solving any budget: a search has hundreds of networks, whose widths matter to no test here."""

    def width(model: ModelConfig, task: TaskSpec, budget: int) -> int:
        return smallest_hidden_dim(model, task)

    def count(model: ModelConfig, task: TaskSpec) -> int:
        return 0

    monkeypatch.setattr("study.configuration._width", width)
    monkeypatch.setattr("study.plan.planning._count", count)


def arm(cell: Cell) -> tuple[Any, ...]:
    """What a cell is compared by, beside backbone and size."""
    searches_placement = "placement" in {parameter.key for parameter in cell.space.parameters}
    return (
        "searched" if searches_placement else cell.placement,
        cell.setting("gate"),
        cell.setting("unsupervised_weight"),
        cell.setting("gcn_normalisation"),
    )


def controlled(placement: str) -> list[tuple[Any, ...]]:
    return [
        (placement, "bilateral", 1.0, None),
        (placement, "uniform", 1.0, None),
        (placement, "bilateral", 0.0, None),
    ]


def by_size_and_backbone(planned: StudyPlan) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for cell in planned.cells:
        groups.setdefault((cell.setting("budget"), cell.setting("layers"), cell.backbone), []).append(arm(cell))
    return groups


@pytest.mark.usefixtures("unsized")
@pytest.mark.parametrize("dataset", SEARCHES)
def test_a_search_has_every_control_at_both_sizes(dataset: str) -> None:
    planned = plan(load_study(FOLDER / f"{dataset}.yaml"))
    assert {cell.dataset for cell in planned.cells} == {dataset}
    vanilla, symmetric = ("none", None, None, None), ("none", None, None, "symmetric")
    for (budget, layers, backbone), arms in by_size_and_backbone(planned).items():
        assert (budget, layers) in {(100_000, 4), (500_000, 16)}
        expected = [vanilla, *controlled("searched"), *([symmetric] if backbone == "gcn" else [])]
        assert Counter(arms) == Counter(expected)
    assert len(planned.cells) == 2 * (4 * len(BACKBONES) + 1)


@pytest.mark.parametrize("dataset", SEARCHES)
def test_no_budget_of_a_search_is_too_small(dataset: str) -> None:
    """The narrowest network with the most gates and the most clusters keeps to it, and so does every other."""
    spec = load_study(FOLDER / f"{dataset}.yaml")
    most_clusters = (spec.space["num_clusters"].bounds or (0, 0))[1]
    for row in spec.rows:
        (layers,), (budget,) = row["layers"], row["budget"]
        assert isinstance(layers, int)
        assert isinstance(budget, int)
        model = ModelConfig(
            backbone="gated_gcn",
            layers=layers,
            hidden_dim=1,
            heads=1,
            placement="dense",
            gate="bilateral",
            num_clusters=most_clusters,
            sigma_m=1.0,
        )
        assert _smallest(model, TASKS[dataset]) <= budget
        assert _smallest(replace(model, backbone="gat", heads=GAT_HEADS), TASKS[dataset]) <= budget


def _smallest(model: ModelConfig, task: TaskSpec) -> int:
    return parameters_of(replace(model, hidden_dim=smallest_hidden_dim(model, task)), task)


@pytest.mark.usefixtures("unsized")
@pytest.mark.parametrize("study", [*SEARCHES, *ONE_SIZE])
def test_cells_are_searched_with_equal_effort(study: str) -> None:
    """As many trials each, on the same ranges: a vanilla cell lacks those of the gate, and no other."""
    spec = load_study(FOLDER / f"{study}.yaml")
    assert spec.search is not None
    of_the_gate = {"placement", "sigma_m", "num_clusters"}
    for cell in plan(spec).cells:
        searched = {parameter.key for parameter in cell.space.parameters}
        assert cell.trials == spec.search.trials
        assert searched - of_the_gate == {key for key in spec.space if cell.backbone == "gat" or key != "heads"} - (
            of_the_gate
        )
        if cell.placement == "none":
            assert not searched & of_the_gate
        else:
            assert ("sigma_m" in searched) == (cell.setting("gate") == "bilateral")
            assert "num_clusters" in searched


@pytest.mark.usefixtures("unsized")
@pytest.mark.parametrize("study", ONE_SIZE)
def test_a_study_of_one_size_has_every_control(study: str) -> None:
    placements = ("boosting", "interleaved", "2,4") if study == "cluster_500k" else ("boosting",)
    for (_, _, backbone), arms in by_size_and_backbone(plan(load_study(FOLDER / f"{study}.yaml"))).items():
        expected: list[tuple[Any, ...]] = [("none", None, None, None)]
        expected += [("none", None, None, "symmetric")] if backbone == "gcn" else []
        expected += [control for placement in placements for control in controlled(placement)]
        assert Counter(arms) == Counter(expected)


def test_every_dataset_of_the_paper_has_a_search() -> None:
    assert set(SEARCHES) == set(TASKS) - {"digits"}
    assert {dataset for _, dataset in STUDIES.values()} == set(SEARCHES) - {"pattern"}


def test_both_gates_have_one_width() -> None:
    """They have the same parameters, so that one solution of the budget serves both."""
    bilateral = ModelConfig(
        backbone="gat",
        layers=4,
        hidden_dim=1,
        heads=8,
        placement="dense",
        gate="bilateral",
        num_clusters=9,
        sigma_m=1.0,
    )
    uniform = replace(bilateral, gate="uniform")
    widths = {solve_hidden_dim(model, TASKS["zinc"], 100_000).hidden_dim for model in (bilateral, uniform)}
    assert len(widths) == 1
