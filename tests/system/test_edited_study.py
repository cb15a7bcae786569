"""A finished study whose file is edited: what is new is run, what was run stays, ``--as`` runs the rest elsewhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import TINY, Finished, Studies
from finished import query, records

from study.spec import load_study

pytestmark = [pytest.mark.system, pytest.mark.slow]

DENSE = "digits-gcn-dense-L2-5k"


def edited(file: Path, *changes: tuple[str, str]) -> Path:
    text = TINY.read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file.write_text(text)
    return file


def untouched(results: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (results / "records").glob("*.parquet")}


def table(results: Path) -> str:
    return (results / "tables" / "results.md").read_text()


def test_an_edited_study_goes_on(studies: Studies, tiny: Finished, tmp_path: Path) -> None:
    assert tiny.ended.code == 0, tiny.ended
    results, file = tmp_path / "results", tmp_path / "study.yaml"
    shutil.copytree(tiny.results, results, ignore=shutil.ignore_patterns("mlflow.db*"))
    first = untouched(results)
    more = (
        ("placement: [none, boosting] ", "placement: [none, boosting, dense] "),
        ("seeds: [41, 95] ", "seeds: [41, 95, 12] "),
        ("Two epochs", "Still two epochs"),
        ("confirm:  ", "resources: {max_concurrent: 2}\nconfirm:  "),
    )

    grown = studies.run(edited(file, *more), results)
    assert (grown.code, grown.err) == (0, ""), grown
    assert f"taken up: 1 new cell ({DENSE})\n" in grown.out
    assert "taken up: confirm.seeds: [41, 95] -> [41, 95, 12] (2 cells)\n" in grown.out
    second = untouched(results)
    assert first.items() <= second.items(), "a trial that had ended was run or written again"
    new = [record for key, record in records(results).items() if f"{key}.parquet" not in first]
    assert sorted((record.cell, record.phase, record.seed) for record in new) == sorted(
        [
            ("digits-gcn-none-L2-5k", "confirm", 12),
            ("digits-gcn-boosting-L2-5k", "confirm", 12),
            *((DENSE, "confirm", seed) for seed in (41, 95, 12)),
            *((DENSE, "search", 41) for _ in range(3)),
        ]
    )
    whole_table = table(results)
    assert "Still two epochs" in whole_table
    assert "dense" in whole_table

    fewer = studies.run(edited(file, *more[1:]), results)
    assert (fewer.code, fewer.err) == (0, ""), fewer
    assert (
        f"no longer in the study: 1 cell ({DENSE}); the tables leave out what is on record of it (6 trials)"
        in fewer.out
    )
    assert "dense" not in table(results)
    assert "3 confirm trials of cells that are not in the plan" in table(results)
    assert f"{DENSE}: no longer in the study; 6 on record, left out" in studies.status(results).out

    back = studies.run(edited(file, *more), results)
    assert (back.code, back.err) == (0, ""), back
    assert untouched(results) == second
    assert table(results) == whole_table

    altered = (("[1e-3, 1e-2]", "[1e-3, 2e-2]"), ("max_epochs: 2 ", "max_epochs: 1 "))
    other = edited(file, *more, *altered)
    refused = studies.run(other, results)
    assert refused.code == 2, refused
    assert refused.err == (
        f"error: {results}: {file} would alter trials that were run here: max_epochs: 2 -> 1 (every cell); "
        "space.learning_rate: log_uniform [0.001, 0.01] -> log_uniform [0.001, 0.02] (every cell); undo this, or give "
        "the changed study a name and a folder of its own with --as NEW_NAME\n"
    )
    assert untouched(results) == second

    apart = studies.run(other, results, "--as", "wider")
    assert (apart.code, apart.err) == (0, ""), apart
    wider = tmp_path / "wider"
    assert untouched(results) == second
    assert {(record.study, record.max_epochs) for record in records(wider).values()} == {("wider", 1)}
    assert load_study(wider / "study.yaml").name == "wider"
    assert ("wider",) in query(wider, "SELECT name FROM experiments")
