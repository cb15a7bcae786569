"""What a trial's record says of the reading of the paper that it followed."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from bimp.config import TrialConfig
from bimp.semantics import SETTINGS
from study.assignment import TrialAssignment
from study.growing_record import initial_record
from study.plan import plan, resolve
from study.records import TrialRecord, read_record, write_record
from study.spec import read_study

STUDY = """
name: n
arms: {dataset: zinc, backbone: [gcn, gat], placement: [none, boosting], hidden_dim: 8, layers: 2}
fixed: {semantics: released, num_clusters: 3, metric_bias: false, pos_enc_dim: 4}
"""


def recorded(number: int, study: str = STUDY) -> tuple[TrialConfig, TrialRecord]:
    spec = read_study(study)
    cell = plan(spec).cells[number]
    config = resolve(cell, {}, spec, seed=41, fold=None)
    assignment = TrialAssignment(
        key="k", study="n", cell=cell.id, phase="confirm", number=None, chosen_from=None, budget=None, config=config,
        data_fingerprint="f", data_root="data", results="results", threads=1, use_gpu=False, git_commit=None,
        git_dirty=None,
    )  # fmt: skip
    return config, initial_record(assignment, "cpu")


def test_every_setting_has_a_column() -> None:
    assert set(SETTINGS) <= {field.name for field in fields(TrialRecord)}


@pytest.mark.parametrize("number", range(4))
def test_columns_hold_what_means_something_and_null_elsewhere(number: int, tmp_path: Path) -> None:
    config, record = recorded(number)
    for name in SETTINGS:
        assert getattr(record, name) == config.settings.get(name)
    assert (record.semantics, record.pos_enc_dim, record.out_dim) == ("released", 4, None)
    write_record(record, tmp_path / "k.parquet")
    assert read_record(tmp_path / "k.parquet") == record


def test_departures_are_on_record() -> None:
    (_, vanilla), (_, gated) = recorded(0), recorded(1)
    assert vanilla.departures is None
    assert json.loads(gated.departures or "") == {"metric_bias": False}
    assert (gated.metric_bias, gated.gate_epsilon, gated.cut_scope) == (False, 1e-6, "batch")
    assert (vanilla.metric_bias, vanilla.gate_epsilon, vanilla.cut_scope) == (None, None, None)
    assert TrialConfig.from_dict(json.loads(gated.config_json)) == recorded(1)[0]


@pytest.mark.parametrize(("given", "precision"), [("", "float32"), ("precision: bfloat16, ", "bfloat16")])
def test_precision_of_a_study_file_is_the_trials_and_on_record(given: str, precision: str, tmp_path: Path) -> None:
    config, record = recorded(0, STUDY.replace("fixed: {", f"fixed: {{{given}"))
    assert (config.train.precision, record.precision) == (precision, precision)
    write_record(record, tmp_path / "k.parquet")
    assert read_record(tmp_path / "k.parquet").precision == precision
    assert config.departures == {}
