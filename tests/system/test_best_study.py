"""The file that `best` writes, run as any other: it ends with the numbers of the confirm trials, to the bit."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Finished, Studies
from finished import records
from started import run_study

from study.records import TrialRecord

pytestmark = [pytest.mark.system, pytest.mark.slow]


def numbers(record: TrialRecord) -> tuple[object, ...]:
    losses = tuple((epoch.train_loss, epoch.val_loss, epoch.val_metric) for epoch in record.epochs)
    return record.seed, record.config_json, losses, record.train_metric, record.test_metric, record.test_loss


def test_the_best_of_a_study_runs_to_the_numbers_of_its_confirm_trials(
    tiny: Finished, studies: Studies, tmp_path: Path
) -> None:
    file = tmp_path / "best.yaml"
    written = run_study("best", tiny.results, "--out", file, environment=studies.environment).end()
    assert (written.code, written.out, written.err) == (0, f"{file}\n", "")
    assert run_study("plan", file, environment=studies.environment).end().code == 0
    ended = studies.run(file, tmp_path / "results")
    assert ended.code == 0, ended
    again = records(tmp_path / "results").values()
    first = [record for record in records(tiny.results).values() if record.phase == "confirm"]
    assert {record.phase for record in again} == {"confirm"}
    assert len(first) == 4
    assert sorted(map(numbers, again)) == sorted(map(numbers, first))
