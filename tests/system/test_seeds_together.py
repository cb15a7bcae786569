"""Confirm trials trained together by a real run, killed in the middle and gone on with one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Studies
from finished import mirrored_trials, records
from started import Started

from study.attempts import newest_record
from study.results import ResultsFolder

pytestmark = [pytest.mark.system, pytest.mark.slow]

STUDY = """
name: together
arms: {dataset: digits, backbone: gcn, placement: boosting, hidden_dim: 8, layers: 2}
fixed: {num_clusters: 3, sigma_m: 1.0, max_epochs: 30, batch_size: 32}
confirm: {seeds: [41, 95, 12]}
resources: {max_concurrent: 1, seeds_together: TOGETHER}
"""


def written(file: Path, *, together: bool) -> Path:
    file.write_text(STUDY.replace("TOGETHER", json.dumps(together)))
    return file


def told(results: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (results / "log.jsonl").read_text().splitlines()]


def in_the_middle(results: Path) -> bool:
    """Whether the trials of a cell have each two epochs or more, and are under way."""
    folder = ResultsFolder(results)
    live = [newest_record(folder, key) for key in folder.live_keys()]
    return len(live) == 3 and all(record is not None and record.num_epochs >= 2 for record in live)


def begun(studies: Studies, file: Path, results: Path) -> Started:
    run = studies.start(file, results)
    run.until(lambda: in_the_middle(results), "two epochs of every seed")
    return run


def test_killed_together_each_goes_on_by_itself(studies: Studies, tmp_path: Path) -> None:
    file, results = tmp_path / "study.yaml", tmp_path / "results"
    begun(studies, written(file, together=True), results).kill_with_descendants()
    kept = {key: newest_record(ResultsFolder(results), key) for key in ResultsFolder(results).live_keys()}

    ended = studies.run(written(file, together=False), results)
    assert (ended.code, ended.err) == (0, ""), ended
    found = records(results)
    assert sorted((record.seed, record.status, record.num_epochs) for record in found.values()) == [
        (seed, "finished", 30) for seed in (12, 41, 95)
    ]
    assert set(found) == set(kept)
    for key, before in kept.items():
        assert before is not None
        assert found[key].epochs[:2] == before.epochs[:2], "epochs on disk were trained again"
        assert found[key].device.endswith("(3 seeds together)")
    assert mirrored_trials(results) == dict.fromkeys(found, 1)
    assert {path.stem for path in (results / "weights").iterdir()} == set(found)
    assert list((results / "live").iterdir()) == []
    assert "came_apart" not in {line["event"] for line in told(results)}
