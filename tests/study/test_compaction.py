"""Compacting keeps every bit, and neither a kill at any moment nor a reader beside it sees anything else."""

from __future__ import annotations

import json
import math
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_trials import assignment, config, record

import study.compaction
import study.records
from study import record_values
from study.compaction import compact
from study.found_study import NoStudyError
from study.journal import Journal, JournalEntry
from study.lease import Lease, LeaseLostError
from study.plan import plan, plan_document
from study.records import (
    COMPACTED_FILE,
    RECORD_FILE,
    EpochRecord,
    RecordError,
    TrialRecord,
    read_columns,
    read_record,
    read_records,
    record_tables,
    write_record,
)
from study.results import FIRST_ATTEMPT, ResultsFolder, ResultsFolderError
from study.spec import read_study
from study.status import study_status

ROOT = Path(__file__).parents[2]
STUDY = """
name: made
arms: {dataset: digits, backbone: gcn, placement: [none, boosting], hidden_dim: 6, layers: 2}
space: {learning_rate: {log_uniform: [1e-3, 1e-2]}}
fixed: {max_epochs: 3, num_clusters: 3, sigma_m: 0.5}
search: {trials: 4}
confirm: {seeds: [41, 95]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> ResultsFolder:
    folder = ResultsFolder(tmp_path / "results")
    folder.create()
    folder.plan_file.write_text(json.dumps(plan_document(plan(read_study(STUDY)))))
    return folder


def sealed(folder: ResultsFolder, *seeds: int, **changes: Any) -> list[TrialRecord]:
    made = [
        record(assignment(folder.root, config=config(seed=seed)), epochs=seed % 4, **{"status": "finished", **changes})
        for seed in seeds
    ]
    for entry in made:
        write_record(entry, folder.record(entry.key))
    return made


def by_key(folder: ResultsFolder) -> dict[str, TrialRecord]:
    found = list(read_records(folder.records))
    assert len({entry.key for entry in found}) == len(found)
    assert [entry.key for entry in found] == sorted(entry.key for entry in found)
    return {entry.key: entry for entry in found}


def names(folder: ResultsFolder) -> list[str]:
    return sorted(path.name for path in folder.records.iterdir())


def in_bits(value: object) -> object:
    """``value`` so that == compares every bit of a float: NaN is itself, 0.0 is not -0.0."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, dict):
        return {key: in_bits(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [in_bits(entry) for entry in value]
    return (type(value).__name__, value)


FLOATS = st.one_of(
    st.floats(),
    st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0]),
    st.sampled_from([0.0, -0.0, math.nan, math.inf, 5e-324]),
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "str": st.text(st.characters(codec="utf-8"), max_size=20),
    "Status": st.nothing(),
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": FLOATS,
    "bool": st.booleans(),
    "tuple[int, ...]": st.lists(st.integers(0, 99), max_size=3).map(tuple),
}


def within(least: float, most: float, name: str) -> st.SearchStrategy[Any]:
    if name == "int":
        return st.integers(math.ceil(least), 2**63 - 1)
    return st.floats(least, None if math.isinf(most) else most, allow_nan=False)


def anything(kind: type) -> st.SearchStrategy[Any]:
    """A record, or an epoch of one, with any value in every column that may have any, and else one that it may have."""
    ranges = record_values.EPOCH_RANGES if kind is EpochRecord else record_values.RANGES
    columns = {}
    for entry in fields(kind):
        name, _, optional = str(entry.type).partition(" | ")
        if entry.name == "epochs":
            columns["epochs"] = st.lists(anything(EpochRecord), max_size=3).map(tuple)
        elif entry.name == "key":
            columns["key"] = st.text("0123456789abcdef", min_size=1, max_size=6)
        else:
            values = VALUES[name]
            if entry.name in record_values.WORDS:
                values = st.sampled_from(record_values.WORDS[entry.name])
            elif entry.name in record_values.MAPPINGS:
                values = st.dictionaries(st.text(max_size=3), st.integers(), max_size=2).map(json.dumps)
            elif entry.name in ranges:
                values = within(*ranges[entry.name], name)
            columns[entry.name] = st.one_of(st.none(), values) if optional else values
    return st.builds(kind, **columns)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    first=st.lists(anything(TrialRecord), min_size=1, max_size=8, unique_by=lambda entry: entry.key),
    second=st.lists(anything(TrialRecord), max_size=8, unique_by=lambda entry: entry.key),
    at_once=st.integers(1, 4),
)
def test_every_bit_of_every_column_is_kept(
    tmp_path_factory: pytest.TempPathFactory, first: list[TrialRecord], second: list[TrialRecord], at_once: int
) -> None:
    folder = ResultsFolder(tmp_path_factory.mktemp("made"))
    expected = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study.records, "FILES_AT_ONCE", at_once)
        patch.setattr("study.compaction.ROW_GROUP_BYTES", 1)
        for batch in (first, second):
            for entry in batch:
                write_record(entry, folder.record(entry.key))
            expected |= {entry.key: in_bits(asdict(entry)) for entry in batch}
            compact(folder.root)
            assert names(folder) == [COMPACTED_FILE]
            assert {key: in_bits(asdict(entry)) for key, entry in by_key(folder).items()} == expected


def test_a_file_of_its_own_counts_before_the_compacted_row_and_is_folded_in_next(folder: ResultsFolder) -> None:
    first, other = sealed(folder, 1, 2)
    compact(folder.root)
    later = replace(first, status="superseded", reason="the search was extended")
    write_record(later, folder.record(first.key))
    assert by_key(folder) == {first.key: later, other.key: other}
    places = read_columns(folder.records, ["key", RECORD_FILE]).to_pylist()
    assert {place["key"]: place[RECORD_FILE] for place in places} == {
        first.key: f"{first.key}.parquet",
        other.key: COMPACTED_FILE,
    }
    done = compact(folder.root)
    assert (done.records, done.moved, done.left) == (2, 1, 0)
    assert names(folder) == [COMPACTED_FILE]
    assert by_key(folder) == {first.key: later, other.key: other}


def test_a_second_time_changes_nothing(folder: ResultsFolder) -> None:
    sealed(folder, 1, 2, 3)
    assert compact(folder.root).describe().endswith("3 records, 3 of them from files of their own")
    before = (folder.records / COMPACTED_FILE).stat()
    assert compact(folder.root).describe().endswith("3 records; nothing to add")
    after = (folder.records / COMPACTED_FILE).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_failed_trial_that_is_to_be_tried_again_keeps_its_file(folder: ResultsFolder) -> None:
    (failed,) = sealed(folder, 1, status="failed", reason="OSError: gone")
    sealed(folder, 2)
    write_record(failed, folder.live_record(failed.key, FIRST_ATTEMPT))
    done = compact(folder.root)
    assert (done.records, done.moved, done.left) == (1, 1, 1)
    assert names(folder) == sorted([f"{failed.key}.parquet", COMPACTED_FILE])


def test_it_stays_out_while_a_run_works_there(folder: ResultsFolder) -> None:
    sealed(folder, 1)
    with (
        Lease(folder),
        pytest.raises(
            ResultsFolderError,
            match=r"another run works in this folder \(process .*\); wait for it, then compact",
        ),
    ):
        compact(folder.root)
    assert COMPACTED_FILE not in names(folder)
    with pytest.raises(NoStudyError, match=r"no study here \(there is no such folder\)"):
        compact(folder.root / "elsewhere")


@pytest.mark.parametrize("kept", [0, 100, -8, -100])
def test_a_cut_record_is_named_and_nothing_is_changed(folder: ResultsFolder, kept: int) -> None:
    path = folder.record(sealed(folder, 1, 2, 3)[1].key)
    path.write_bytes(path.read_bytes()[:kept])
    before = {name: (folder.records / name).read_bytes() for name in names(folder)}
    with pytest.raises(RecordError, match=f"{path.name}: not a readable Parquet file"):
        compact(folder.root)
    assert {name: (folder.records / name).read_bytes() for name in names(folder)} == before


def test_a_damaged_compacted_file_is_named(folder: ResultsFolder) -> None:
    sealed(folder, *range(1, 9))
    compact(folder.root)
    path = folder.records / COMPACTED_FILE
    whole = path.read_bytes()
    for content in (whole[:-100], whole[:200] + bytes(8) + whole[208:]):
        path.write_bytes(content)
        with pytest.raises(RecordError, match=r"compacted\.parquet: not a readable .*; put a copy of it back"):
            list(read_records(folder.records))


def test_status_says_the_same(folder: ResultsFolder) -> None:
    (first, *_) = sealed(folder, 1, 2)
    sealed(folder, 3, status="pruned", reason="at the rung of epoch 2")
    sealed(folder, 4, status="diverged", reason="epoch 1: loss nan in training")
    sealed(folder, 41, phase="confirm")
    journal = Journal(folder.journal)
    journal.begin()
    journal.append(JournalEntry(cell=first.cell, number=0, key=first.key, values={}))
    before = study_status(folder.root)
    compact(folder.root)
    assert study_status(folder.root) == before
    sealed(folder, 5)
    assert study_status(folder.root).view.ended == before.view.ended + 1


# ---- readers beside it


def one_by_one(folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of one row, so that a reader can be stopped between any two."""
    monkeypatch.setattr(study.records, "FILES_AT_ONCE", 1)
    monkeypatch.setattr("study.compaction.ROW_GROUP_BYTES", 1)


@pytest.mark.parametrize("read", range(7))
@pytest.mark.parametrize("was_compacted", [False, True])
def test_a_reader_that_is_overtaken_gives_every_trial_once(
    folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch, read: int, was_compacted: bool
) -> None:
    one_by_one(folder, monkeypatch)
    sealed(folder, 1, 2, 3)
    if was_compacted:
        compact(folder.root)
    sealed(folder, 3, 4, 5, 6, reason="again")
    expected = by_key(folder)
    tables = record_tables(folder.records)
    found = [next(tables) for _ in range(read)]
    compact(folder.root)
    found += tables
    keys = [key for table in found for key in table.column("key").to_pylist()]
    assert keys == sorted(expected)
    reasons = [reason for table in found for reason in table.column("reason").to_pylist()]
    assert reasons == [expected[key].reason for key in keys]


def test_a_compaction_right_after_the_files_were_listed_hides_none(
    folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed(folder, 1, 2, 3)
    expected = by_key(folder)
    listed = study.records.single_files

    def overtaken(place: Path) -> list[Path]:
        files = listed(place)
        monkeypatch.setattr(study.records, "single_files", listed)
        compact(folder.root)
        return files

    monkeypatch.setattr(study.records, "single_files", overtaken)
    assert by_key(folder) == expected


# ---- killed

KILLED = """
import os, signal, sys
from pathlib import Path
import pyarrow.parquet
import study.compaction, study.record_files

def killing(function, *, before):
    left = [int(sys.argv[3])]
    def killed(*arguments, **named):
        left[0] -= 1
        if left[0] == 0 and before:
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*arguments, **named)
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return killed

study.compaction.ROW_GROUP_BYTES = 1
study.records.FILES_AT_ONCE = 2
place, before = sys.argv[2].split("-")[1], sys.argv[2].startswith("before")
owner, name = {
    "write": (pyarrow.parquet.ParquetWriter, "write_table"),
    "close": (pyarrow.parquet.ParquetWriter, "close"),
    "check": (study.compaction, "_check"),
    "sync": (os, "fsync"),
    "rename": (Path, "replace"),
    "remove": (Path, "unlink"),
}[place]
setattr(owner, name, killing(getattr(owner, name), before=before))
study.compaction.compact(Path(sys.argv[1]))
"""
MOMENTS = [
    *(("after-write", 2), ("before-close", 1), ("after-sync", 1), ("before-rename", 1), ("after-rename", 1)),
    ("after-remove", 3),
]
MORE_MOMENTS = [
    *(("before-write", 1), ("after-close", 1), ("after-check", 1), ("before-sync", 1), ("before-sync", 2)),
    *(("after-sync", 2), ("before-remove", 1), ("after-remove", 1), ("after-remove", 6)),
]


@pytest.mark.parametrize(
    ("moment", "time"), [*MOMENTS, *(pytest.param(*moment, marks=pytest.mark.slow) for moment in MORE_MOMENTS)]
)
def test_killed_at_any_moment_it_loses_nothing_and_goes_on(folder: ResultsFolder, moment: str, time: int) -> None:
    sealed(folder, 1, 2, 3, 4)
    compact(folder.root)
    sealed(folder, 3, 4, reason="written again since")
    sealed(folder, 5, 6, 7, 8)
    expected, stands = by_key(folder), study_status(folder.root).view
    child = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder.root), moment, str(time)], cwd=ROOT, capture_output=True, check=False
    )
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    assert by_key(folder) == expected
    assert study_status(folder.root).view == stands
    compact(folder.root)
    assert names(folder) == [COMPACTED_FILE], "what the killed one had begun is gone too"
    assert by_key(folder) == expected


def test_a_full_disk_loses_nothing(folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed(folder, 1, 2, 3)
    expected, files = by_key(folder), names(folder)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        compact(folder.root)
    assert names(folder) == files
    assert by_key(folder) == expected


def test_a_file_written_anew_while_it_compacts_stays(folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = sealed(folder, 1, 2)
    checked: Callable[..., None] = study.compaction._check

    def rewritten(*arguments: Any) -> None:
        checked(*arguments)
        write_record(replace(first, reason="written anew"), folder.record(first.key))

    monkeypatch.setattr("study.compaction._check", rewritten)
    compact(folder.root)
    assert read_record(folder.record(first.key)).reason == "written anew"
    assert not folder.record(second.key).exists()
    assert by_key(folder)[first.key].reason == "written anew"


def test_where_another_run_took_the_folder_meanwhile_its_compacted_file_stays(
    folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This machine slept with the new file at hand; elsewhere a trial ended, and was compacted with the others."""
    sealed(folder, 1, 2)
    checked: Callable[..., None] = study.compaction._check
    monotonic = time.monotonic

    def overtaken(*arguments: Any) -> None:
        checked(*arguments)
        monkeypatch.setattr("study.compaction._check", checked)
        monkeypatch.setattr("study.lease_holder.Holder.works", False)
        sealed(folder, 3)
        compact(folder.root)
        monkeypatch.setattr("study.lease.time.monotonic", lambda: monotonic() + 60.0)

    monkeypatch.setattr("study.compaction._check", overtaken)
    with pytest.raises(LeaseLostError):
        compact(folder.root)
    assert {trial.seed for trial in by_key(folder).values()} == {1, 2, 3}
