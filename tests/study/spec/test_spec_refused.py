"""Study files that are refused: one line that says where, what was found and what was expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from broken_combinations import BROKEN_COMBINATIONS
from broken_values import BROKEN_VALUES
from hypothesis import given, settings
from hypothesis import strategies as st
from study_text import BASE, edited

from study.location import location
from study.plan import plan
from study.spec import SpecError, load_study, read_study
from study.spec.source import KeyPath, read_yaml

BROKEN = BROKEN_VALUES | BROKEN_COMBINATIONS


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


def test_key_without_a_value_that_only_a_depth_between_the_ends_reveals() -> None:
    text = edited("  layers: 4\n", "").replace("space:", "space:\n  layers: {int: [2, 6]}")
    text = text.replace("num_clusters: {int: [2, 16]}", "num_clusters: {int: [2, 16], when: {layers: [2, 6]}}")
    with pytest.raises(SpecError) as error:
        plan(read_study(text, "f.yaml"))
    assert str(error.value).startswith(
        "f.yaml:10: space.num_clusters: found no value, expected one: the condition on it"
    )
    assert str(error.value).endswith("does not hold (in cell digits-gcn-boosting-100k with layers = 3)")
    plan(read_study(text.replace("when: {layers: [2, 6]}", "when: {layers: [2, 3, 4, 5, 6]}")))


def test_the_first_error_in_the_file_is_told() -> None:
    text = BASE.replace("trials: 8", "trials: -8").replace("layers: 4", "layers: 0")
    with pytest.raises(SpecError, match=r"^f.yaml:7: arms.layers: found 0, expected 1 or more$"):
        read_study(text, "f.yaml")


def test_aliases_of_aliases_of_which_no_memory_holds_all_values() -> None:
    lines = ["name: f", "a0: &a0 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    with pytest.raises(
        SpecError, match=r"^f.yaml:\d+: a\d[^ ]*: found more than 200,000 values up to here, expected at"
    ):
        read_study("\n".join(lines), "f.yaml")


def test_alias_to_itself() -> None:
    with pytest.raises(SpecError, match=r"^f.yaml:1: arms.arms: found an alias of a value that holds it"):
        read_study("arms: &a {arms: *a}", "f.yaml")


def test_lists_within_each_other_without_end() -> None:
    with pytest.raises(SpecError, match=r"^f.yaml: found lists or mappings within each other without end"):
        read_study("name: " + "[" * 3000 + "]" * 3000, "f.yaml")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as error:
        load_study(tmp_path / "none.yaml")
    assert str(error.value) == (
        f"{tmp_path / 'none.yaml'}: found no readable file (No such file or directory), expected a study in YAML"
    )


def test_missing_object(bucket_url: str) -> None:
    with pytest.raises(SpecError, match=r"/none.yaml: found no readable file \(No such file or directory\), expected"):
        load_study(location(f"{bucket_url}/none.yaml"))


def test_file_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"name: \xe9\n")
    with pytest.raises(SpecError, match=r"latin\.yaml: found bytes that are not UTF-8, expected a study in YAML$"):
        load_study(path)


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
arms: {dataset: digits, backbone: gcn, placement: none, hidden_dim: 8, layers: 2}
space: {batch_size: {int: [2, 100000000]}}
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
