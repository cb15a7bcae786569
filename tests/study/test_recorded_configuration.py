"""A record's configuration as a typed value, and what is told where it is none that this version can build."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_trials import assignment, config, record

from bimp.config import TrialConfig
from study.recorded_configuration import recorded_configuration
from study.records import RecordError, TrialRecord

Plain = dict[str, Any]


def of(plain: Plain) -> TrialRecord:
    return replace(record(assignment(Path("results"))), config_json=json.dumps(plain))


def changed(change: Callable[[Plain], object]) -> Plain:
    plain = config().to_dict()
    change(plain)
    return plain


def test_what_was_written_is_read() -> None:
    explicit = replace(config().model, layers=4, placement=(2, 4))
    for given in (config(), config(precision="bfloat16"), replace(config(), model=explicit, fold=3)):
        assert recorded_configuration(of(given.to_dict())) == given


def test_a_setting_of_after_the_record_has_its_default() -> None:
    plain = changed(lambda plain: plain["model"].pop("cut_scope"))
    assert recorded_configuration(of(plain)) == config()


@pytest.mark.parametrize(
    ("plain", "told"),
    [
        (changed(lambda plain: plain.pop("model")), "model: found nothing, expected a value"),
        (changed(lambda plain: plain["train"].pop("batch_size")), "train.batch_size: found nothing, expected a value"),
        (changed(lambda plain: plain["model"].update(layers="two")), "model.layers: found 'two', expected"),
        (changed(lambda plain: plain["model"].update(layers=True)), "model.layers: found True, expected"),
        (changed(lambda plain: plain["train"].update(learning_rate=[1])), r"learning_rate: found \[1\], expected"),
        (changed(lambda plain: plain["model"].update(num_clusters=-3)), "model: num_clusters: found -3, expected"),
        (changed(lambda plain: plain["train"].update(precision="float16")), "train.precision: found 'float16'"),
        (changed(lambda plain: plain["model"].update(bogus=1)), "found model.bogus, which this version does not know"),
        (changed(lambda plain: plain["train"].update(a=1, b=2)), "found train.a, train.b, which this version"),
        (changed(lambda plain: plain.update(dataset="nosuch")), "dataset: found 'nosuch', expected one of digits, "),
        (changed(lambda plain: plain.update(fold="x")), "fold: found 'x', expected a valid integer"),
    ],
)  # fmt: skip
def test_what_no_trial_has_is_named_with_its_trial_and_remedy(plain: Plain, told: str) -> None:
    made = of(plain)
    with pytest.raises(
        RecordError, match=rf"trial {made.key}: config_json: .*{told}.*; read it with the version"
    ) as got:
        recorded_configuration(made)
    assert "\n" not in str(got.value)


def test_nothing_of_it_is_guessed() -> None:
    with pytest.raises(RecordError, match="expected"):
        recorded_configuration(of({}))
    assert TrialConfig.from_dict(config().to_dict()) == config()
