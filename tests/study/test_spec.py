from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bimp.tasks import TASKS
from study.plan import plan
from study.spec import SpecError, load_study, read_study
from study.spec.source import KeyPath, read_yaml

BASE = """\
name: trial_study
arms:
  dataset: digits
  backbone: [gcn, gat]
  placement: [none, boosting]
  budget: 100000
  layers: 4
space:
  sigma_m: {log_uniform: [0.1, 10]}
  num_clusters: {int: [2, 16]}
fixed:
  max_epochs: 12
search:
  trials: 8
  asha: {grace_epochs: 2}
confirm:
  seeds: [41, 95]
"""

# What is replaced in BASE, by what, and the whole line that comes of it.
BROKEN = {
    "setting of another backbone": (
        "  max_epochs: 12",
        "  max_epochs: 12\n  edge_gate: raw",
        "f.yaml:13: fixed.edge_gate: found a setting of gated_gcn, expected none: no cell has the backbone gated_gcn",
    ),
    "unknown reading": (
        "  max_epochs: 12",
        "  max_epochs: 12\n  semantics: code",
        "f.yaml:13: fixed.semantics: found 'code', expected one of paper, released",
    ),
    "word for a truth value": (
        "  max_epochs: 12",
        "  max_epochs: 12\n  metric_bias: 'yes'",
        "f.yaml:13: fixed.metric_bias: found 'yes', expected true or false",
    ),
    "unknown key": ("trials: 8", "trails: 8", "f.yaml:14: search.trails: found an unknown key, expected trials"),
    "unknown section": ("fixed:", "fixd:", "f.yaml:11: fixd: found an unknown key, expected fixed"),
    "unknown key like no other": (
        "  asha: {grace_epochs: 2}",
        "  asha: {zzz: 2}",
        "f.yaml:15: search.asha.zzz: found an unknown key, expected one of grace_epochs, reduction_factor",
    ),
    "unknown hyperparameter": (
        "sigma_m:",
        "sigma:",
        "f.yaml:9: space.sigma: found an unknown key, expected sigma_m",
    ),
    "unknown kind of range": (
        "{int: [2, 16]}",
        "{uniform: [2, 16]}",
        "f.yaml:10: space.num_clusters.uniform: found an unknown key, expected one of int, log_int, choice, when",
    ),
    "two kinds of range": (
        "{int: [2, 16]}",
        "{int: [2, 16], choice: [3]}",
        "f.yaml:10: space.num_clusters: found [int, choice], expected exactly one of int, log_int, choice",
    ),
    "no kind of range": (
        "{int: [2, 16]}",
        "{}",
        "f.yaml:10: space.num_clusters: found nothing, expected exactly one of int, log_int, choice",
    ),
    "word for a number": ("layers: 4", "layers: four", "f.yaml:7: arms.layers: found 'four', expected a whole number"),
    "number in quotes": ("layers: 4", "layers: '4'", "f.yaml:7: arms.layers: found '4', expected a whole number"),
    "fraction of a layer": ("layers: 4", "layers: 4.5", "f.yaml:7: arms.layers: found 4.5, expected a whole number"),
    "truth value for a number": (
        "layers: 4",
        "layers: true",
        "f.yaml:7: arms.layers: found true, expected a whole number",
    ),
    "infinite": (
        "[0.1, 10]",
        "[0.1, .inf]",
        "f.yaml:9: space.sigma_m.log_uniform[1]: found inf, expected a number",
    ),
    "second entry of an arm": (
        "[gcn, gat]",
        "[gcn, gta]",
        "f.yaml:4: arms.backbone[1]: found 'gta', expected one of gcn, graphsage, gat, gated_gcn",
    ),
    "range instead of a mapping": (
        "{int: [2, 16]}",
        "[2, 16]",
        "f.yaml:10: space.num_clusters: found [2, 16], expected a mapping with keys such as int",
    ),
    "section without content": (
        "  seeds: [41, 95]",
        "",
        "f.yaml:16: confirm: found nothing, expected a mapping with keys such as seeds",
    ),
    "one seed without its list": (
        "[41, 95]",
        "41",
        "f.yaml:17: confirm.seeds: found 41, expected a list of at least one whole number",
    ),
    "empty choice": (
        "{int: [2, 16]}",
        "{choice: []}",
        "f.yaml:10: space.num_clusters.choice: found an empty list, expected a list of at least one value",
    ),
    "empty arm": (
        "[none, boosting]",
        "[]",
        "f.yaml:5: arms.placement: found an empty list, expected at least one value",
    ),
    "value twice": (
        "[gcn, gat]",
        "[gcn, gcn]",
        "f.yaml:4: arms.backbone: found [gcn, gcn], expected different values: 'gcn' stands twice",
    ),
    "range upside down": (
        "[0.1, 10]",
        "[10, 0.1]",
        "f.yaml:9: space.sigma_m.log_uniform: found [10.0, 0.1], expected low below high",
    ),
    "range of three": (
        "[2, 16]",
        "[2, 4, 16]",
        "f.yaml:10: space.num_clusters.int: found [2, 4, 16], expected [low, high]",
    ),
    "log range from 0": (
        "fixed:\n  max_epochs: 12",
        "  unsupervised_weight: {log_uniform: [0, 1]}",
        "f.yaml:11: space.unsupervised_weight.log_uniform: found [0.0, 1.0], "
        "expected low above 0: the range is logarithmic",
    ),
    "range below its key's least": (
        "[0.1, 10]",
        "[0, 10]",
        "f.yaml:9: space.sigma_m.log_uniform[0]: found 0, expected a number above 0",
    ),
    "key twice": (
        "  layers: 4",
        "  layers: 4\n  budget: 5",
        "f.yaml:8: arms.budget: found the key a second time (first in line 6), expected it once",
    ),
    "syntax": (
        "[gcn, gat]",
        "[gcn, gat",
        "f.yaml:5: expected ',' or ']', but got ':', expected valid YAML",
    ),
    "tab": (
        "  trials: 8",
        "\ttrials: 8",
        "f.yaml:14: found character '\\t' that cannot start any token, expected valid YAML",
    ),
    "python object": (
        "seeds: [41, 95]",
        "seeds: !!python/object:os.system x",
        "f.yaml:17: confirm.seeds: found 'x', expected text, a number or true or false",
    ),
    "unknown dataset": (
        "digits",
        "mnist",
        f"f.yaml:3: arms.dataset: found 'mnist', expected one of {', '.join(TASKS)}",
    ),
    "gate setting on vanilla cells only": (
        "[none, boosting]",
        "none",
        "f.yaml:10: space.num_clusters: found a gate setting, expected none: every cell is vanilla (placement none)",
    ),
    "bilateral setting on uniform gates only": (
        "  max_epochs: 12",
        "  gate: uniform",
        "f.yaml:9: space.sigma_m: found a setting of the bilateral gate, expected none: every gate is uniform",
    ),
    "heads without gat": (
        "[gcn, gat]",
        "gcn\n  heads: 4",
        "f.yaml:5: arms.heads: found a setting of gat, expected none: no cell has the backbone gat",
    ),
    "key in two sections": (
        "  max_epochs: 12",
        "  sigma_m: 1",
        "f.yaml:12: fixed.sigma_m: found it in space too, expected it in one section only",
    ),
    "key in the wrong section": (
        "  max_epochs: 12",
        "  backbone: gcn",
        "f.yaml:12: fixed.backbone: found an unknown key, expected it in arms: backbone cannot stand here",
    ),
    "epochs in the space": (
        "fixed:\n  max_epochs: 12",
        "  max_epochs: {int: [5, 12]}",
        "f.yaml:11: space.max_epochs: found an unknown key, expected it in arms or fixed: max_epochs cannot stand here",
    ),
    "budget and width": (
        "  max_epochs: 12",
        "  hidden_dim: 70",
        "f.yaml:12: fixed.hidden_dim: found it beside arms.budget, expected either budget or hidden_dim",
    ),
    "neither budget nor width": (
        "  budget: 100000\n",
        "",
        "f.yaml:2: arms.budget: found nothing, expected budget or hidden_dim, here or in space or fixed",
    ),
    "no layers": (
        "  layers: 4\n",
        "",
        "f.yaml:2: arms.layers: found nothing, expected the number of layers, here or in space or fixed",
    ),
    "no dataset": (
        "  dataset: digits\n",
        "",
        "f.yaml:2: arms.dataset: found nothing, expected one dataset or a list of them",
    ),
    "no clusters": (
        "  num_clusters: {int: [2, 16]}\n",
        "",
        "f.yaml:2: arms.num_clusters: found nothing, "
        "expected the number of clusters, here or in space or fixed: layers are gated",
    ),
    "no name": (
        "name: trial_study\n",
        "",
        "f.yaml:1: name: found nothing, expected letters, digits, - and _, at most 100, the first no -",
    ),
    "name that leaves the folder": (
        "trial_study",
        "../elsewhere",
        "f.yaml:1: name: found '../elsewhere', expected letters, digits, - and _, at most 100, the first no -",
    ),
    "folds without folds": (
        "seeds: [41, 95]",
        "folds: [0]",
        "f.yaml:17: confirm.folds[0]: found 0, expected none: digits has no folds",
    ),
    "all folds without folds": (
        "seeds: [41, 95]",
        "folds: all",
        "f.yaml:17: confirm.folds: found all, expected none: digits has no folds",
    ),
    "search fold without folds": (
        "  trials: 8",
        "  trials: 8\n  fold: 0",
        "f.yaml:15: search.fold: found 0, expected none: digits has no folds",
    ),
    "seed twice": (
        "[41, 95]",
        "[41, 95, 41]",
        "f.yaml:17: confirm.seeds: found [41, 95, 41], expected different values: 41 stands twice",
    ),
    "negative seed": ("[41, 95]", "[41, -1]", "f.yaml:17: confirm.seeds[1]: found -1, expected 0 or more"),
    "negative trials": ("trials: 8", "trials: -8", "f.yaml:14: search.trials: found -8, expected 1 or more"),
    "no trials": (
        "  trials: 8\n",
        "",
        "f.yaml:13: search.trials: found nothing, expected the number of search trials of a cell",
    ),
    "no search": (
        "search:\n  trials: 8\n  asha: {grace_epochs: 2}\n",
        "",
        "f.yaml:1: search: found nothing, expected a mapping with trials: space is not empty",
    ),
    "grid over a continuous range": (
        "trials: 8",
        "sampler: grid",
        "f.yaml:9: space.sigma_m.log_uniform: found a continuous range, "
        "expected values that a grid can list, such as choice: [0.1, 1, 10]",
    ),
    "grid with trials": (
        "  trials: 8",
        "  sampler: grid\n  trials: 8",
        "f.yaml:15: search.trials: found 8, expected none: a grid runs every combination",
    ),
    "grace beyond the end": (
        "grace_epochs: 2",
        "grace_epochs: 13",
        "f.yaml:15: search.asha.grace_epochs: found 13, expected at most max_epochs = 12",
    ),
    "grace beyond the protocol's end": (
        "fixed:\n  max_epochs: 12\nsearch:\n  trials: 8\n  asha: {grace_epochs: 2}",
        "search:\n  trials: 8\n  asha: {grace_epochs: 1001}",
        "f.yaml:13: search.asha.grace_epochs: found 1001, expected at most max_epochs = 1000",
    ),
    "reduction by one": (
        "{grace_epochs: 2}",
        "{grace_epochs: 2, reduction_factor: 1}",
        "f.yaml:15: search.asha.reduction_factor: found 1, expected 2 or more",
    ),
    "unknown sampler": (
        "trials: 8",
        "sampler: bayes",
        "f.yaml:14: search.sampler: found 'bayes', expected one of tpe, random, grid",
    ),
    "placement that gates nothing": (
        "layers: 4",
        "layers: [4, 1]",
        "f.yaml:5: arms.placement[1]: found 'boosting', "
        "expected layers >= 2: boosting gates no layer of a network of 1",
    ),
    "layer that is not there": (
        "[none, boosting]",
        "[none, [2, 5]]",
        "f.yaml:5: arms.placement[1]: found [2, 5], expected different layers from 1 to 4",
    ),
    "layers not in a list of their own": (
        "[none, boosting]",
        "[2, 4]",
        "f.yaml:5: arms.placement[0]: found 2, "
        "expected one of none, boosting, interleaved, dense, "
        "or a list of layers such as [2, 4] as an entry of its own: [[2, 4]]",
    ),
    "layer 0": (
        "[none, boosting]",
        "[none, [0, 2]]",
        "f.yaml:5: arms.placement[1]: found [0, 2], expected a list of different layers, counted from 1",
    ),
    "condition on an unknown key": (
        "{int: [2, 16]}",
        "{int: [2, 16], when: {bakbone: gat}}",
        "f.yaml:10: space.num_clusters.when.bakbone: found an unknown key, expected backbone",
    ),
    "condition on a key that stands nowhere": (
        "{int: [2, 16]}",
        "{int: [2, 16], when: {readout: sum}}",
        "f.yaml:10: space.num_clusters.when.readout: found a condition on readout, "
        "expected a key that stands in arms, space or fixed",
    ),
    "condition on a later key": (
        "{log_uniform: [0.1, 10]}",
        "{log_uniform: [0.1, 10], when: {num_clusters: 2}}",
        "f.yaml:9: space.sigma_m.when.num_clusters: found a condition on num_clusters, "
        "expected a key that is sampled before sigma_m",
    ),
    "condition that never holds": (
        "{int: [2, 16]}",
        "{int: [2, 16], when: {backbone: gated_gcn}}",
        "f.yaml:10: space.num_clusters.when.backbone: found 'gated_gcn', "
        "expected a value that backbone can have: 'gcn', 'gat'",
    ),
    "condition of a wrong type": (
        "{int: [2, 16]}",
        "{int: [2, 16], when: {layers: deep}}",
        "f.yaml:10: space.num_clusters.when.layers: found 'deep', expected a whole number",
    ),
    "resources": (
        "fixed:",
        "resources: {cpus_per_trial: 0}\nfixed:",
        "f.yaml:11: resources.cpus_per_trial: found 0, expected 1 or more",
    ),
    "list": (BASE, "- 1\n", "f.yaml:1: found [1], expected a mapping with keys such as name"),
    "empty file": (BASE, "", "f.yaml:1: found nothing, expected a mapping with keys such as name"),
}


def edited(old: str, new: str) -> str:
    assert BASE.count(old) == 1, f"{old!r} does not stand in the base file once"
    return BASE.replace(old, new)


@pytest.mark.parametrize(("old", "new", "line"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_file_gives_its_one_line(old: str, new: str, line: str) -> None:
    with pytest.raises(SpecError) as error:
        read_study(edited(old, new), "f.yaml")
    assert str(error.value) == line


FOLDS = {
    "fold that is not there": ("[0, 10]", "f.yaml:2: confirm.folds[1]: found 10, expected a fold from 0 to 9"),
    "fold twice": ("[1, 1]", "f.yaml:2: confirm.folds: found [1, 1], expected different values: 1 stands twice"),
    "some folds": ("some", "f.yaml:2: confirm.folds: found 'some', expected all or a list of folds such as [0, 1]"),
    "no folds": ("[]", "f.yaml:2: confirm.folds: found an empty list, expected all or a list of folds such as [0, 1]"),
}


@pytest.mark.parametrize(("folds", "line"), FOLDS.values(), ids=FOLDS.keys())
def test_broken_folds(folds: str, line: str) -> None:
    text = f"name: n\nconfirm: {{folds: {folds}}}\narms: {{dataset: enzymes, backbone: gcn, budget: 1000, layers: 1}}\n"
    with pytest.raises(SpecError) as error:
        read_study(text, "f.yaml")
    assert str(error.value) == line


PLANNED = {
    "impossible budget in arms": (
        "budget: 100000",
        "budget: [100000, 50]",
        "f.yaml:6: arms.budget[1]: found 50, expected ",
    ),
    "learning rate below the protocol's least": (
        "fixed:",
        "  learning_rate: {log_uniform: [1e-6, 1e-3]}\nfixed:",
        "f.yaml:11: space.learning_rate.log_uniform[0]: "
        "min_lr: found 1e-05, expected at most learning_rate = 1e-06 (in cell ",
    ),
    "clusters on a condition that may not hold": (
        "{int: [2, 16]}",
        "{int: [2, 16], when: {backbone: gat}}",
        "f.yaml:10: space.num_clusters: found no value, "
        "expected one: the condition on it does not hold (in cell digits-gcn-boosting-L4-100k)",
    ),
}


@pytest.mark.parametrize(("old", "new", "line"), PLANNED.values(), ids=PLANNED.keys())
def test_configuration_that_cannot_be_built_is_found_at_planning(old: str, new: str, line: str) -> None:
    spec = read_study(edited(old, new), "f.yaml")
    with pytest.raises(SpecError) as error:
        plan(spec)
    assert str(error.value).startswith(line)
    assert "\n" not in str(error.value)


def test_impossible_budget_that_only_a_sampled_depth_reveals() -> None:
    text = edited("  layers: 4\n", "").replace("space:", "space:\n  layers: {int: [2, 64]}").replace("100000", "2000")
    with pytest.raises(SpecError) as error:
        plan(read_study(text, "f.yaml"))
    assert str(error.value).startswith("f.yaml:6: arms.budget: found 2000, expected ")
    assert str(error.value).endswith("(in cell digits-gcn-boosting-2k with layers = 64, num_clusters = 16)")


def test_the_first_error_in_the_file_is_told() -> None:
    text = BASE.replace("trials: 8", "trials: -8").replace("layers: 4", "layers: 0")
    with pytest.raises(SpecError, match=r"^f.yaml:7: arms.layers: found 0, expected 1 or more$"):
        read_study(text, "f.yaml")


def test_alias_to_itself() -> None:
    with pytest.raises(SpecError, match=r"^f.yaml:1: arms.arms: found an alias of a value that holds it"):
        read_study("arms: &a {arms: *a}", "f.yaml")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as error:
        load_study(tmp_path / "none.yaml")
    assert str(error.value) == (
        f"{tmp_path / 'none.yaml'}: found no readable file (No such file or directory), expected a study in YAML"
    )


def test_file_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"name: \xe9\n")
    with pytest.raises(SpecError, match=r"latin\.yaml: found bytes that are not UTF-8, expected a study in YAML$"):
        load_study(path)


def test_values_of_a_good_file() -> None:
    spec = read_study(BASE)
    assert spec.arms == {
        "dataset": ("digits",),
        "backbone": ("gcn", "gat"),
        "placement": ("none", "boosting"),
        "budget": (100000,),
        "layers": (4,),
    }
    assert spec.space["sigma_m"].kind == "log_uniform"
    assert spec.space["sigma_m"].bounds == (0.1, 10.0)
    assert spec.fixed == {"max_epochs": 12}
    assert spec.search is not None
    assert (spec.search.sampler, spec.search.trials, spec.search.seed, spec.search.fold) == ("tpe", 8, 41, 0)
    assert spec.search.asha is not None
    assert (spec.search.asha.grace_epochs, spec.search.asha.reduction_factor) == (2, 3)
    assert (spec.seed, spec.caption, spec.resources.cpus_per_trial, spec.resources.gpus_per_trial) == (0, None, 1, 0.0)


def test_yaml_1_2_words_and_numbers() -> None:
    text = BASE.replace("max_epochs: 12", "max_epochs: 12\n  learning_rate: 1e-3\n  time_limit_s: null")
    spec = read_study(text.replace("asha: {grace_epochs: 2}", "asha: none"))
    assert spec.fixed == {"max_epochs": 12, "learning_rate": 0.001, "time_limit_s": None}
    assert spec.search is not None
    assert spec.search.asha is None


def test_whole_numbers_are_taken_for_numbers() -> None:
    spec = read_study(BASE.replace("{log_uniform: [0.1, 10]}", "{choice: [1, 10]}"))
    assert spec.space["sigma_m"].choices == (1.0, 10.0)
    assert all(isinstance(value, float) for value in spec.space["sigma_m"].choices or ())


def test_search_seed_is_the_first_confirm_seed_unless_given() -> None:
    twelve = read_study(BASE.replace("[41, 95]", "[12, 41]"))
    given = read_study(BASE.replace("trials: 8", "trials: 8\n  seed: 7"))
    assert twelve.search is not None
    assert given.search is not None
    assert (twelve.search.seed, given.search.seed) == (12, 7)


def test_explicit_layers_are_ascending_wherever_they_stand() -> None:
    arms = read_study(BASE.replace("[none, boosting]", "[[4, 2], none]"))
    assert arms.arms["placement"] == ((2, 4), "none")
    without = edited("  placement: [none, boosting]\n", "")
    fixed = read_study(without.replace("max_epochs: 12", "placement: [3, 1]"))
    assert fixed.fixed["placement"] == (1, 3)
    sampled = read_study(without.replace("space:", "space:\n  placement: {choice: [[2, 1], dense]}"))
    assert sampled.space["placement"].choices == ((1, 2), "dense")


DOCUMENT = (Path(__file__).parents[2] / "docs" / "search_spaces.md").read_text(encoding="utf-8")


ROW = "  - {placement: none, hidden_dim: 16, layers: 4}\n"
BROKEN_ROWS = (
    "rows: []\n",
    f"rows:\n{ROW}{ROW}",
    f"rows:\n{ROW}  - {{backbone: gat, placement: none, hidden_dim: 16}}\n",
)


def _error_of(rows: str) -> str:
    with pytest.raises(SpecError) as error:
        read_study(f"name: n\narms: {{dataset: zinc, backbone: gcn}}\n{rows}", "f.yaml")
    return str(error.value)


def test_documented_errors_are_the_real_ones() -> None:
    documented = re.findall(r"^\|[^|]+\| `(f\.yaml:[^`]+)` \|$", DOCUMENT, flags=re.MULTILINE)
    with pytest.raises(SpecError) as budget:
        plan(read_study(edited("budget: 100000", "budget: [100000, 50]"), "f.yaml"))
    real = {line for _, _, line in BROKEN.values()} | {str(budget.value)} | {_error_of(rows) for rows in BROKEN_ROWS}
    assert len(documented) == 20
    assert [line for line in documented if line not in real] == []


def test_documented_examples_are_studies() -> None:
    example, rows, conditions = re.findall(r"```yaml\n(.*?)```", DOCUMENT, flags=re.DOTALL)
    assert [cell.trials for cell in plan(read_study(example)).cells] == [0, 20, 0, 20]
    searched = [(cell.id, len(cell.space.parameters)) for cell in plan(read_study(rows)).cells]
    assert searched == [
        ("zinc-gcn-none-L4-100k", 1),
        ("zinc-gat-none-L4-100k", 1),
        ("zinc-gcn-none-L4-100k-gcn_normalisation_symmetric", 1),
        ("zinc-gcn-L4-100k", 3),
        ("zinc-gcn-L4-100k-uniform", 3),
        ("zinc-gat-L4-100k", 3),
        ("zinc-gat-L4-100k-uniform", 3),
    ]
    around = (
        "name: n\narms: {dataset: digits, backbone: [gcn, gat, graphsage], hidden_dim: 16}\n"
        "fixed: {num_clusters: 4}\nsearch: {trials: 2}\n"
    )
    cells = plan(read_study(around + conditions)).cells
    patient = [cell.backbone for cell in cells if any(entry.key == "lr_patience" for entry in cell.space.parameters)]
    assert patient == ["gcn", "gat"]


def _replaced(value: Any, path: KeyPath, junk: Any) -> Any:
    if not path:
        return junk
    if isinstance(value, list):
        return [_replaced(entry, path[1:], junk) if index == path[0] else entry for index, entry in enumerate(value)]
    return {key: _replaced(entry, path[1:], junk) if key == path[0] else entry for key, entry in value.items()}


PLAIN, SOURCE = read_yaml(BASE, "f.yaml")
JUNK = st.sampled_from(
    [None, True, -1, 0, 1, 2.5, 1e300, "", "none", "all", "a\nb", [], [1], [[2, 4]], [None], {}, {"a": 1}]
)


@settings(max_examples=200, deadline=None)
@given(path=st.sampled_from(list(SOURCE.lines)), junk=JUNK)
def test_whatever_stands_in_a_file_it_is_a_study_or_one_line(path: KeyPath, junk: Any) -> None:
    text = json.dumps(_replaced(PLAIN, path, junk))
    try:
        plan(read_study(text, "f.yaml"))
    except SpecError as error:
        assert str(error).startswith("f.yaml:1: ")  # noqa: PT017 - a study that can be planned is as good
        assert "\n" not in str(error)  # noqa: PT017


def test_a_grid_that_is_a_slip_is_refused_before_it_is_listed() -> None:
    with pytest.raises(SpecError) as caught:
        read_study("""\
name: slip
arms: {dataset: digits, backbone: gcn, placement: boosting, hidden_dim: 8, layers: 2}
space: {num_clusters: {int: [2, 100000000]}}
search: {sampler: grid}
""")
    assert str(caught.value) == (
        "study:4: search.sampler: found a grid of 99,999,999 combinations, expected at most 100,000, or another "
        "sampler with trials"
    )


def test_settings_of_a_gate_are_refused_where_every_cell_is_vanilla() -> None:
    text = "name: n\narms: {dataset: zinc, backbone: gcn, hidden_dim: 8, layers: 2}\nfixed:\n  metric_bias: true\n"
    with pytest.raises(SpecError) as error:
        read_study(text, "f.yaml")
    assert str(error.value) == (
        "f.yaml:4: fixed.metric_bias: found a gate setting, expected none: every cell is vanilla (placement none)"
    )
