"""What docs/search_spaces.md shows: its examples are studies, its errors the real ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from broken_combinations import BROKEN_COMBINATIONS
from broken_values import BROKEN_VALUES
from study_text import edited

from study.plan import plan
from study.spec import SpecError, read_study

DOCUMENT = (Path(__file__).parents[3] / "docs" / "search_spaces.md").read_text(encoding="utf-8")
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
    real = (
        {line for _, _, line in [*BROKEN_VALUES.values(), *BROKEN_COMBINATIONS.values()]}
        | {str(budget.value)}
        | {_error_of(rows) for rows in BROKEN_ROWS}
    )
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


def test_null_is_a_value_of_an_arm_that_cannot_be_sampled() -> None:
    read_study(edited("layers: 4", "layers: 4\n  clip_norm: [null, 0.3]"), "f.yaml")
    with pytest.raises(SpecError, match=r"^f.yaml:10: space.clip_norm.choice\[0\]: found nothing, expected a number$"):
        read_study(edited("  num_clusters:", "  clip_norm: {choice: [null, 0.3]}\n  num_clusters:"), "f.yaml")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([("layers: 4", "layers: four"), ("trials: 8", "trials: -8")], "f.yaml:7: arms.layers: found 'four'"),
        ([("layers: 4", "layers: four\n  bogus: 1")], "f.yaml:8: arms.bogus: found an unknown key"),
        ([("budget: 100000", "budget: 50\n  hidden_dim: 8"), ("trials: 8", "trials: -8")], "f.yaml:15: search.trials"),
    ],
)
def test_which_of_several_errors_is_told(changes: list[tuple[str, str]], told: str) -> None:
    text = edited(*changes[0])
    for old, new in changes[1:]:
        text = text.replace(old, new)
    with pytest.raises(SpecError) as error:
        read_study(text, "f.yaml")
    assert str(error.value).startswith(told)


@pytest.mark.parametrize(("key", "other"), [("num_clusters", "hidden_dim: 8"), ("hidden_dim", "num_clusters: 4")])
def test_a_sampled_key_without_a_default_is_missed_where_its_condition_does_not_hold(key: str, other: str) -> None:
    text = (
        f"name: n\narms: {{dataset: zinc, backbone: gcn, layers: [2, 4], placement: boosting}}\nfixed: {{{other}}}\n"
        f"space:\n  {key}: {{int: [4, 8], when: {{layers: 4}}}}\nsearch: {{trials: 2}}\n"
    )
    missed = f"^f.yaml:5: space.{key}: found no value, expected one: the condition on it does not hold"
    with pytest.raises(SpecError, match=missed):
        plan(read_study(text, "f.yaml"))
