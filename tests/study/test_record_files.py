"""Record files of before read as of now, and files that hold what no record does are named in one line."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_trials import assignment, config, record

from bimp.config import TrialConfig
from study import record_files
from study.compaction import compact
from study.record_values import wrong_value
from study.records import (
    COMPACTED_FILE,
    SCHEMA,
    RecordError,
    TrialRecord,
    read_columns,
    read_record,
    read_records,
    read_table,
    write_record,
)
from study.results import ResultsFolder


def trial(number: int = 0, *, precision: str = "float32", **changes: Any) -> TrialRecord:
    given = assignment(Path("results"), number=number, config=config(seed=number, precision=precision))
    return record(given, 2, **{"status": "finished", "reason": "max_epochs", "ended_at": 9.0, **changes})


def write_as_before(trial: TrialRecord, folder: Path) -> Path:
    """A file of schema version 2, in which the precision stood in the configuration alone."""
    path = folder / f"{trial.key}.parquet"
    write_record(trial, path)
    table = pq.read_table(path).drop_columns(["precision"])
    pq.write_table(table.replace_schema_metadata({"bimp_record_schema": "2"}), path)
    return path


def forged(trial: TrialRecord, folder: Path, **values: Any) -> Path:
    path = folder / f"{trial.key}.parquet"
    write_record(replace(trial, **values), path)
    return path


class TestFilesOfBefore:
    @pytest.mark.parametrize("precision", ["float32", "bfloat16"])
    def test_are_read_with_the_precision_that_their_configuration_says(self, precision: str, tmp_path: Path) -> None:
        made = trial(precision=precision)
        assert made.precision == precision
        path = write_as_before(made, tmp_path)
        assert read_record(path) == made
        assert read_table(path).schema.equals(SCHEMA)

    def test_stand_beside_those_of_now(self, tmp_path: Path) -> None:
        before, now = trial(0, precision="bfloat16"), trial(1)
        write_as_before(before, tmp_path)
        write_record(now, tmp_path / f"{now.key}.parquet")
        assert {one.key: one for one in read_records(tmp_path)} == {before.key: before, now.key: now}

    def test_give_the_columns_that_are_asked_for_and_no_other(self, tmp_path: Path) -> None:
        before, now = trial(0, precision="bfloat16"), trial(1)
        write_as_before(before, tmp_path)
        write_record(now, tmp_path / f"{now.key}.parquet")
        expected = {before.key: "bfloat16", now.key: "float32"}
        found = read_columns(tmp_path, ["key", "precision", "epochs.list.element.epoch"])
        assert found.column_names == ["key", "precision", "epochs"]
        assert {row["key"]: row["precision"] for row in found.to_pylist()} == expected
        assert read_columns(tmp_path, ["seed", "epochs.list.element.epoch"]).column_names == ["seed", "epochs"]

    @pytest.mark.parametrize("compacted", [False, True])
    def test_stand_beside_those_of_now_in_whatever_order_columns_are_asked_for(
        self, compacted: bool, tmp_path: Path
    ) -> None:
        before, now = trial(0, precision="bfloat16"), trial(1)
        path = write_as_before(before, tmp_path)
        if compacted:
            path.rename(tmp_path / COMPACTED_FILE)
        write_record(now, tmp_path / f"{now.key}.parquet")
        asked = ["seed", "precision", "departures", "config_json", "cell", "key"]
        assert asked != [name for name in SCHEMA.names if name in asked]
        found = read_columns(tmp_path, asked)
        assert found.column_names == asked
        assert {row["key"]: (row["seed"], row["precision"], row["cell"]) for row in found.to_pylist()} == {
            one.key: (one.seed, one.precision, one.cell) for one in (before, now)
        }

    def test_become_those_of_now_when_they_are_compacted(self, tmp_path: Path) -> None:
        folder = ResultsFolder(tmp_path)
        folder.create()
        before, now = trial(0, precision="bfloat16"), trial(1)
        write_as_before(before, folder.records)
        write_record(now, folder.record(now.key))
        compact(tmp_path)
        assert pq.read_schema(folder.records / COMPACTED_FILE).equals(SCHEMA)
        assert {one.key: one for one in read_records(folder.records)} == {before.key: before, now.key: now}

    def test_must_have_the_columns_of_their_version(self, tmp_path: Path) -> None:
        path = tmp_path / "k.parquet"
        write_record(trial(), path)
        table = pq.read_table(path)
        pq.write_table(table.replace_schema_metadata({"bimp_record_schema": "2"}), path)
        with pytest.raises(RecordError, match=r"k\.parquet: its columns are not those of record schema 2; remove it"):
            read_record(path)


WITHOUT_TRAINING = json.dumps({**config().to_dict(), "train": [1]})

WRONG = [
    ({"config_json": "{"}, "config_json: not readable as JSON"),
    ({"config_json": "[" * 100_000}, "config_json: not readable as JSON"),
    ({"config_json": "[1]"}, r"config_json: found \[1\], expected a mapping"),
    ({"config_json": "null"}, "config_json: found None, expected a mapping"),
    ({"config_json": WITHOUT_TRAINING}, r"config_json: train: found \[1\], expected a mapping"),
    ({"versions_json": "3"}, "versions_json: found 3, expected a mapping"),
    ({"departures": "{x"}, "departures: not readable as JSON"),
    ({"status": "done"}, "status: found 'done', expected one of running, finished"),
    ({"phase": ""}, "phase: found '', expected one of search, confirm"),
    ({"params": -1}, "params: found -1, expected 0 or more"),
    ({"budget": -1}, "budget: found -1, expected 1 or more"),
    ({"seconds": math.nan}, "seconds: found nan, expected a number from 0 to 253402300799"),
    ({"ended_at": math.inf}, "ended_at: found inf, expected a number from 0 to 253402300799"),
]


@pytest.mark.parametrize(("values", "told"), WRONG, ids=lambda value: next(iter(value), "") if value else "")
def test_what_no_record_says_is_named_with_its_file_trial_and_remedy(
    values: dict[str, Any], told: str, tmp_path: Path
) -> None:
    made = trial()
    path = forged(made, tmp_path, **values)
    with pytest.raises(RecordError, match=rf"{path.name}: trial {made.key}: {told}.*; remove it, and run the study ag"):
        list(read_records(tmp_path))


def test_an_epoch_that_ended_at_no_time_is_named(tmp_path: Path) -> None:
    made, good = trial(0), trial(1)
    write_record(good, tmp_path / f"{good.key}.parquet")
    first, last = made.epochs
    forged(made, tmp_path, epochs=(first, replace(last, ended_at=math.nan)))
    with pytest.raises(RecordError, match=f"trial {made.key}: epochs: ended_at: found nan, expected a number from 0"):
        list(read_records(tmp_path))


def test_values_of_many_files_are_looked_at_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        forged(trial(number), tmp_path)
    looks = []

    def counted(table: pa.Table) -> tuple[str, str] | None:
        looks.append(table.num_rows)
        return wrong_value(table)

    monkeypatch.setattr(record_files, "wrong_value", counted)
    assert len(list(read_records(tmp_path))) == 20
    assert looks == [20]


def test_null_and_a_metric_that_is_no_number_are_what_records_say(tmp_path: Path) -> None:
    made = trial(budget=None, ended_at=None, departures=None)
    path = forged(made, tmp_path, val_metric=math.nan, time_limit_s=None)
    assert math.isnan(read_record(path).val_metric or 0.0)


def test_texts_that_are_no_text_are_named(tmp_path: Path) -> None:
    path = forged(trial(), tmp_path)
    table = pq.read_table(path)
    place = table.schema.get_field_index("reason")
    offsets = pa.array([0, 2], pa.int32()).buffers()[1]
    no_text = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff\xfe")])
    pq.write_table(table.set_column(place, SCHEMA.field("reason"), no_text), path)
    with pytest.raises(RecordError, match=f"{path.name}: not a readable Parquet file .*UTF8"):
        read_columns(tmp_path, ["reason"])


@pytest.mark.parametrize("rows", [0, 2])
def test_one_file_holds_one_trial(rows: int, tmp_path: Path) -> None:
    path = forged(trial(), tmp_path)
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table] * rows) if rows else table.slice(0, 0), path)
    with pytest.raises(RecordError, match=f"{path.name}: found {rows} trials, expected one; remove it"):
        read_record(path)


@pytest.mark.parametrize("name", ["a b", "a\nb", "ä", "\udcff"])
def test_a_file_whose_name_is_no_key_is_foreign(name: str, tmp_path: Path) -> None:
    forged(trial(), tmp_path).rename(tmp_path / f"{name}.parquet")
    with pytest.raises(RecordError, match=r"\.parquet: its name is not the key of a trial; move foreign files out"):
        list(read_records(tmp_path))


def test_a_link_that_leads_nowhere_is_named_and_not_waited_for(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    folder.create()
    folder.record("lost").symlink_to(tmp_path / "nowhere")
    with pytest.raises(RecordError, match=r"lost\.parquet: not a readable Parquet file"):
        list(read_records(folder.records))
    with pytest.raises(RecordError, match=r"lost\.parquet: a link that leads nowhere; remove it, or bring back"):
        compact(tmp_path)


def test_a_compacted_file_without_rows_is_filled(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    folder.create()
    made = trial()
    path = forged(made, folder.records)
    pq.write_table(pq.read_table(path).slice(0, 0), folder.records / COMPACTED_FILE)
    assert compact(tmp_path).records == 1
    assert list(read_records(folder.records)) == [made]


def test_a_broken_record_is_not_compacted_with_good_ones(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    folder.create()
    good = forged(trial(0), folder.records)
    bad = forged(trial(1), folder.records, config_json="{")
    with pytest.raises(RecordError, match=bad.name):
        compact(tmp_path)
    assert sorted(path.name for path in folder.records.iterdir()) == sorted([good.name, bad.name])


def test_a_file_in_the_place_of_the_records_is_no_study_without_trials(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("a file")
    with pytest.raises(NotADirectoryError):
        list(read_records(tmp_path / "records"))
    assert list(read_records(tmp_path / "nowhere")) == []


def test_every_part_of_an_identity_has_a_column() -> None:
    plain = config(precision="bfloat16").to_dict()
    settings = {*plain["model"], *plain["train"], *(plain.keys() - {"model", "train"})}
    assert settings <= set(SCHEMA.names)
    assert settings == {*_field_names(TrialConfig)}


def _field_names(kind: Any) -> set[str]:
    from bimp.config import ModelConfig, TrainConfig

    parts = {"model": ModelConfig, "train": TrainConfig}
    return {
        name
        for field in kind.__dataclass_fields__
        for name in (parts[field].__dataclass_fields__ if field in parts else [field])
    }


def test_whichever_byte_of_a_file_is_wrong_it_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    made = trial(test_metric=0.7234567)
    path = forged(made, tmp_path)
    whole = path.read_bytes()
    refused = []
    for place in range(0, len(whole), 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            assert read_record(path) == made, place
        except RecordError as error:
            refused.append(str(error))
    assert len(refused) > 100
    assert all(line.startswith(f"{path}: ") for line in refused)
