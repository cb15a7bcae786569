from __future__ import annotations

from dataclasses import replace

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from bimp.budget import parameters_of
from bimp.config import ConfigError, TrialConfig, gated_layers
from bimp.tasks import task_of
from study.plan import plan, resolve
from study.plan.cells import Cell
from study.plan.crossing import cross
from study.space import grid, rate_corners, suggest, width_corners
from study.spec import StudySpec, read_study

EVERYTHING_SAMPLED = """\
name: everything
arms:
  dataset: [digits, enzymes]
  backbone: [gcn, gat]
space:
  sigma_m: {log_uniform: [1e-3, 1e3]}
  num_clusters: {log_int: [1, 64]}
  unsupervised_weight: {uniform: [0, 1]}
  gate: {choice: [bilateral, uniform]}
  heads: {choice: [1, 8], when: {backbone: gat}}
  layers: {int: [4, 6]}
  placement: {choice: [none, boosting, [4, 2], dense]}
  hidden_dim: {int: [8, 100]}
  readout: {choice: [mean, sum], when: {placement: [none, [2, 4]]}}
  learning_rate: {log_uniform: [1e-4, 1e-2]}
  batch_size: {choice: [32, 64]}
fixed:
  max_epochs: 5
search: {trials: 4}
"""

GATE_KEYS = {"gate", "num_clusters", "sigma_m", "unsupervised_weight"}


def cell_of(spec: StudySpec, cell_id: str) -> Cell:
    return next(cell for cell in plan(spec).cells if cell.id == cell_id)


def gridded(space: str, arms: str = "") -> tuple[StudySpec, list[Cell]]:
    spec = read_study(
        f"name: n\nsearch: {{sampler: grid}}\narms:\n  dataset: digits\n  hidden_dim: 16\n{arms}space:\n{space}"
    )
    return spec, list(plan(spec).cells)


def fresh_trial(seed: int) -> optuna.trial.Trial:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed)).ask()


SPEC = read_study(EVERYTHING_SAMPLED)
CELLS = plan(SPEC).cells


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        ("learning_rate: {uniform: [0.5, 2]}", FloatDistribution(0.5, 2.0)),
        ("learning_rate: {log_uniform: [1e-3, 1e3]}", FloatDistribution(1e-3, 1e3, log=True)),
        ("batch_size: {int: [2, 9]}", IntDistribution(2, 9)),
        ("batch_size: {log_int: [1, 64]}", IntDistribution(1, 64, log=True)),
        ("readout: {choice: [mean, sum]}", CategoricalDistribution(["mean", "sum"])),
    ],
)
def test_a_domain_is_sampled_as_it_says(domain: str, expected: BaseDistribution) -> None:
    spec = read_study(
        "name: n\nsearch: {trials: 4}\narms: {dataset: digits, backbone: gcn, layers: 2, hidden_dim: 16}\n"
        f"space:\n  {domain}\n"
    )
    (cell,) = plan(spec).cells
    (parameter,) = cell.space.parameters
    trial = fresh_trial(0)
    suggest(cell.space, trial)
    assert trial.distributions == {parameter.key: expected}


@settings(max_examples=150, deadline=None)
@given(cell=st.sampled_from(CELLS), seed=st.integers(0, 2**31 - 1))
def test_any_sampled_configuration_is_a_valid_trial(cell: Cell, seed: int) -> None:
    trial = fresh_trial(seed)
    values = suggest(cell.space, trial)
    config = resolve(cell, values, SPEC, seed=41, fold=None)
    assert TrialConfig.from_dict(config.to_dict()) == config

    # Optuna was asked for what exists, and for nothing else.
    expected = {"placement", "layers", "hidden_dim", "learning_rate", "batch_size"}
    if values["placement"] != "none":
        expected |= {"gate", "num_clusters", "unsupervised_weight"}
        if values["gate"] == "bilateral":
            expected |= {"sigma_m"}
    if cell.backbone == "gat":
        expected |= {"heads"}
    if values["placement"] in ("none", (2, 4)):
        expected |= {"readout"}
    assert set(values) == set(trial.params) == expected

    if values["placement"] == "none":
        assert (config.model.gate, config.model.num_clusters, config.model.sigma_m) == (None, None, None)
        assert config.train.unsupervised_weight is None
    else:
        assert config.model.num_clusters == values["num_clusters"]
        assert config.train.unsupervised_weight == values["unsupervised_weight"]
        assert config.model.gated_layers == gated_layers(config.model.placement, config.model.layers)
    assert config.model.heads == values.get("heads", 1)
    assert (config.train.max_epochs, config.train.lr_patience) == (5, task_of(cell.dataset).protocol.lr_patience)


@settings(max_examples=20, deadline=None)
@given(
    budget=st.integers(3_000, 200_000),
    clusters=st.integers(1, 40),
    backbone=st.sampled_from(["gcn", "graphsage", "gat", "gated_gcn"]),
)
def test_width_is_the_largest_within_the_budget(budget: int, clusters: int, backbone: str) -> None:
    spec = read_study(
        f"name: n\narms: {{dataset: digits, backbone: {backbone}, placement: dense, layers: 2, budget: 1000000}}\n"
        "fixed: {num_clusters: 4}\n"
    )
    cell = plan(spec).cells[0]
    try:
        model = resolve(cell, {"budget": budget, "num_clusters": clusters}, spec, seed=0, fold=None).model
    except ConfigError as error:
        assert error.key == "budget"  # noqa: PT017 - either outcome is right, each with its own check
        return
    wider = resolve(cell, {"hidden_dim": model.hidden_dim + 1, "num_clusters": clusters}, spec, seed=0, fold=None).model
    task = task_of("digits")
    assert parameters_of(model, task) <= budget < parameters_of(wider, task)


def test_placement_is_sampled_before_what_it_decides_however_they_stand() -> None:
    keys = [parameter.key for parameter in CELLS[0].space.parameters]
    assert keys == [
        "layers",
        "placement",
        "num_clusters",
        "unsupervised_weight",
        "gate",
        "sigma_m",
        "hidden_dim",
        "readout",
        "learning_rate",
        "batch_size",
    ]


def test_explicit_layers_are_words_to_optuna() -> None:
    fixed = {
        "layers": 4,
        "placement": "2,4",
        "num_clusters": 8,
        "unsupervised_weight": 0.5,
        "gate": "uniform",
        "hidden_dim": 16,
        "readout": "sum",
        "learning_rate": 1e-3,
        "batch_size": 32,
    }
    assert suggest(CELLS[0].space, optuna.trial.FixedTrial(fixed)) == {**fixed, "placement": (2, 4)}


def test_grid_counts_what_is_active() -> None:
    _, cells = gridded(
        "  num_clusters: {int: [2, 4]}\n"
        "  sigma_m: {choice: [0.1, 1]}\n"
        "  gate: {choice: [bilateral, uniform]}\n"
        "  placement: {choice: [none, boosting]}\n"
        "  layers: {choice: [2, 4]}\n",
        arms="  backbone: gcn\n",
    )
    configurations = grid(cells[0].space)
    # Per depth: one vanilla; three K times (two sigma_m where the gate is bilateral, plus one uniform gate).
    assert len(configurations) == cells[0].trials == 2 * (1 + 3 * (2 + 1))
    assert [entry for entry in configurations if entry["placement"] == "none"] == [
        {"placement": "none", "layers": 2},
        {"placement": "none", "layers": 4},
    ]
    assert all("sigma_m" not in entry for entry in configurations if entry.get("gate") == "uniform")
    assert configurations == grid(cells[0].space)
    assert len({tuple(sorted(entry.items())) for entry in configurations}) == len(configurations)


def test_grid_is_in_the_order_of_the_file() -> None:
    _, cells = gridded(
        "  layers: {int: [1, 2]}\n  batch_size: {choice: [8, 4], when: {layers: 2}}\n", arms="  backbone: gcn\n"
    )
    assert grid(cells[0].space) == [{"layers": 1}, {"layers": 2, "batch_size": 8}, {"layers": 2, "batch_size": 4}]


def test_condition_on_an_arm_parts_the_cells() -> None:
    _, cells = gridded(
        "  heads: {choice: [2, 4, 8], when: {backbone: gat}}\n", arms="  backbone: [gcn, gat]\n  layers: 2\n"
    )
    assert [(cell.id, cell.trials) for cell in cells] == [("digits-gcn-none-L2-h16", 0), ("digits-gat-none-L2-h16", 3)]


def test_what_a_condition_on_an_arm_keeps_from_a_cell_has_its_default_there() -> None:
    """GAT is never gated: one vanilla cell, whatever the gate."""
    _, cells = gridded(
        "  placement: {choice: [boosting, dense], when: {backbone: gcn}}\n",
        arms="  backbone: [gcn, gat]\n  gate: [bilateral, uniform]\n  layers: 2\n  num_clusters: 3\n",
    )
    assert [(cell.id, cell.trials) for cell in cells] == [
        ("digits-gcn-L2-h16-K3", 2),
        ("digits-gcn-L2-h16-uniform-K3", 2),
        ("digits-gat-none-L2-h16", 0),
    ]
    assert [cell.placement for cell in cells] == [None, None, "none"]
    assert cells[2].setting("num_clusters") is None
    _, cells = gridded(
        "  sigma_m: {choice: [0.5, 2.0], when: {backbone: gcn}}\n",
        arms="  backbone: [gcn, gat]\n  placement: boosting\n  layers: 2\n  num_clusters: 3\n",
    )
    assert [(cell.trials, cell.setting("sigma_m")) for cell in cells] == [(2, None), (0, 1.0)]


def test_condition_on_null_does_not_hold_where_the_key_stands_nowhere() -> None:
    _, cells = gridded(
        "  batch_size: {choice: [8, 16], when: {pos_enc_dim: null}}\n",
        arms="  backbone: gcn\n  layers: 2\nrows: [{pos_enc_dim: [null, 4]}, {placement: none}]\n",
    )
    assert [(cell.id, cell.trials) for cell in cells] == [
        ("digits-gcn-none-L2-h16-penone", 2),
        ("digits-gcn-none-L2-h16-pe4", 0),
        ("digits-gcn-none-L2-h16", 0),
    ]


def test_condition_on_a_key_that_is_not_sampled_does_not_hold() -> None:
    _, cells = gridded(
        "  placement: {choice: [none, boosting]}\n"
        "  num_clusters: {choice: [2, 3]}\n"
        "  batch_size: {choice: [8, 16], when: {num_clusters: 2}}\n",
        arms="  backbone: gcn\n  layers: 2\n",
    )
    assert grid(cells[0].space) == [
        {"placement": "none"},
        {"placement": "boosting", "num_clusters": 2, "batch_size": 8},
        {"placement": "boosting", "num_clusters": 2, "batch_size": 16},
        {"placement": "boosting", "num_clusters": 3},
    ]


def test_grid_refuses_a_continuous_range() -> None:
    with pytest.raises(ConfigError, match=r"^unsupervised_weight: found a continuous range"):
        grid(CELLS[0].space)


def test_corners_hold_the_ends_of_what_decides_the_width() -> None:
    spec = read_study(
        "name: n\nsearch: {trials: 1}\narms: {dataset: digits, backbone: gcn, placement: boosting}\n"
        "space:\n  layers: {int: [2, 9]}\n  num_clusters: {int: [3, 20], when: {layers: [2, 5, 9]}}\n"
        "  hidden_dim: {int: [8, 16]}\n  learning_rate: {uniform: [0.1, 0.2]}\n"
    )
    space = cross(spec)[0].space
    assert [(entry["layers"], entry.get("num_clusters"), entry["hidden_dim"]) for entry in width_corners(space)] == [
        (layers, clusters, width)
        for layers in (2, 9, 5, 3, 8)
        for clusters in ((3, 20) if layers in (2, 5, 9) else (None,))
        for width in (8, 16)
    ]
    assert [entry["learning_rate"] for entry in rate_corners(space) if entry["layers"] == 2] == [0.1, 0.2]


def test_fixed_and_protocol_and_defaults_meet_in_the_trial() -> None:
    spec = read_study(
        "name: n\narms: {dataset: enzymes, backbone: [gat, gcn], placement: [none, [3, 1]], hidden_dim: 16}\n"
        "fixed: {layers: 4, num_clusters: 12, lr_factor: 0.8, time_limit_s: 60, readout: sum, heads: 2}\n"
    )
    gated = resolve(cell_of(spec, "enzymes-gat-layers1.3-L4-h16"), {}, spec, seed=7, fold=3)
    assert gated.to_dict() == {
        "dataset": "enzymes",
        "model": {
            "backbone": "gat",
            "layers": 4,
            "hidden_dim": 16,
            "heads": 2,
            "placement": [1, 3],
            "gate": "bilateral",
            "num_clusters": 12,
            "sigma_m": 1.0,
            "readout": "sum",
            "head": "mlp",
            "pos_enc_dim": None,
            "out_dim": None,
            "semantics": "paper",
            "last_width": "row_dim",
            "gcn_normalisation": "mean",
            "concatenated_row": "input",
            "edge_gate": "updated",
            "edge_features": "given",
            "attention_slope": 0.2,
            "attention_bias": False,
            "gated_attention_slope": 0.2,
            "gated_attention_bias": True,
            "assignment_bias": True,
            "assignment_width": "hidden_dim",
            "metric_bias": False,
            "metric_relu": False,
            "distance_epsilon": 0.0,
            "gate_normalisation": "sigmoid",
            "gate_epsilon": 0.0,
            "cut_scope": "graph",
            "cut_adjacency": "normalised",
            "cut_epsilon": 0.0,
        },
        "train": {
            "max_epochs": 1000,
            "batch_size": 20,
            "learning_rate": 7e-4,
            "lr_factor": 0.8,
            "lr_patience": 25,
            "min_lr": 1e-6,
            "unsupervised_weight": 1.0,
            "time_limit_s": 60.0,
            "reduction": "dataset",
            "validation_loss": "supervised",
            "clip_norm": None,
            "report": "last",
        },
        "seed": 7,
        "fold": 3,
    }
    vanilla = resolve(cell_of(spec, "enzymes-gcn-none-L4-h16"), {}, spec, seed=7, fold=3)
    assert (vanilla.model.heads, vanilla.model.num_clusters, vanilla.train.unsupervised_weight) == (1, None, None)


def test_gat_has_the_benchmarks_heads_unless_given() -> None:
    spec = read_study("name: n\narms: {dataset: digits, backbone: gat, hidden_dim: 8, layers: 2}\n")
    assert resolve(plan(spec).cells[0], {}, spec, seed=0, fold=None).model.heads == 8


RELEASED = """
name: n
arms:
  dataset: zinc
  backbone: [gcn, gat]
  placement: [none, boosting]
  hidden_dim: 8
  layers: 2
fixed: {semantics: released, num_clusters: 3, metric_bias: false, gcn_normalisation: symmetric, clip_norm: 1.0}
"""


def test_released_sets_every_field_and_single_ones_depart() -> None:
    spec = read_study(RELEASED)

    def trial(cell: str) -> TrialConfig:
        return resolve(cell_of(spec, f"zinc-{cell}-L2-h8"), {}, spec, seed=0, fold=None)

    bi_gcn = trial("gcn-boosting")
    assert bi_gcn.departures == {"metric_bias": False, "gcn_normalisation": "symmetric", "clip_norm": 1.0}
    assert bi_gcn.settings == {
        "head": "mlp", "gcn_normalisation": "symmetric", "assignment_bias": True, "metric_bias": False,
        "metric_relu": False, "distance_epsilon": 0.0, "gate_normalisation": "sigmoid", "gate_epsilon": 1e-6,
        "cut_scope": "batch", "cut_adjacency": "raw", "cut_epsilon": 0.0, "reduction": "batch",
        "validation_loss": "total", "clip_norm": 1.0, "report": "last",
    }  # fmt: skip
    # A key that means nothing beside the others is dropped: no gate here, no GCN there.
    assert trial("gcn-none").departures == {"gcn_normalisation": "symmetric", "clip_norm": 1.0}
    assert trial("gat-boosting").departures == {"metric_bias": False, "clip_norm": 1.0}
    assert trial("gat-none").departures == {"clip_norm": 1.0}


def test_settings_can_be_arms_and_searched() -> None:
    spec = read_study(
        "name: n\narms: {dataset: zinc, backbone: [gcn, gat], placement: [none, boosting], hidden_dim: 8, layers: 2, "
        "gcn_normalisation: [mean, symmetric], semantics: [paper, released]}\n"
        "space: {metric_bias: {choice: [true, false]}, gate_epsilon: {log_uniform: [1e-9, 1e-3]}, "
        "num_clusters: {int: [2, 4]}}\nsearch: {trials: 3}\n"
    )
    ids = [cell.id for cell in plan(spec).cells]
    assert ids[:4] == [
        "zinc-gcn-none-L2-h8-gcn_normalisation_mean-paper",
        "zinc-gcn-none-L2-h8-gcn_normalisation_mean-released",
        "zinc-gcn-none-L2-h8-gcn_normalisation_symmetric-paper",
        "zinc-gcn-none-L2-h8-gcn_normalisation_symmetric-released",
    ]
    assert ids[-2:] == ["zinc-gat-boosting-L2-h8-paper", "zinc-gat-boosting-L2-h8-released"]
    assert len(ids) == 12
    searched = {cell.id: [entry.key for entry in cell.space.parameters] for cell in plan(spec).cells}
    assert searched[ids[0]] == []
    assert searched[ids[-1]] == ["metric_bias", "gate_epsilon", "num_clusters"]
    values = {"metric_bias": True, "gate_epsilon": 1e-4, "num_clusters": 3}
    trial = resolve(cell_of(spec, ids[-2]), values, spec, seed=0, fold=None)
    assert trial.departures == {"metric_bias": True, "gate_epsilon": 1e-4}


def test_a_budget_counts_what_a_setting_adds() -> None:
    spec = read_study(
        "name: n\narms: {dataset: cluster, backbone: gat, placement: boosting, budget: 100000, layers: 4, "
        "last_width: [row_dim, hidden_dim]}\nfixed: {num_clusters: 8, heads: 4}\n"
    )
    wide, narrow = (resolve(cell, {}, spec, seed=0, fold=None).model for cell in plan(spec).cells)
    for model in (wide, narrow):
        assert parameters_of(model, task_of("cluster")) <= 100_000
        wider = replace(model, hidden_dim=model.hidden_dim + 1)
        assert parameters_of(wider, task_of("cluster")) > 100_000
    # A narrow last layer leaves parameters for the others.
    assert narrow.hidden_dim > wide.hidden_dim
