"""``rows`` of a study file: what a row replaces, what the plan makes of it, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.plan import plan, resolve
from study.spec import SpecError, read_study
from study.spec.rows import variants
from study.spec.source import KeyPath, read_yaml

ROWS = """\
name: rows
arms:
  dataset: digits
  backbone: [gcn, gat]
rows:
  - {hidden_dim: 16, placement: none}
  - {hidden_dim: 12, batch_size: 64}
  - {backbone: gcn, hidden_dim: 20, placement: [none, dense], learning_rate: 2e-3, gcn_normalisation: symmetric}
space:
  placement: {choice: [boosting, dense]}
  learning_rate: {choice: [1e-3, 1e-2]}
fixed:
  layers: 2
  num_clusters: 4
  batch_size: 32
search: {sampler: grid}
"""


def edited(old: str, new: str) -> str:
    assert ROWS.count(old) == 1
    return ROWS.replace(old, new)


def test_a_row_takes_the_place_of_arms_space_and_fixed() -> None:
    spec = read_study(ROWS)
    first, second, third = variants(spec)
    assert (list(first.space), first.arms["placement"]) == (["learning_rate"], ("none",))
    assert (second.fixed, second.arms["batch_size"]) == ({"layers": 2, "num_clusters": 4}, (64,))
    assert (third.arms["backbone"], third.space) == (("gcn",), {})


def test_cells_of_rows() -> None:
    cells = plan(read_study(ROWS)).cells
    found = [(cell.id, cell.placement, cell.trials, [entry.key for entry in cell.space.parameters]) for cell in cells]
    assert found == [
        ("digits-gcn-none-L2-h16", "none", 2, ["learning_rate"]),
        ("digits-gat-none-L2-h16", "none", 2, ["learning_rate"]),
        ("digits-gcn-L2-h12-batch_size_64", None, 4, ["placement", "learning_rate"]),
        ("digits-gat-L2-h12-batch_size_64", None, 4, ["placement", "learning_rate"]),
        ("digits-gcn-none-L2-h20-learning_rate_0.002-gcn_normalisation_symmetric", "none", 0, []),
        ("digits-gcn-dense-L2-h20-learning_rate_0.002-gcn_normalisation_symmetric", "dense", 0, []),
    ]


def test_trials_of_rows() -> None:
    spec = read_study(ROWS)
    first, _, third, *_, last = plan(spec).cells
    trial = resolve(first, {"learning_rate": 0.01}, spec, seed=1, fold=None)
    assert (trial.train.batch_size, trial.model.hidden_dim, trial.model.num_clusters) == (32, 16, None)
    trial = resolve(third, {"learning_rate": 0.01, "placement": "dense"}, spec, seed=1, fold=None)
    assert (trial.train.batch_size, trial.model.hidden_dim, trial.model.num_clusters) == (64, 12, 4)
    trial = resolve(last, {}, spec, seed=1, fold=None)
    assert (trial.train.learning_rate, trial.model.placement, trial.model.gcn_normalisation) == (
        0.002,
        "dense",
        "symmetric",
    )


def test_equal_cells_of_two_rows_are_one() -> None:
    text = edited("{hidden_dim: 16, placement: none}", "{hidden_dim: [16, 18], placement: none, gate: uniform}")
    text = text.replace("- {backbone: gcn,", "- {hidden_dim: 16, placement: none}\n  - {backbone: gcn,")
    # The uniform gate of a vanilla network is nothing: the width 16 is there twice.
    with_gate = text.replace("placement: none, gate: uniform}", "placement: [none, dense], gate: uniform}")
    assert [cell.id for cell in plan(read_study(with_gate)).cells][:9] == [
        "digits-gcn-none-L2-h16",
        "digits-gcn-dense-L2-h16-uniform",
        "digits-gcn-none-L2-h18",
        "digits-gcn-dense-L2-h18-uniform",
        "digits-gat-none-L2-h16",
        "digits-gat-dense-L2-h16-uniform",
        "digits-gat-none-L2-h18",
        "digits-gat-dense-L2-h18-uniform",
        "digits-gcn-L2-h12-batch_size_64",
    ]
    assert len(plan(read_study(with_gate)).cells) == 12


def test_different_cells_of_one_name_are_refused() -> None:
    """The name tells a uniform gate only where an arm or a row gives it: here it is fixed, for one of two rows."""
    text = edited("  layers: 2", "  layers: 2\n  gate: uniform")
    text = text.replace("- {backbone: gcn,", "- {hidden_dim: 12, batch_size: 64, gate: bilateral}\n  - {backbone: gcn,")
    with pytest.raises(SpecError) as error:
        plan(read_study(text, "f.yaml"))
    assert str(error.value) == (
        "f.yaml:8: rows[2]: found a second cell digits-gcn-L2-h12-batch_size_64, expected cells whose names differ"
    )


def test_a_condition_may_hold_in_some_rows_only() -> None:
    text = edited("{choice: [1e-3, 1e-2]}", "{choice: [1e-3, 1e-2], when: {hidden_dim: 16}}")
    searched = [[entry.key for entry in cell.space.parameters] for cell in plan(read_study(text)).cells]
    assert searched == [["learning_rate"], ["learning_rate"], ["placement"], ["placement"], [], []]


# What is replaced in ROWS, by what, and the whole line that comes of it.
BROKEN = {
    "no rows": (
        ROWS[ROWS.index("rows:\n") : ROWS.index("space:")],
        "rows: []\n",
        "f.yaml:5: rows: found an empty list, expected a list of at least one mapping with keys such as backbone",
    ),
    "row that is no mapping": (
        "{hidden_dim: 12, batch_size: 64}",
        "gcn",
        "f.yaml:7: rows[1]: found 'gcn', expected a mapping with keys such as dataset",
    ),
    "row without keys": (
        "{hidden_dim: 12, batch_size: 64}",
        "{}",
        "f.yaml:7: rows[1]: found an empty mapping, expected a mapping with keys such as backbone",
    ),
    "unknown key": (
        "{hidden_dim: 12, batch_size: 64}",
        "{hiden_dim: 12}",
        "f.yaml:7: rows[1].hiden_dim: found an unknown key, expected hidden_dim",
    ),
    "wrong type": (
        "{hidden_dim: 12, batch_size: 64}",
        "{hidden_dim: [12, wide]}",
        "f.yaml:7: rows[1].hidden_dim[1]: found 'wide', expected a whole number",
    ),
    "width missing in one row": (
        "{hidden_dim: 12, batch_size: 64}",
        "{batch_size: 64}",
        "f.yaml:7: rows[1].budget: found nothing, expected budget or hidden_dim, here or in space or fixed",
    ),
    "budget and width": (
        "{hidden_dim: 12, batch_size: 64}",
        "{hidden_dim: 12, budget: 5000}",
        "f.yaml:7: rows[1].hidden_dim: found it beside rows[1].budget, expected either budget or hidden_dim",
    ),
    "value that every row replaces": (
        "  layers: 2",
        "  layers: 2\n  hidden_dim: 8",
        "f.yaml:14: fixed.hidden_dim: found it in every row too, expected it in fixed or in rows",
    ),
    "gate setting in a vanilla row": (
        "{hidden_dim: 16, placement: none}",
        "{hidden_dim: 16, placement: none, sigma_m: 2.0}",
        "f.yaml:6: rows[0].sigma_m: found a gate setting, expected none: every cell is vanilla (placement none)",
    ),
    "setting of another backbone": (
        "batch_size: 64}",
        "batch_size: 64, edge_gate: raw}",
        "f.yaml:7: rows[1].edge_gate: found a setting of gated_gcn, expected none: no cell has the backbone gated_gcn",
    ),
    "placement that gates nothing": (
        "placement: [none, dense], ",
        "placement: [none, boosting], layers: 1, ",
        "f.yaml:8: rows[2].placement[1]: found 'boosting', expected layers >= 2: "
        "boosting gates no layer of a network of 1",
    ),
    "condition that holds in no row": (
        "{choice: [1e-3, 1e-2]}",
        "{choice: [1e-3, 1e-2], when: {hidden_dim: 20}}",
        "f.yaml:11: space.learning_rate.when.hidden_dim: found 20, expected a value that hidden_dim can have: 16",
    ),
    "same row twice": (
        "{hidden_dim: 12, batch_size: 64}",
        "{hidden_dim: 16, placement: none}",
        "f.yaml:5: rows: found [a mapping of hidden_dim, placement, a mapping of hidden_dim, placement, a mapping of "
        "backbone, hidden_dim, placement, learning_rate, gcn_normalisation], expected different values: a mapping of "
        "hidden_dim, placement stands twice",
    ),
    "impossible budget": (
        "{hidden_dim: 12, batch_size: 64}",
        "{budget: [5000, 50], backbone: gcn}",
        "f.yaml:7: rows[1].budget[1]: found 50, expected 161 or more: the parameters of 2 layers of gcn on digits at "
        "their narrowest (hidden_dim 4) (in cell digits-gcn-L2-50 with placement = 'boosting', learning_rate = 0.001)",
    ),
}


@pytest.mark.parametrize(("old", "new", "line"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_rows_give_their_one_line(old: str, new: str, line: str) -> None:
    with pytest.raises(SpecError) as error:
        plan(read_study(edited(old, new), "f.yaml"))
    assert str(error.value) == line


PLAIN, SOURCE = read_yaml(ROWS, "f.yaml")
JUNK = st.sampled_from([None, True, -1, 0, 1, 2.5, "", "none", "all", "a\nb", [], [1], [[2, 4]], [None], {}, {"a": 1}])
PATHS = [path for path in SOURCE.lines if path and path[0] == "rows"]


def _replaced(value: Any, path: KeyPath, junk: Any) -> Any:
    if not path:
        return junk
    if isinstance(value, list):
        return [_replaced(entry, path[1:], junk) if index == path[0] else entry for index, entry in enumerate(value)]
    return {key: _replaced(entry, path[1:], junk) if key == path[0] else entry for key, entry in value.items()}


@settings(max_examples=60, deadline=None)
@given(path=st.sampled_from(PATHS), junk=JUNK)
def test_whatever_stands_in_rows_it_is_a_study_or_one_line(path: KeyPath, junk: Any) -> None:
    text = json.dumps(_replaced(PLAIN, path, junk))
    try:
        plan(read_study(text, "f.yaml"))
    except SpecError as error:
        assert str(error).startswith("f.yaml:1: ")  # noqa: PT017 - a study that can be planned is as good
        assert "\n" not in str(error)  # noqa: PT017
