"""Reading a results folder: what is refused, and in which words."""

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_studies import gated, runs, trial, vanilla, write_study

from reports.records.load import load_results
from reports.records.plan import ResultsError, load_plan
from study.records import SCHEMA, RecordError, read_table


def one_record(folder: Path) -> Path:
    cell = vanilla("digits", "gcn", seeds=[41])
    write_study(folder, [cell], runs(cell, [0.5], num_epochs=7))
    return next((folder / "records").glob("*.parquet"))


def test_a_trial_has_the_values_of_its_record(tmp_path: Path) -> None:
    cell = gated("zinc", "gat", "2,4", seeds=[12])
    record = trial(cell, 12, 0.25, train_metric=0.125, num_epochs=7, params=123)
    (loaded,) = load_results(write_study(tmp_path, [cell], [record])).trials
    assert (loaded.key, loaded.cell, loaded.seed, loaded.fold) == (record.key, cell["id"], 12, None)
    assert (loaded.test_metric, loaded.train_metric, loaded.num_epochs, loaded.params) == (0.25, 0.125, 7, 123)
    assert (loaded.placement, loaded.gate, loaded.num_clusters, loaded.sigma_m) == ("2,4", "bilateral", 8, 0.5)


def test_the_plan_is_read_in_its_order(tmp_path: Path) -> None:
    cells = [gated("zinc", "gcn", folds=[0, 1], seeds=[41, 95]), vanilla("digits", "gcn")]
    plan = load_plan(write_study(tmp_path, cells, [], caption="words"))
    assert [cell.id for cell in plan.cells] == [cell["id"] for cell in cells]
    assert plan.cells[0].asked == ((41, 0), (41, 1), (95, 0), (95, 1))
    assert plan.cells[1].asked == ((41, None), (95, None), (12, None), (35, None))
    assert plan.caption == "words"


def test_semantics_and_encodings_may_be_missing_but_not_wrong(tmp_path: Path) -> None:
    named = vanilla("digits", "gcn", id="named", semantics="released", pos_enc_dim=8)
    plan = load_plan(write_study(tmp_path / "a", [named, vanilla("digits", "gcn")], []))
    assert [(cell.semantics, cell.pos_enc_dim) for cell in plan.cells] == [("released", 8), (None, None)]
    wrong = write_study(tmp_path / "b", [vanilla("digits", "gcn", pos_enc_dim="8")], [])
    with pytest.raises(ResultsError, match=r"cells\[0\]\.pos_enc_dim: found '8', expected int \| None"):
        load_plan(wrong)


def test_temporary_files_of_running_workers_are_not_records(tmp_path: Path) -> None:
    path = one_record(tmp_path)
    (path.parent / f".{path.name}.abc.tmp").write_bytes(b"half a rec")
    assert len(load_results(tmp_path).trials) == 1


@pytest.mark.parametrize("kept", [0, 1, 100, -1, -8, -100])
def test_a_cut_record_is_named(tmp_path: Path, kept: int) -> None:
    path = one_record(tmp_path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ResultsError, match=f"{path.name}: not a readable Parquet file"):
        load_results(tmp_path)


def test_a_foreign_parquet_file_is_named(tmp_path: Path) -> None:
    path = one_record(tmp_path)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(RecordError, match=f"{path.name}: found record schema none, expected 2 or 3"):
        load_results(tmp_path)


def test_another_schema_version_is_named(tmp_path: Path) -> None:
    path = one_record(tmp_path)
    table = read_table(path).replace_schema_metadata({"bimp_record_schema": "99"})
    pq.write_table(table, path)
    with pytest.raises(RecordError, match=f"{path.name}: found record schema 99, expected 2 or 3"):
        load_results(tmp_path)


def test_other_columns_are_named(tmp_path: Path) -> None:
    path = one_record(tmp_path)
    pq.write_table(read_table(path).drop_columns(["seed"]).replace_schema_metadata(SCHEMA.metadata), path)
    with pytest.raises(RecordError, match=f"{path.name}: its columns are not those"):
        load_results(tmp_path)


def test_a_copy_of_a_record_under_another_name_is_refused(tmp_path: Path) -> None:
    path = one_record(tmp_path)
    (path.parent / "copy.parquet").write_bytes(path.read_bytes())
    with pytest.raises(ResultsError, match=r"copy\.parquet: not the record of trial copy"):
        load_results(tmp_path)


def test_a_folder_without_plan_or_records_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"missing: no study here \(there is no such folder\)"):
        load_results(tmp_path / "missing")
    with pytest.raises(ResultsError, match=r"no study here \(plan.json is missing\)"):
        load_results(tmp_path)
    write_study(tmp_path, [vanilla("zinc", "gcn")], [])
    assert load_results(tmp_path).trials == ()
    (tmp_path / "records").rmdir()
    with pytest.raises(ResultsError, match="records: not found, so there is no record at all"):
        load_results(tmp_path)


def broken(**changes: Any) -> dict[str, Any]:
    return {"format": 1, "study": "s", "caption": None, "cells": [vanilla("zinc", "gcn")], **changes}


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ([], "found plan format None, expected 1"),
        (broken(format=2), "found plan format 2, expected 1"),
        (broken(cells=[]), r"cells: found \[\], expected a list of one or more cells"),
        (broken(cells=["x"]), r"cells\[0\]: found 'x', expected the keys of a cell"),
        (broken(study=None), "study: found None, expected str"),
        (broken(cells=[vanilla("zinc", "gcn", layers="4")]), r"cells\[0\]\.layers: found '4', expected int"),
        (broken(cells=[vanilla("zinc", "gcn", layers=True)]), r"cells\[0\]\.layers: found True, expected int"),
        (broken(cells=[vanilla("zinc", "gcn", seeds=[1.5])]), r"cells\[0\]\.seeds: found \[1\.5\]"),
        (broken(cells=[vanilla("zinc", "gcn", seeds=[])]), r"cells\[0\]: seeds \(\) on folds None"),
        (broken(cells=[vanilla("zinc", "gcn", seeds=[4, 4])]), r"seeds \(4, 4\) on folds None, expected one or more"),
        (broken(cells=[vanilla("zinc", "gcn", metric="auc")]), r"cells\[0\]\.metric: found 'auc', expected one of mae"),
        (broken(cells=[vanilla("zinc", "gcn", direction="up")]), r"direction: found 'up', expected one of min, max"),
        (
            broken(cells=[vanilla("zinc", "gcn", departures=["a"])]),
            r"\.departures: found \['a'\], expected settings",
        ),
        (broken(cells=[vanilla("zinc", "gcn", other_settings=1)]), r"\.other_settings: found 1, expected settings"),
        (broken(cells=[vanilla("zinc", "gcn")] * 2), "the cell id 'zinc-gcn-none-L4-100000' stands twice"),
    ],
)
def test_a_broken_plan_is_named(tmp_path: Path, plan: object, message: str) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(ResultsError, match=message) as caught:
        load_plan(tmp_path)
    assert "plan.json: " in str(caught.value) or "plan.json." in str(caught.value)
    assert str(caught.value).endswith("; run the study again to write it anew")


def test_a_plan_with_a_missing_key_or_cut_in_two_is_named(tmp_path: Path) -> None:
    cell = vanilla("zinc", "gcn")
    del cell["budget"]
    text = json.dumps(broken(cells=[cell]))
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(ResultsError, match=r"cells\[0\]\.budget: missing, expected int \| None"):
        load_plan(tmp_path)
    (tmp_path / "plan.json").write_text(text[: len(text) // 2])
    with pytest.raises(ResultsError, match="not readable as JSON"):
        load_plan(tmp_path)


def test_nan_in_a_record_is_not_null(tmp_path: Path) -> None:
    cell = vanilla("digits", "gcn", seeds=[41])
    (loaded,) = load_results(write_study(tmp_path, [cell], [trial(cell, 41, math.nan)])).trials
    assert loaded.test_metric is not None
    assert math.isnan(loaded.test_metric)
