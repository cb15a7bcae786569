from __future__ import annotations

import io
import json
import pickle
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray.tune.schedulers import AsyncHyperBandScheduler
from rich.console import Console

from study.plan import plan, plan_document, plan_json, render_plan
from study.plan.cells import Cell, StudyPlan
from study.plan.rungs import milestones
from study.spec import AshaSpec, read_study

QUICK = """\
name: quick
caption: a few cells
arms:
  dataset: digits
  backbone: [gcn, gated_gcn]
  placement: [none, boosting]
  gate: [bilateral, uniform]
  budget: 100000
  layers: 4
space:
  sigma_m: {log_uniform: [0.1, 10]}
  num_clusters: {int: [2, 16]}
  learning_rate: {log_uniform: [3e-4, 3e-3]}
fixed:
  max_epochs: 12
search: {trials: 8, asha: {grace_epochs: 2, reduction_factor: 3}}
confirm: {seeds: [41, 95, 12, 35]}
"""


def digits_gcn_params(width: int, clusters: int | None) -> int:
    """Four GCN layers on digits (3 inputs, 10 classes), the second gated: counted from the layers' sizes."""
    half, quarter = width // 2, width // 4
    embedding = 3 * width + width
    layers = 4 * (width * width + width + 2 * width)
    head = (width * half + half) + (half * quarter + quarter) + (quarter * 10 + 10)
    if clusters is None:
        return embedding + layers + head
    gate = (width * width + width) + (width * clusters + clusters) + clusters * clusters
    return embedding + layers + head + gate


def widest(clusters: int | None) -> int:
    return max(width for width in range(8, 300) if digits_gcn_params(width, clusters) <= 100_000)


def test_vanilla_cells_merge_over_the_gate() -> None:
    assert [cell.id for cell in plan(read_study(QUICK)).cells] == [
        "digits-gcn-none-L4-100k",
        "digits-gcn-boosting-L4-100k",
        "digits-gcn-boosting-L4-100k-uniform",
        "digits-gated_gcn-none-L4-100k",
        "digits-gated_gcn-boosting-L4-100k",
        "digits-gated_gcn-boosting-L4-100k-uniform",
    ]


def test_gate_keys_are_dropped_from_vanilla_cells_and_sigma_from_uniform_ones() -> None:
    searched = {cell.id: [entry.key for entry in cell.space.parameters] for cell in plan(read_study(QUICK)).cells}
    assert searched["digits-gcn-none-L4-100k"] == ["learning_rate"]
    assert searched["digits-gcn-boosting-L4-100k"] == ["sigma_m", "num_clusters", "learning_rate"]
    assert searched["digits-gcn-boosting-L4-100k-uniform"] == ["num_clusters", "learning_rate"]


def test_plan_json_of_the_first_cells() -> None:
    vanilla, gated = plan_json(plan(read_study(QUICK)))[:2]
    assert digits_gcn_params(145, None) == 99_930  # 580 + 85,840 + 13,510
    assert vanilla == {
        "id": "digits-gcn-none-L4-100k",
        "dataset": "digits",
        "dataset_title": "Digits",
        "metric": "accuracy",
        "direction": "max",
        "backbone": "gcn",
        "layers": 4,
        "budget": 100000,
        "hidden_dim": widest(None),
        "placement": "none",
        "gate": None,
        "num_clusters": None,
        "sigma_m": None,
        "unsupervised_weight": None,
        "pos_enc_dim": None,
        "semantics": "paper",
        "departures": {},
        "seeds": [41, 95, 12, 35],
        "folds": None,
        "params": digits_gcn_params(widest(None), None),
        "searched": {"learning_rate": {"log_uniform": [3e-4, 3e-3]}},
        "trials": 8,
        "max_epochs": 12,
        "rungs": [2, 6],
        "search_seed": 41,
        "search_fold": None,
        "confirm_trials": 4,
    }
    assert (gated["gate"], gated["num_clusters"], gated["unsupervised_weight"]) == ("bilateral", None, 1.0)
    assert gated["hidden_dim"] == [widest(16), widest(2)]
    assert gated["params"] == sorted([digits_gcn_params(widest(2), 2), digits_gcn_params(widest(16), 16)])
    assert json.loads(json.dumps(gated)) == gated


def test_plan_document() -> None:
    text = QUICK.replace("[none, boosting]", "[[4, 2]]").replace("  num_clusters: {int: [2, 16]}\n", "")
    text = text.replace("  max_epochs: 12", "  max_epochs: 12\n  num_clusters: 8").replace("[gcn, gated_gcn]", "gcn")
    document = plan_document(plan(read_study(text)))
    assert {key: document[key] for key in ("format", "study", "caption")} == {
        "format": 1,
        "study": "quick",
        "caption": "a few cells",
    }
    bilateral, uniform = document["cells"]
    assert bilateral == {
        "id": "digits-gcn-layers2.4-L4-100k",
        "dataset": "digits",
        "dataset_title": "Digits",
        "metric": "accuracy",
        "direction": "max",
        "backbone": "gcn",
        "layers": 4,
        "budget": 100000,
        "hidden_dim": None,
        "placement": "2,4",
        "gate": "bilateral",
        "num_clusters": 8,
        "sigma_m": None,
        "unsupervised_weight": 1.0,
        "pos_enc_dim": None,
        "semantics": "paper",
        "departures": {},
        "other_settings": {
            "readout": "mean",
            "out_dim": None,
            "batch_size": 128,
            "lr_factor": 0.5,
            "lr_patience": 10,
            "min_lr": 1e-5,
            "max_epochs": 12,
            "time_limit_s": None,
            "precision": "float32",
        },
        "seeds": [41, 95, 12, 35],
        "folds": None,
        "searched": {"sigma_m": {"log_uniform": [0.1, 10.0]}, "learning_rate": {"log_uniform": [0.0003, 0.003]}},
        "rungs": [2, 6],
        "trials": 8,
        "confirm_trials": 4,
        "max_epochs": 12,
    }
    assert (uniform["id"], uniform["gate"]) == ("digits-gcn-layers2.4-L4-100k-uniform", "uniform")


def test_other_settings_are_those_of_the_trials_whether_given_or_not() -> None:
    text = QUICK.replace("[gcn, gated_gcn]", "gat").replace("  layers: 4\n", "  layers: 4\n  readout: [mean, sum]\n")
    text = text.replace("max_epochs: 12", "max_epochs: 12\n  heads: 4\n  precision: bfloat16")
    cells = plan_document(plan(read_study(text)))["cells"]
    told = [(cell["placement"], cell["other_settings"]["readout"]) for cell in cells if cell["gate"] != "uniform"]
    assert told == [("none", "mean"), ("none", "sum"), ("boosting", "mean"), ("boosting", "sum")]
    assert {(cell["other_settings"]["heads"], cell["other_settings"]["precision"]) for cell in cells} == {
        (4, "bfloat16")
    }


def test_what_is_searched_is_null_in_the_document() -> None:
    text = QUICK.replace(
        "  placement: [none, boosting]\n  gate: [bilateral, uniform]\n  budget: 100000\n  layers: 4\n", ""
    )
    text = text.replace(
        "space:",
        "space:\n  placement: {choice: [none, dense]}\n  layers: {int: [2, 4]}\n  budget: {choice: [50000, 100000]}",
    )
    cells = plan_document(plan(read_study(text)))["cells"]
    assert [cell["id"] for cell in cells] == ["digits-gcn", "digits-gated_gcn"]
    assert {
        key: cells[0][key] for key in ("placement", "layers", "budget", "hidden_dim", "num_clusters")
    } == dict.fromkeys(("placement", "layers", "budget", "hidden_dim", "num_clusters"))


@pytest.mark.parametrize(
    ("arms", "cell_id"),
    [
        ("placement: dense, num_clusters: [8], budget: 123456", "digits-gcn-dense-L4-123456-K8"),
        ("placement: dense, num_clusters: 8, sigma_m: 0.5, hidden_dim: 70", "digits-gcn-dense-L4-h70-K8-sigma0.5"),
        ("placement: [[1, 3]], num_clusters: 8, sigma_m: 2.0, budget: 2000000", "digits-gcn-layers1.3-L4-2M-K8-sigma2"),
        (
            "readout: sum, budget: 500000, learning_rate: 1e-4",
            "digits-gcn-none-L4-500k-readout_sum-learning_rate_0.0001",
        ),
        (
            "placement: dense, num_clusters: 8, unsupervised_weight: 0, budget: 5000, max_epochs: 5",
            "digits-gcn-dense-L4-5k-K8-weight0-max_epochs_5",
        ),
    ],
)
def test_cell_ids(arms: str, cell_id: str) -> None:
    spec = read_study(f"name: n\narms: {{dataset: digits, backbone: gcn, layers: 4, {arms}}}\n")
    assert [cell.id for cell in plan(spec).cells] == [cell_id]


def test_ids_are_unique_and_fit_for_file_names() -> None:
    spec = read_study(
        "name: n\narms: {dataset: [digits, enzymes], backbone: [gcn, gat], placement: [none, dense, [1, 2], [1]],"
        " gate: [uniform, bilateral], layers: [2, 4], hidden_dim: [8, 16], num_clusters: [1, 12],"
        " sigma_m: [1, 1e-5, 1e16], heads: [1, 4]}\n"
    )
    ids = [cell.id for cell in plan(spec).cells]
    assert len(set(ids)) == len(ids)
    assert all(set(cell_id) <= set("abcdefghijklmnopqrstuvwxyzLKh0123456789-_.") for cell_id in ids)
    # Per dataset, width and depth: gcn vanilla 1, gat vanilla 2 heads; gated: 3 placements, 2 K, 3 sigma_m or uniform.
    assert len(ids) == 2 * 2 * 2 * ((1 + 2) + (1 + 2) * 3 * 2 * (3 + 1))


def ray_rungs(asha: AshaSpec, max_epochs: int) -> tuple[int, ...]:
    scheduler = AsyncHyperBandScheduler(
        time_attr="epoch",
        metric="metric",
        mode="min",
        max_t=max_epochs,
        grace_period=asha.grace_epochs,
        reduction_factor=asha.reduction_factor,
    )
    return tuple(sorted(milestone for milestone, _ in scheduler._brackets[0]._rungs))


@given(grace=st.integers(1, 60), factor=st.integers(2, 12), beyond=st.integers(0, 2000))
def test_rungs_are_those_of_rays_scheduler(grace: int, factor: int, beyond: int) -> None:
    asha = AshaSpec(grace_epochs=grace, reduction_factor=factor)
    assert milestones(asha, grace + beyond) == ray_rungs(asha, grace + beyond)


def test_rungs_by_hand() -> None:
    assert milestones(AshaSpec(grace_epochs=2, reduction_factor=3), 12) == (2, 6)
    assert milestones(AshaSpec(grace_epochs=20, reduction_factor=3), 1000) == (20, 60, 180, 540)
    assert milestones(AshaSpec(grace_epochs=5, reduction_factor=2), 5) == (5,)
    # Ray's logarithm of 1000 to the base of 10 is a little below 3.
    assert milestones(AshaSpec(grace_epochs=1, reduction_factor=10), 1000) == (1, 10, 100)
    assert milestones(None, 1000) == ()


def test_rays_scheduler_compares_at_the_planned_rungs() -> None:
    rungs = milestones(AshaSpec(grace_epochs=2, reduction_factor=3), 12)
    scheduler = AsyncHyperBandScheduler(
        time_attr="epoch", metric="metric", mode="min", max_t=12, grace_period=2, reduction_factor=3
    )
    pruned_at = []
    for epoch in range(1, 12):
        good, bad = SimpleNamespace(trial_id=f"good {epoch}"), SimpleNamespace(trial_id=f"bad {epoch}")
        for trial, metric in ((good, 0.0), (bad, 1.0)):
            scheduler.on_trial_add(None, trial)
            if scheduler.on_trial_result(None, trial, {"epoch": epoch, "metric": metric}) == "STOP":
                pruned_at.append(epoch)
    # Each trial reports once, so it meets the highest rung at or below its epoch.
    assert pruned_at == list(range(rungs[0], 12))
    assert sorted(milestone for milestone, _ in scheduler._brackets[0]._rungs) == list(rungs)


def test_folds_and_seeds_make_the_confirm_trials() -> None:
    base = "name: n\narms: {dataset: [enzymes, digits], backbone: gcn, hidden_dim: 16, layers: 2}\n"
    enzymes, digits = plan(read_study(base + "confirm: {seeds: [41, 7], folds: [2, 5]}\n")).cells
    assert enzymes.confirm_runs == ((41, 2), (41, 5), (7, 2), (7, 5))
    assert digits.confirm_runs == ((41, None), (7, None))
    assert (enzymes.search_fold, digits.search_fold) == (0, None)
    planned = plan(read_study(base + "confirm: {seeds: [41]}\n"))
    assert planned.cells[0].folds == tuple(range(10))
    assert (planned.search_trials, planned.confirm_trials) == (0, 11)


def test_study_without_space_needs_no_search() -> None:
    spec = read_study(
        "name: n\narms: {dataset: digits, backbone: gcn, placement: boosting, hidden_dim: 16, layers: 2}\n"
        "fixed: {num_clusters: 4}\n"
    )
    cell = plan(spec).cells[0]
    assert (cell.trials, cell.rungs, cell.seeds, cell.max_epochs) == (0, (), (41, 95, 12, 35), 1000)
    assert (cell.hidden_dim.single, cell.setting("gate"), cell.setting("sigma_m")) == (16, "bilateral", 1.0)


def test_cell_without_anything_to_search_is_only_confirmed() -> None:
    spec = read_study(QUICK.replace("  learning_rate: {log_uniform: [3e-4, 3e-3]}\n", ""))
    vanilla, gated = plan(spec).cells[:2]
    assert (vanilla.trials, vanilla.rungs) == (0, ())
    assert (gated.trials, gated.rungs) == (8, (2, 6))


def test_same_file_twice_gives_the_same_plan() -> None:
    first, second = read_study(QUICK, "a.yaml"), read_study(QUICK, "b.yaml")
    assert first == second
    assert plan(first) == plan(second)
    assert pickle.loads(pickle.dumps(plan(first))) == plan(second)


def test_rendered_plan_fits_100_columns() -> None:
    text = QUICK.replace("[none, boosting]", "[none, interleaved, [2, 4]]").replace(
        "space:", "space:\n  batch_size: {choice: [64, 128], when: {placement: [none, [2, 4]]}}"
    )
    planned = plan(read_study(text))
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(render_plan(planned))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 100
    for cell in planned.cells:
        assert sum(line.split()[:1] == [cell.id] for line in lines) == 1
    assert "4 of 10 cells: search sigma_m in log_uniform [0.1, 10.0]" in lines
    assert "6 of 10 cells: search batch_size in choice [64, 128] where placement is none or [2, 4]" in lines
    assert "every cell: train up to 12 epochs; prune after 2 6" in lines
    assert "10 cells, 80 search trials, 40 confirm trials" in lines


def test_parameters_between_the_ends_of_a_range_are_told_to_occur() -> None:
    """On the way from K = 2 to 16 the width goes down in steps, and before each a model has the most parameters."""
    largest = max(digits_gcn_params(widest(clusters), clusters) for clusters in range(2, 17))
    planned = plan(read_study(QUICK))
    gated = planned.cells[1]
    assert (gated.id, gated.params.high) == ("digits-gcn-boosting-L4-100k", digits_gcn_params(widest(2), 2))
    assert gated.params.high < largest <= 100_000
    told = "params are those at the ends of num_clusters; between, up to the budget, others occur"
    assert told in rendered(planned)
    assert told not in rendered(plan(read_study(QUICK.replace("budget: 100000", "hidden_dim: 70"))))
    sampled = QUICK.replace("  budget: 100000\n", "").replace("space:", "space:\n  budget: {choice: [50000, 100000]}")
    assert told in rendered(plan(read_study(sampled)))


def rendered(planned: StudyPlan) -> str:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(render_plan(planned))
    return console.export_text()


def test_one_of_a_thing_is_told_as_one() -> None:
    spec = read_study(
        "name: one\narms: {dataset: enzymes, backbone: gcn, layers: 4, hidden_dim: 8}\n"
        "space: {readout: {choice: [mean, sum]}}\nfixed: {max_epochs: 1}\n"
        "search: {trials: 1, sampler: random}\nconfirm: {seeds: [41], folds: [3]}\n"
    )
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(render_plan(plan(spec)))
    text = " ".join(console.export_text().split())
    assert " 1 trial 1 seed x 1 fold " in text
    assert "every cell: train up to 1 epoch 1 cell, 1 search trial, 1 confirm trial" in text


RELEASED = """
name: released
arms:
  dataset: zinc
  backbone: [gcn, gat]
  placement: [none, boosting]
  hidden_dim: 18
  layers: 4
fixed: {semantics: released, num_clusters: 9, metric_bias: false, clip_norm: 0.5}
"""


def test_plan_shows_the_preset_and_what_departs_from_it() -> None:
    planned = plan(read_study(RELEASED))
    told = {entry["id"]: (entry["semantics"], entry["departures"]) for entry in plan_json(planned)}
    assert told == {
        "zinc-gcn-none-L4-h18": ("released", {"clip_norm": 0.5}),
        "zinc-gcn-boosting-L4-h18": ("released", {"metric_bias": False, "clip_norm": 0.5}),
        "zinc-gat-none-L4-h18": ("released", {"clip_norm": 0.5}),
        "zinc-gat-boosting-L4-h18": ("released", {"metric_bias": False, "clip_norm": 0.5}),
    }
    assert [cell["departures"] for cell in plan_document(planned)["cells"]] == [
        told[cell.id][1] for cell in planned.cells
    ]
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(render_plan(planned))
    lines = console.export_text().splitlines()
    assert "2 of 4 cells: semantics released, departing in clip_norm = 0.5" in lines
    assert "2 of 4 cells: semantics released, departing in metric_bias = false, clip_norm = 0.5" in lines


def test_what_is_searched_is_no_departure() -> None:
    text = RELEASED.replace("metric_bias: false, ", "").replace(
        "fixed:", "space: {metric_bias: {choice: [false, true]}}\nsearch: {trials: 2}\nfixed:"
    )
    for cell in plan(read_study(text)).cells:
        assert cell.departures == {"clip_norm": 0.5}
    text = RELEASED.replace("semantics: released, ", "").replace(
        "fixed:", "space: {semantics: {choice: [paper, released]}}\nsearch: {trials: 2}\nfixed:"
    )
    vanilla, gated = plan(read_study(text)).cells[:2]
    assert (vanilla.semantics, gated.semantics) == (None, None)
    # The metric's bias departs from one of the two presets only; K is 9.
    assert gated.departures == {"clip_norm": 0.5}
    assert gated.params.single is not None


def test_printed_counts_of_released_rows() -> None:
    text = RELEASED.replace("metric_bias: false, clip_norm: 0.5", "layers: 4").replace("  layers: 4\n", "", 1)
    assert {cell.id: cell.params.single for cell in plan(read_study(text)).cells if cell.backbone == "gat"} == {
        "zinc-gat-none-L4-h18": 102_385,
        "zinc-gat-boosting-L4-h18": 105_256,
    }


def test_cells_know_their_task() -> None:
    cell: Cell = plan(read_study(QUICK)).cells[1]
    assert (cell.dataset, cell.backbone, cell.placement, cell.direction) == ("digits", "gcn", "boosting", "max")
