"""What a run keeps of ended trials is what their records say, wherever these lie, and little."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import pytest
from made_trials import assignment, epoch, record
from test_coordinator import start, study

from study.compaction import compact
from study.ended_trials import EndedTrial, ended_trials
from study.records import EpochRecord, TrialRecord, write_record
from study.results import ResultsFolder


def made(key: str, phase: str, val_metrics: list[float], status: str) -> TrialRecord:
    epochs = tuple(epoch(number, value) for number, value in enumerate(val_metrics, start=1))
    last = val_metrics[-1] if val_metrics else None
    given = record(assignment(Path("results")))
    return replace(
        given, key=key, phase=phase, status=status, reason="why", epochs=epochs, val_metric=last, seconds=7.5
    )


RECORDS = (
    made("a", "search", [0.25, 0.5, 0.125], "pruned"),
    made("b", "search", [], "failed"),
    made("c", "confirm", [0.5, 0.75], "finished"),
    made("d", "search", [0.625], "finished"),
)


@pytest.fixture
def folder(tmp_path: Path) -> ResultsFolder:
    folder = ResultsFolder(tmp_path / "results")
    folder.create()
    for each in RECORDS:
        write_record(each, folder.record(each.key))
    return folder


def told(folder: ResultsFolder) -> list[tuple[str, str, str, int, float | None, list[float]]]:
    return [
        (each.key, each.phase, each.status, each.num_epochs, each.val_metric, list(each.val_metrics))
        for each in ended_trials(folder.records)
    ]


EXPECTED = [
    ("a", "search", "pruned", 3, 0.125, [0.25, 0.5, 0.125]),
    ("b", "search", "failed", 0, None, []),
    ("c", "confirm", "finished", 2, 0.75, []),
    ("d", "search", "finished", 1, 0.625, [0.625]),
]


def test_of_search_trials_it_has_each_validation_metric_of_confirm_trials_the_last(folder: ResultsFolder) -> None:
    assert told(folder) == EXPECTED


def test_the_same_of_a_compacted_folder(folder: ResultsFolder) -> None:
    folder.plan_file.write_text("{}")
    compact(folder.root)
    assert told(folder) == EXPECTED


def test_of_a_record_just_sealed_it_has_all_but_what_the_rungs_have_heard(folder: ResultsFolder) -> None:
    found = {each.key: each for each in ended_trials(folder.records)}
    for each in RECORDS:
        assert EndedTrial.of(each) == replace(found[each.key], val_metrics=())


def test_a_run_that_goes_on_keeps_no_epochs_of_ended_trials(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path / "results")
    start(folder, study("random")).run()

    def kept() -> int:
        gc.collect()
        return sum(type(each) is EpochRecord for each in gc.get_objects())

    before = kept()
    again = start(folder, study("random"))
    assert again.coordinator.done
    assert kept() == before
