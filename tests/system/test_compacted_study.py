"""A finished study whose records were compacted is the same study to every command."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from conftest import Finished, Studies
from finished import mirrored_trials, query, records
from started import Ended, environment, run_study

pytestmark = pytest.mark.system


def told(*arguments: str | Path) -> Ended:
    ended = run_study(*arguments, environment=environment()).end()
    assert ended.code == 0, ended
    return ended


def content(results: Path) -> list[str]:
    with closing(sqlite3.connect(f"file:{results / 'mlflow.db'}?mode=ro", uri=True)) as database:
        return list(database.iterdump())


@pytest.mark.slow
def test_nothing_but_the_files_changes(tiny: Finished, studies: Studies, tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(tiny.results, results)
    told("rebuild-mlflow", results)  # its files lie elsewhere now
    before, status, mirror = records(results), told("status", results).out, content(results)
    tables = {path.name: path.read_bytes() for path in (results / "tables").iterdir()}

    assert (
        f"{results}/records/compacted.parquet: 10 records, 10 of them from files of their own"
        in told("compact", results).out
    )
    assert [path.name for path in (results / "records").iterdir()] == ["compacted.parquet"]
    assert "nothing to add" in told("compact", results).out
    assert records(results) == before
    assert told("status", results).out == status

    again = studies.run(tiny.file, results)
    assert again.code == 0, again
    assert "±" in again.out
    assert [path.name for path in (results / "records").iterdir()] == ["compacted.parquet"]
    assert {path.name: path.read_bytes() for path in (results / "tables").iterdir()} == tables

    assert told("rebuild-mlflow", results).out.endswith(f"mlflow.db: holds 10 records of {results}\n")
    assert content(results) == mirror
    assert mirrored_trials(results) == dict.fromkeys(before, 1)


def test_the_run_of_a_study_that_has_ended_holds_its_tables(tiny: Finished) -> None:
    ((uri,),) = query(
        tiny.results,
        "SELECT artifact_uri FROM runs JOIN tags USING (run_uuid) WHERE tags.key = 'level' AND tags.value = 'study'",
    )
    kept = Path(uri.removeprefix("file://")) / "tables"
    written = {path.name: path.read_bytes() for path in (tiny.results / "tables").iterdir()}
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == written
    assert kept.is_relative_to(tiny.results / "mlartifacts")
