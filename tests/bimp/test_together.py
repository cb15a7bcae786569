"""Seeds trained together against the same seeds trained one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bimp.config import BACKBONES, Backbone, ModelConfig, TrainConfig, TrialConfig
from bimp.data import GraphSplit, PackedGraphs
from bimp.data.positional import positional_encodings
from bimp.engine import EpochResult, Evaluation, fit
from bimp.semantics import Semantics, preset
from bimp.stack.together import SeedRun, fit_together
from bimp.tasks import task_of

DATASETS = ("digits", "zinc", "cluster", "tsp", "enzymes")
EVERY_BACKBONE = pytest.mark.parametrize("backbone", BACKBONES)


def graphs(dataset: str, count: int, encodings: int = 0) -> PackedGraphs:
    """Random graphs of 1 to 9 nodes with the inputs and labels of ``dataset``; some have no edge."""
    task, draw = task_of(dataset), np.random.default_rng(7)
    made = []
    for _ in range(count):
        nodes = int(draw.integers(1, 10))
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
    model = ModelConfig(
        backbone=backbone, layers=3, hidden_dim=hidden_dim, heads=heads, semantics=semantics, **gate, **of_model
    )  # type: ignore[arg-type]
    train = TrainConfig(
        max_epochs=3,
        batch_size=5,
        learning_rate=1e-3,
        lr_patience=1,
        **{"unsupervised_weight": 0.5 if gated else None, **of_training, **changes},  # type: ignore[arg-type]
    )
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
    for number, result in fit_together(runs):
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


@EVERY_BACKBONE
@pytest.mark.parametrize("dataset", DATASETS)
def test_equals_one_by_one(dataset: str, backbone: Backbone) -> None:
    runs = seed_runs(config_of(dataset, backbone), graphs(dataset, 20))
    assert_same_runs(together(runs), apart(runs))


@EVERY_BACKBONE
def test_equals_one_by_one_without_a_gate(backbone: Backbone) -> None:
    runs = seed_runs(config_of("zinc", backbone, gated=False), graphs("zinc", 20))
    assert_same_runs(together(runs), apart(runs))


@EVERY_BACKBONE
@pytest.mark.parametrize("dataset", ["zinc", "cluster"])
def test_equals_one_by_one_by_the_released_code(dataset: str, backbone: Backbone) -> None:
    runs = seed_runs(config_of(dataset, backbone, semantics="released"), graphs(dataset, 20))
    assert_same_runs(together(runs), apart(runs))
