from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from bimp.budget import count_parameters, parameters_of, solve_hidden_dim
from bimp.config import BACKBONES, GAT_HEADS, ConfigError, ModelConfig, Placement
from bimp.network import Network
from bimp.tasks import TASKS, TaskSpec

TSP = replace(TASKS["digits"], dataset="tsp", kind="edge_classification", node_dim=2, num_outputs=2, metric="f1")
BY_NAME = {**TASKS, "tsp": TSP}


def model_of(
    backbone: str, layers: int, hidden_dim: int, placement: Placement = "none", num_clusters: int | None = None
) -> ModelConfig:
    return ModelConfig(
        backbone=backbone,
        layers=layers,
        hidden_dim=hidden_dim,
        heads=GAT_HEADS if backbone == "gat" else 1,
        placement=placement,
        gate=None if placement == "none" else "bilateral",
        num_clusters=num_clusters,
        sigma_m=None if placement == "none" else 1.0,
    )


@pytest.mark.parametrize(
    ("dataset", "backbone", "layers", "hidden_dim", "printed"),
    [
        ("zinc", "gcn", 4, 145, 103077),
        ("zinc", "graphsage", 4, 85, 94977),
        ("zinc", "gat", 4, 18, 102385),
        ("zinc", "gated_gcn", 4, 70, 105875),
        ("zinc", "gcn", 16, 172, 505079),
        ("zinc", "gat", 16, 22, 531345),
        ("cluster", "gcn", 16, 172, 501687),
        ("cluster", "graphsage", 16, 101, 503350),
        ("enzymes", "gcn", 4, 146, 103407),
        ("enzymes", "gat", 4, 18, 101274),
        ("enzymes", "gated_gcn", 4, 69, 103409),
        ("tsp", "gcn", 4, 120, 95702),
        ("tsp", "graphsage", 4, 82, 99263),
        ("tsp", "gat", 4, 15, 96182),
        ("tsp", "gated_gcn", 4, 65, 97858),
    ],
)
def test_vanilla_counts_are_the_papers(dataset: str, backbone: str, layers: int, hidden_dim: int, printed: int) -> None:
    assert parameters_of(model_of(backbone, layers, hidden_dim), BY_NAME[dataset]) == printed


@pytest.mark.parametrize(
    ("dataset", "backbone", "layers", "hidden_dim", "placement", "num_clusters", "printed"),
    [
        ("zinc", "gcn", 4, 145, "boosting", 9, 125651),
        ("zinc", "graphsage", 16, 101, "boosting", 9, 516651),
        ("zinc", "gat", 4, 18, "boosting", 9, 105256),
        ("zinc", "gated_gcn", 4, 70, "boosting", 9, 111574),
        ("zinc", "gated_gcn", 4, 70, "interleaved", 9, 117273),
        ("zinc", "gated_gcn", 4, 70, "dense", 9, 128671),
        ("cluster", "gcn", 16, 166, "boosting", 46, 505149),
        ("enzymes", "gated_gcn", 4, 68, "boosting", 12, 106237),
        ("tsp", "graphsage", 4, 82, "boosting", 124, 131861),
    ],
)
def test_bilateral_counts_are_the_papers_less_the_bias_of_its_code(
    dataset: str,
    backbone: str,
    layers: int,
    hidden_dim: int,
    placement: Placement,
    num_clusters: int,
    printed: int,
) -> None:
    model = model_of(backbone, layers, hidden_dim, placement, num_clusters)
    biases_of_the_metric = num_clusters * len(model.gated_layers)
    assert parameters_of(model, BY_NAME[dataset]) == printed - biases_of_the_metric


@pytest.mark.parametrize("backbone", BACKBONES)
def test_counted_without_memory_as_on_a_built_network(backbone: str) -> None:
    model = model_of(backbone, 3, 12, "dense", 5)
    state = torch.get_rng_state()
    counted = parameters_of(model, TASKS["zinc"])
    assert torch.equal(torch.get_rng_state(), state)
    assert counted == count_parameters(Network(model, TASKS["zinc"]))


def test_counts_what_is_trained() -> None:
    layer = nn.Linear(3, 2)
    layer.bias.requires_grad_(False)
    assert count_parameters(layer) == 6


@settings(max_examples=30, deadline=None)
@given(
    backbone=st.sampled_from(BACKBONES),
    layers=st.integers(2, 6),
    placement=st.sampled_from(["none", "boosting", "interleaved", "dense"]),
    num_clusters=st.integers(1, 60),
    head=st.sampled_from(["mlp", "linear"]),
    dataset=st.sampled_from(sorted(BY_NAME)),
    budget=st.integers(60_000, 600_000),
)
def test_widest_within_the_budget(
    backbone: str, layers: int, placement: Placement, num_clusters: int, head: str, dataset: str, budget: int
) -> None:
    open_width = model_of(backbone, layers, 1, placement, None if placement == "none" else num_clusters)
    open_width = replace(open_width, head=head)
    solved = solve_hidden_dim(open_width, BY_NAME[dataset], budget)
    assert replace(solved, hidden_dim=1) == open_width
    wider = replace(solved, hidden_dim=solved.hidden_dim + 1)
    assert parameters_of(solved, BY_NAME[dataset]) <= budget < parameters_of(wider, BY_NAME[dataset])


@pytest.mark.parametrize("dataset", ["zinc", "tsp"])
def test_narrowest_network_is_found_and_one_parameter_less_is_refused(dataset: str) -> None:
    task: TaskSpec = BY_NAME[dataset]
    narrowest = model_of("gcn", 2, 2 if dataset == "tsp" else 4)
    smallest = parameters_of(narrowest, task)
    assert solve_hidden_dim(model_of("gcn", 2, 99), task, smallest) == narrowest
    with pytest.raises(ConfigError, match=f"budget: found {smallest - 1}, expected {smallest} or more") as caught:
        solve_hidden_dim(model_of("gcn", 2, 99), task, smallest - 1)
    assert caught.value.key == "budget"


def test_counting_loads_no_compiler() -> None:
    """PyTorch would draw initial values of a network without memory by way of it: 70 MiB and a second of every run."""
    code = (
        "import sys\n"
        "from bimp.budget import parameters_of\n"
        "from bimp.config import BACKBONES, ModelConfig\n"
        "from bimp.tasks import TASKS\n"
        "for backbone in BACKBONES:\n"
        "    for name in ('zinc', 'digits'):\n"
        "        parameters_of(ModelConfig(backbone=backbone, layers=4, hidden_dim=18, heads=1), TASKS[name])\n"
        "print('torch._dynamo' in sys.modules, 'sympy' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["False", "False"]
