"""Trials that go wrong are on record, and the study goes on without them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import Studies
from finished import mirrored_trials, query, records

pytestmark = [pytest.mark.system, pytest.mark.slow]

DIVERGING = """
name: diverging
arms: {dataset: digits, backbone: gcn, placement: [none, boosting], budget: 5000, layers: 2}
space: {lr_patience: {choice: [3, 4]}}
fixed: {max_epochs: 2, batch_size: 256, learning_rate: 1.0e+30, num_clusters: 3, sigma_m: 1.0}
search: {sampler: grid}
confirm: {seeds: [41, 95]}
"""

ALTERED = """
name: altered
arms: {dataset: digits, backbone: gcn, placement: boosting, budget: 5000, layers: 2}
space: {num_clusters: {choice: [2, 3, 4, 5, 6, 7]}}
fixed: {max_epochs: 2, batch_size: 128, sigma_m: 1.0, learning_rate: 1.0e-3}
search: {sampler: grid}
confirm: {seeds: [41]}
resources: {max_concurrent: 1}
"""


def test_a_study_in_which_all_diverges_says_so_and_ends(studies: Studies, tmp_path: Path) -> None:
    file, results = tmp_path / "diverging.yaml", tmp_path / "results"
    file.write_text(DIVERGING)
    outcome = studies.run(file, results)
    assert outcome.code == 0, outcome
    assert outcome.err == ""
    found = records(results)
    assert [(record.phase, record.status) for record in found.values()] == [("search", "diverged")] * 4
    for record in found.values():
        assert record.reason is not None
        assert "epoch 1" in record.reason
        assert record.val_metric is None
    assert mirrored_trials(results) == dict.fromkeys(found, 1)
    assert set(query(results, "SELECT status FROM runs JOIN tags USING (run_uuid) WHERE key = 'trial_key'")) == {
        ("FAILED",)
    }
    rows = [line for line in (results / "tables" / "results.md").read_text().splitlines() if "GCN" in line]
    assert len([row for row in rows if row.startswith("|") and "–" in row]) >= 1  # noqa: RUF001 - the table's dash
    assert "±" not in (results / "tables" / "results.md").read_text().split("Mean ±")[0]
    told = studies.status(results)
    assert told.out.count(": diverged, ") == 4
    again = studies.run(file, results)
    assert again.code == 0
    assert records(results) == found, "a diverged trial is never tried again"


def test_a_trial_that_failed_is_explained_and_tried_again_at_the_next_start(studies: Studies, tmp_path: Path) -> None:
    """Somebody replaces a file of the prepared data while the study runs, and puts the old one back."""
    file, results, data = tmp_path / "altered.yaml", tmp_path / "results", tmp_path / "data"
    file.write_text(ALTERED)
    shutil.copytree(studies.data, data)
    target, right, wrong = data / "digits" / "y.bin", tmp_path / "right", tmp_path / "wrong"
    right.write_bytes(target.read_bytes())
    wrong.write_bytes(bytes(len(right.read_bytes())))
    started = studies.start(file, results, data=data)
    started.until(lambda: list((results / "records").glob("*.parquet")), "a first record")
    # Renamed into place: trials that have the old file mapped keep it.
    wrong.replace(target)
    started.until(lambda: list((results / "errors").glob("*.txt")), "a failed trial")
    right.replace(target)
    outcome = started.end()

    assert outcome.code == 1, outcome
    assert outcome.err == ""
    failed = {key: record for key, record in records(results).items() if record.status == "failed"}
    assert failed
    assert len(failed) < 6, "the study went on once the file was right again"
    assert f"{len(failed)} trial{'s' if len(failed) > 1 else ''} failed" in outcome.out
    told = studies.status(results).out
    for key, record in failed.items():
        assert record.reason is not None
        assert record.reason.startswith("DataError: ")
        assert str(target) in record.reason
        assert f"{key} {record.cell} {record.phase} seed 41: failed, {record.reason}" in told
        traceback = (results / "errors" / f"{key}.txt").read_text()
        assert traceback.startswith("Traceback")
        # A long cause is cut.
        assert record.reason.removeprefix("DataError: ").removesuffix(" ...") in traceback

    again = studies.run(file, results, data=data)
    assert again.code == 0, again
    after = records(results)
    assert failed.keys() <= after.keys()
    assert {record.status for record in after.values()} <= {"finished", "superseded"}
    assert list((results / "errors").iterdir()) == []
    assert mirrored_trials(results) == dict.fromkeys(after, 1)
