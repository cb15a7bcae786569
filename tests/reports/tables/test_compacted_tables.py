"""What is made of compacted records is what was made of the single files, to the byte."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_studies import runs, trial, vanilla, worked_study, write_study

from reports.compare.smoothing import compare_smoothing
from reports.records.load import load_records, load_results
from reports.records.plan import ResultsError
from reports.tables.write import write_tables
from study.compaction import compact
from study.records import COMPACTED_FILE, RECORD_FILE, SCHEMA, RecordError, read_table


def test_the_tables_are_the_same_to_the_byte(tmp_path: Path) -> None:
    results = worked_study(tmp_path / "worked")
    before = {path.name: path.read_bytes() for path in write_tables(results, tmp_path / "before").paths}
    trials = load_results(results)
    compact(results)
    assert [path.name for path in (results / "records").iterdir()] == [COMPACTED_FILE]
    assert {path.name: path.read_bytes() for path in write_tables(results, tmp_path / "after").paths} == before
    assert load_results(results) == trials


def test_the_worked_tables_come_from_half_compacted_records_too(tmp_path: Path) -> None:
    results = worked_study(tmp_path / "worked")
    expected = load_results(results)
    aside = sorted((results / "records").iterdir())[::2]
    for path in aside:
        path.rename(tmp_path / path.name)
    compact(results)
    for path in aside:
        (tmp_path / path.name).rename(path)
    assert load_results(results) == expected


def test_a_record_written_since_replaces_its_compacted_row(tmp_path: Path) -> None:
    cell = vanilla("digits", "gcn", seeds=[41, 95])
    results = write_study(tmp_path, [cell], runs(cell, [0.5, 0.25]))
    compact(results)
    write_study(tmp_path, [cell], [trial(cell, 41, 0.75)])
    assert sorted(entry.test_metric or 0.0 for entry in load_results(results).trials) == [0.25, 0.75]


def test_columns_are_read_of_both_kinds_of_file(tmp_path: Path) -> None:
    cell = vanilla("digits", "gcn", seeds=[41, 95])
    first, second = runs(cell, [0.5, 0.25], num_epochs=7)
    compact(write_study(tmp_path, [cell], [first]))
    write_study(tmp_path, [cell], [second])
    table = load_records(tmp_path, ["key", "seed", "epochs.list.element.val_metric", RECORD_FILE])
    assert table.column_names == ["key", "seed", "epochs", RECORD_FILE]
    expected = [
        {"key": record.key, "seed": record.seed, "epochs": [{"val_metric": 0.5}] * 7, RECORD_FILE: name}
        for record, name in ((first, COMPACTED_FILE), (second, f"{second.key}.parquet"))
    ]
    assert table.to_pylist() == sorted(expected, key=lambda row: str(row["key"]))


def test_of_no_record_the_columns_are_empty(tmp_path: Path) -> None:
    write_study(tmp_path, [vanilla("zinc", "gcn")], [])
    assert load_records(tmp_path, ["key", RECORD_FILE]).to_pydict() == {"key": [], RECORD_FILE: []}


@pytest.mark.parametrize("kept", [0, 1, 100, -1, -8, -100])
def test_a_cut_compacted_file_is_named(tmp_path: Path, kept: int) -> None:
    compact(worked_study(tmp_path))
    path = tmp_path / "records" / COMPACTED_FILE
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ResultsError, match=r"compacted\.parquet: not a readable Parquet file"):
        load_results(tmp_path)


@pytest.mark.parametrize("key", ["../../outside", "..", ".hidden", "a/b", r"a\b", "a\x00b"])
def test_a_key_that_would_lead_out_of_its_folder_is_refused(tmp_path: Path, key: str) -> None:
    """Files of a trial are found by its key, such as its over-smoothing; a single record's is the name of its file."""
    cell = vanilla("digits", "gcn", seeds=[41])
    compact(write_study(tmp_path, [cell], runs(cell, [0.5])))
    path = tmp_path / "records" / COMPACTED_FILE
    table = read_table(path)
    renamed = table.set_column(0, SCHEMA.field("key"), pa.array([key]))
    assert table.column_names[0] == "key"
    pq.write_table(renamed, path)
    with pytest.raises(RecordError, match=r"compacted\.parquet: found the key .*, which no file of a trial can be"):
        compare_smoothing(tmp_path, "information_gain_kde")


def test_a_compacted_file_that_somebody_rewrote_is_named(tmp_path: Path) -> None:
    compact(worked_study(tmp_path))
    path = tmp_path / "records" / COMPACTED_FILE
    table = read_table(path)
    for changed, message in (
        (table.take(list(range(table.num_rows))[::-1]), "its rows are not ordered by key"),
        (pa.concat_tables([table, table.slice(table.num_rows - 1)]), "its rows are not ordered by key"),
        (table.replace_schema_metadata({"bimp_record_schema": "1"}), "found record schema 1, expected 2"),
        (table.drop_columns(["seed"]).replace_schema_metadata(SCHEMA.metadata), "its columns are not those"),
    ):
        pq.write_table(changed, path)
        with pytest.raises(RecordError, match=message):
            load_results(tmp_path)
