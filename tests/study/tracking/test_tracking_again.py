"""A folder that is mirrored again: nothing is written twice, nothing that people added is lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

import pytest
from made_mirrors import (
    TRIAL,
    VANILLA,
    a_busy_folder,
    mirror_of,
    planned_cell,
    record,
    running,
    seal,
    write_plan,
)
from read_mirrors import dump, live_runs, parameters_of, query, tags_of

from study.compaction import compact
from study.records import write_record
from study.results import FIRST_ATTEMPT, ResultsFolder
from study.tracking import changes, default_tracking_uri, parents
from study.tracking.content import ConfirmResult, MetricRow, summary_metrics


def test_a_second_mirror_of_the_same_folder_changes_nothing(folder: ResultsFolder) -> None:
    a_busy_folder(folder)
    first = mirror_of(folder)
    assert first.sync_folder() == 6
    once = dump(folder)
    assert len(once["runs"]) == 1 + 2 + 6
    assert first.sync_folder() == 0
    assert dump(folder) == once
    second = mirror_of(folder)
    assert second.sync_folder() == 6
    assert dump(folder) == once
    for entry in (record(), running("key5", 2)):
        second.sync(entry)
    assert dump(folder) == once


def test_a_pass_sums_up_only_cells_whose_trials_have_changed(
    folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    summed: list[list[str]] = []

    def counted(results: Iterable[ConfirmResult]) -> list[MetricRow]:
        found = list(results)
        summed.append([result.key for result in found])
        return summary_metrics(found)

    monkeypatch.setattr(parents, "summary_metrics", counted)
    seal(folder, record("key0"))
    mirror = mirror_of(folder)
    mirror.sync_folder()
    assert sorted(summed) == [[], ["key0"]]  # a cell each
    mirror.sync_folder()
    assert len(summed) == 2
    seal(folder, record("key1", seed=95))
    mirror.sync_folder()
    assert summed[2:] == [["key0", "key1"]]
    seal(folder, record("key0", status="superseded", reason="the search was extended"))
    mirror.sync_folder()
    assert summed[3:] == [["key1"]]


def test_points_of_a_long_trial_are_looked_up_not_searched_for(folder: ResultsFolder) -> None:
    seal(folder, record())
    runs = mirror_of(folder).connect()
    run = runs.create("trial", "a long one", 0, {"trial_key": "long"})
    run.found = True
    rows = [MetricRow("learning_rate", 0.1, 1000, step) for step in range(1, 20_001)]
    asked = iter([rows, [*rows, MetricRow("learning_rate", 0.1, 2000, 3)]])
    runs.points = lambda run, name: next(asked)  # type: ignore[method-assign]
    assert not runs.hold_others(run, rows, ["learning_rate"])
    assert runs.hold_others(run, rows, ["learning_rate"])


def test_compacting_changes_nothing_in_the_mirror(folder: ResultsFolder) -> None:
    a_busy_folder(folder)
    write_record(running("key2", 1), folder.live_record("key2", FIRST_ATTEMPT))  # the failed one is tried again
    watching = mirror_of(folder)
    watching.sync_folder()
    once = dump(folder)
    compact(folder.root)
    assert watching.sync_folder() == 4, "all but the failed one and the live ones are in another file now"
    assert mirror_of(folder).sync_folder() == 6
    assert dump(folder) == once
    seal(folder, record(status="superseded", reason="the search was extended"))
    assert watching.sync_folder() == 1
    statement = "select s.value from tags s join tags k using (run_uuid) where s.key = 'status' and k.value = 'key0'"
    assert query(folder, statement) == [("superseded",)]


def test_records_that_are_compacted_while_the_mirror_reads_are_mirrored(
    folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal(folder, record("key0"), record("key1", seed=95))
    listed = changes.single_files

    def overtaken(place: Path) -> list[Path]:
        files = listed(place)
        monkeypatch.setattr(changes, "single_files", listed)
        compact(folder.root)
        return files

    mirror = mirror_of(folder)
    mirror.connect()
    monkeypatch.setattr(changes, "single_files", overtaken)
    assert mirror.sync_folder() == 2
    assert len(live_runs(folder)) == 1 + 2 + 2


def test_a_run_from_before_a_tag_existed_gets_it(folder: ResultsFolder) -> None:
    seal(folder, record())
    mirror_of(folder).sync_folder()
    whole = dump(folder)
    connection = sqlite3.connect(folder.root / "mlflow.db")
    with connection:
        connection.execute("delete from tags where key = 'model'")
    connection.close()
    mirror_of(folder).sync_folder()
    assert dump(folder) == whole


def test_a_trial_that_ended_is_held_in_short(folder: ResultsFolder) -> None:
    """What a mirror holds grows with the trials by an id and three hashes each; what waits is on disk alone."""
    seal(folder, *(record(f"key{number}", seed=number) for number in range(5)))
    write_record(running("live", 2), folder.live_record("live", FIRST_ATTEMPT))
    for mirror in (mirror_of(folder), mirror_of(folder)):
        mirror.sync_folder()
        held = [run.tags.get("trial_key") for run in mirror.connect()._open.values() if run.tags["level"] == "trial"]
        assert held in ([], ["live"])
        assert len(mirror.connect()._open) == 1 + 2 + len(held)


def test_a_file_that_is_no_record_is_said_once_and_the_others_are_mirrored(
    folder: ResultsFolder, caplog: pytest.LogCaptureFixture
) -> None:
    seal(folder, record("key1"))
    folder.record("key0").write_bytes(b"PAR1 cut short")
    mirror = mirror_of(folder)
    assert [mirror.sync_folder(), mirror.sync_folder()] == [1, 0]
    told = [entry.getMessage() for entry in caplog.records if entry.name.startswith("study")]
    assert len(told) == 1
    assert str(folder.record("key0")) in told[0]


def test_what_people_added_in_mlflow_stays(folder: ResultsFolder) -> None:
    from mlflow import MlflowClient

    mirror_of(folder).sync(running())
    MlflowClient(default_tracking_uri(folder.root)).set_tag(live_runs(folder)[TRIAL], "remark", "looks odd")
    mirror_of(folder).sync(record())
    assert tags_of(folder, TRIAL)["remark"] == "looks odd"


def test_a_deleted_experiment_is_taken_back(folder: ResultsFolder) -> None:
    from mlflow import MlflowClient

    seal(folder, record())
    mirror_of(folder).sync_folder()
    client = MlflowClient(default_tracking_uri(folder.root))
    experiment = client.get_experiment_by_name("quickstart")
    assert experiment is not None
    client.delete_experiment(experiment.experiment_id)
    mirror_of(folder).sync_folder()
    assert len(live_runs(folder)) == 1 + 2 + 1


def test_an_edited_study_is_told_as_it_is_now(folder: ResultsFolder) -> None:
    """A cell and a seed more; and another number of clusters in the cell that had not begun."""
    cell, vanilla, begins = "bi-GCN Digits 100k", "GCN Digits 100k", record()
    seal(folder, begins)
    mirror_of(folder).sync_folder()
    study = live_runs(folder)["study quickstart"]
    assert tags_of(folder, "study quickstart")["cells"] == "2"
    assert tags_of(folder, cell)["seeds"] == "41,95,12,35"
    before = live_runs(folder)

    grown = planned_cell(seeds=[41, 95, 12, 35, 7])
    other = planned_cell("gcn_none", **{**VANILLA, "layers": 5})
    write_plan(folder, grown, other, planned_cell("gcn_dense", placement="dense"))
    mirror_of(folder).sync_folder()
    after = live_runs(folder)
    assert (after["study quickstart"], after[cell], after[TRIAL]) == (study, before[cell], before[TRIAL])
    assert tags_of(folder, "study quickstart")["cells"] == "3"
    assert tags_of(folder, cell)["seeds"] == "41,95,12,35,7"
    (anew,) = (name for name in after if name.startswith(vanilla))
    assert parameters_of(folder, anew)["layers"] == tags_of(folder, anew)["layers"] == "5"
    once = dump(folder)
    mirror_of(folder).sync_folder()
    assert dump(folder) == once
