"""docs/search_spaces.md against the keys of a study file: their values, defaults, and the models that they are of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError
from told_pages import named, page, rows, section

from bimp.semantics import SETTINGS
from study.configuration import configuration
from study.spec.hyperparameters import HYPERPARAMETERS
from study.spec.study_spec import AshaSpec, ConfirmSpec, ResourcesSpec, SearchSpec

ARMS = section(page("search_spaces"), "## Arms, space, fixed")


def settings() -> Iterator[tuple[str, str, str]]:
    """Every setting of the presets, with the values and the models that are told."""
    told: dict[str, str] = {}
    for row in (row for row in rows(ARMS) if len(row) == 3 and row[0] != "setting"):
        for name in named(row[0]):
            told[name] = told[name.removeprefix("gated_")] if row[1] == "the same" else row[1]
            yield name, told[name], row[2]


def takes(key: str, value: object) -> bool:
    try:
        TypeAdapter(HYPERPARAMETERS[key].value).validate_python(value)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(("key", "values"), [(key, values) for key, values, _ in settings()])
def test_settings_take_the_values_that_are_told(key: str, values: str) -> None:
    if values.startswith("number"):
        assert takes(key, 0.5)
        assert takes(key, 0.0) == ("0 or more" in values)
        assert takes(key, None) == ("`null`" in values)
        assert not takes(key, -0.5)
    elif values == "`true`, `false`":
        assert takes(key, True)
        assert not takes(key, 1)
    else:
        assert named(values) == list(get_args(HYPERPARAMETERS[key].value))


@pytest.mark.parametrize(("key", "of"), [(key, of) for key, _, of in settings()])
def test_settings_are_of_the_models_that_are_told(key: str, of: str) -> None:
    scope = SETTINGS[key]
    models = "all" if scope.backbone is None and not scope.gated else f"`{scope.backbone}`"
    if scope.gated:
        models = "gated models" if scope.backbone is None else f"gated {models}"
    assert of == models


def test_hyperparameters_have_the_defaults_that_are_told() -> None:
    arms = {"dataset": "zinc", "backbone": "gat", "layers": 2, "hidden_dim": 8}
    trial = configuration({**arms, "placement": "boosting", "num_clusters": 4}, seed=0, fold=None)
    vanilla = configuration(arms, seed=0, fold=None)
    had = {**vars(trial.train), **vars(trial.model), "placement": vanilla.model.placement}
    told = {named(row[0])[0]: row[2] for row in rows(ARMS) if len(row) == 4 and named(row[0])}
    checked = {key: text.strip("`") for key, text in told.items() if re.fullmatch(r"`[\w]+`|[\d.]+", text)}
    assert len(checked) == 12
    assert checked == {key: text_of(had[key]) for key in checked}


@pytest.mark.parametrize(
    ("heading", "models"),
    [
        ("## search", {"": SearchSpec(), "asha.": AshaSpec(grace_epochs=1)}),
        ("## confirm", {"": ConfirmSpec()}),
        ("## resources", {"": ResourcesSpec()}),
    ],
)
def test_keys_of_a_section_have_the_defaults_that_are_told(heading: str, models: dict[str, Any]) -> None:
    known = {f"{before}{key}": value for before, model in models.items() for key, value in model}
    for row in (row for row in rows(section(page("search_spaces"), heading)) if named(row[0])):
        if re.match(r"`[^`]+`|\d+$|none$", row[2]):
            told = (named(row[2]) or [row[2]])[0]
            assert told in (text_of(known[named(row[0])[0]]), str(known[named(row[0])[0]]).lower()), row[0]


def text_of(value: object) -> str:
    if isinstance(value, tuple):
        return str(list(value))
    if isinstance(value, float) and value.is_integer():
        return f"{value:.1f}" if value else "0"
    return "null" if value is None else str(value)
