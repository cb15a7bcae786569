"""The log of a study: lines that a program can read, of driver and workers, bounded, without secrets, harmless."""

from __future__ import annotations

import json
import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_trials import assignment

from study import kept_log as kept
from study import log as study_log
from study import trial, worker
from study.assignment import TrialAssignment
from study.kept_log import kept_log
from study.live_trial import TrialProgress
from study.location import location
from study.log import JsonLine, StudyLog, about, relay
from study.results import ResultsFolder
from study.worker import reports_of
from study.worker_log import LONGEST_LINE, MOST_LINES, WorkerLog

ours = logging.getLogger("study.made")


def lines(log: StudyLog) -> list[dict[str, Any]]:
    return [json.loads(line) for path in log.files for line in path.read_text().splitlines()]


def test_a_line_says_when_where_and_what(tmp_path: Path) -> None:
    with StudyLog(tmp_path / "log.jsonl") as log:
        ours.info("trial %s: %s", "ab", "finished", extra=about("finished", trial="ab", cell="a-cell", phase="search"))
        ours.warning("of no trial")
        ours.debug("never")
    first, second = lines(log)
    time = first.pop("time")
    assert time[10] == "T"
    assert time.endswith("+00:00")
    assert first == {
        "level": "info",
        "event": "finished",
        "trial": "ab",
        "cell": "a-cell",
        "phase": "search",
        "message": "trial ab: finished",
    }
    assert {name: second[name] for name in second if name != "time"} == {
        "level": "warning",
        "event": "note",
        "message": "of no trial",
    }


def test_the_time_of_a_line_is_its_record_s_in_utc() -> None:
    record = logging.LogRecord("study", logging.INFO, "", 0, "told", None, None)
    record.created = 1_700_000_000.25
    assert json.loads(JsonLine().format(record))["time"] == "2023-11-14T22:13:20.250+00:00"


def test_warnings_go_to_the_screen_as_well_and_nothing_else_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with StudyLog(tmp_path / "log.jsonl"):
        ours.info("for the file")
        ours.warning("for all")
    assert capsys.readouterr().err == "for all\n"
    assert not logging.getLogger("study").handlers


def test_what_a_worker_logged_stands_there_with_its_trial_and_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with WorkerLog() as kept:
        logging.getLogger("a_library").warning("a layer says %d", 3)
        logging.getLogger("a_library").info("no warning")
        logging.getLogger("study.trial").info("begins")
        told = kept.take()
    assert kept.take() == []
    with StudyLog(tmp_path / "log.jsonl") as log:
        relay(told, trial="ab", cell="a-cell", phase="confirm")
    assert [(line["trial"], line["cell"], line["event"], line["level"], line["message"]) for line in lines(log)] == [
        ("ab", "a-cell", "worker", "warning", "a layer says 3"),
        ("ab", "a-cell", "worker", "info", "begins"),
    ]
    assert {line["node"] for line in lines(log)} == {told[0]["node"]}
    assert capsys.readouterr().err == "", "a layer's warnings are for the file alone"


def test_a_report_carries_what_was_logged_since_the_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def training(given: TrialAssignment) -> Any:
        logging.getLogger("a_library").warning("before the first epoch")
        yield TrialProgress(epoch=1, val_metric=0.5, ended=False)
        yield TrialProgress(epoch=2, val_metric=0.5, ended=True)

    monkeypatch.setattr(worker, "train_trial", training)
    first, second = reports_of(assignment(tmp_path))
    assert [line["message"] for line in first["log"]] == ["before the first epoch"]
    assert second == {"epoch": 2, "val_metric": 0.5, "ended": True}


def test_a_worker_that_says_too_much_is_cut_short() -> None:
    with WorkerLog() as kept:
        for number in range(MOST_LINES + 7):
            logging.getLogger("a_library").warning("x" * (LONGEST_LINE + number))
        told = kept.take()
    assert len(told) == MOST_LINES + 1
    assert {len(line["message"]) for line in told[:-1]} == {LONGEST_LINE}
    assert told[-1]["message"] == "and 7 more lines"


def test_a_worker_s_message_that_cannot_be_put_together_is_kept() -> None:
    with WorkerLog() as kept:
        kept.handle(logging.LogRecord("a_library", logging.WARNING, "", 0, "%d", ("no number",), None))
        assert [line["message"] for line in kept.take()] == ["%d"]


def test_the_trial_says_where_it_begins() -> None:
    assert trial.logger.name == "study.trial"


def test_no_secret_gets_in(tmp_path: Path) -> None:
    with StudyLog(tmp_path / "log.jsonl") as log:
        ours.warning("cannot write to s3://key:hidden@host/bucket?token=hidden: no answer")
        try:
            raise OSError("postgresql://me:hidden@host/db")
        except OSError:
            ours.exception("broke")
    text = "".join(path.read_text() for path in log.files)
    assert "hidden" not in text
    assert "s3://key:***@host/bucket?token=***" in text
    assert "OSError" in text


def test_it_keeps_to_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_log, "BYTES_A_FILE", 2000)
    with StudyLog(tmp_path / "log.jsonl") as log:
        for number in range(400):
            ours.info("line %d", number)
    assert len(log.files) == 4
    assert all(path.stat().st_size <= 2000 for path in log.files)
    messages = [line["message"] for line in lines(log)]
    assert messages == [f"line {number}" for number in range(400 - len(messages), 400)]
    with StudyLog(tmp_path / "log.jsonl") as log:
        ours.warning("a run more")
        ours.info("m" * 100_000)
    assert lines(log)[-2]["message"] == "a run more"
    assert len(lines(log)[-1]["message"]) < 9000


def full(path: Path) -> Path:
    return Path("/dev/full")


def missing(path: Path) -> Path:
    return path / "nowhere" / "log.jsonl"


def test_after_a_refusal_each_line_is_whole_again(tmp_path: Path) -> None:
    log = StudyLog(tmp_path / "log.jsonl")
    (tmp_path / "log.jsonl").write_text('{"message": "cut by a full di')
    log._file.lost = 1
    with log:
        ours.info("whole")
    assert [json.loads(line)["message"] for line in log.files[0].read_text().splitlines()[1:]] == ["whole"]


@pytest.mark.parametrize("place", [full, missing])
def test_a_log_that_cannot_be_written_hurts_nobody_and_says_so_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: Callable[[Path], Path]
) -> None:
    path = place(tmp_path)
    with StudyLog(path) as log:
        for _ in range(3):
            ours.info("lost")
    assert log.lost == 3
    assert capsys.readouterr().err == f"{path} lacks 3 lines that could not be written\n"
    assert list(tmp_path.iterdir()) == [], "no folder is made in the place of one that is away"


def test_a_folder_that_goes_and_comes_costs_the_lines_between(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    log = StudyLog(folder / "log.jsonl")
    with log:
        shutil.rmtree(folder)
        ours.info("lost")
        log._listener.stop()  # by now it has been tried
        log._listener.start()
        folder.mkdir()
        ours.info("kept")
    assert [line["message"] for line in lines(log)] == ["kept"]


def test_lines_that_nobody_takes_away_make_nobody_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_log, "_LINES_WAITING", 5)
    log = StudyLog(tmp_path / "log.jsonl")
    monkeypatch.setattr(log._listener, "start", lambda: None)
    monkeypatch.setattr(log._listener, "stop", lambda: None)
    with log:
        for _ in range(8):
            ours.info("one more")
    assert log.lost == 3


def test_in_a_folder_all_runs_have_one_log(tmp_path: Path) -> None:
    for attempt in (1, 2):
        with kept_log(ResultsFolder(tmp_path), attempt):
            ours.info("run %d", attempt)
    messages = [json.loads(line)["message"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert messages == ["run 1", "run 2"]


def test_in_an_object_store_each_run_has_a_log_that_is_taken_there(bucket_url: str) -> None:
    folder = ResultsFolder(location(bucket_url) / "results")
    with kept_log(folder, 7, every_s=0.01):
        ours.info("early")
        for _ in range(2000):
            if (folder.logs / "000007" / "0001.jsonl").exists():
                break
            threading.Event().wait(0.01)
        assert b"early" in (folder.logs / "000007" / "0001.jsonl").read_bytes(), "while the run goes on"
        ours.info("late")
    messages = [
        json.loads(line)["message"] for line in (folder.logs / "000007" / "0001.jsonl").read_bytes().splitlines()
    ]
    assert messages == ["early", "late"]


def test_a_log_in_parts_leaves_full_parts_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_log, "BYTES_A_PART", 500)
    monkeypatch.setattr(study_log, "PARTS_ON_DISK", 3)
    with StudyLog(tmp_path, in_parts=True) as log:
        for number in range(20):
            ours.info("line %02d %s", number, "x" * 100)
    assert [path.name for path in log.files] == ["0008.jsonl", "0009.jsonl", "0010.jsonl"], "two lines a part"
    assert [line["message"][:7] for line in lines(log)] == [f"line {number}" for number in range(14, 20)]
    assert all(path.stat().st_size <= 500 for path in log.files)


def test_only_what_is_new_of_a_log_is_taken_to_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_log, "BYTES_A_PART", 500)
    written: list[str] = []
    monkeypatch.setattr(kept, "write_whole", lambda path, _: written.append(path.name))
    taker = kept._Taker(log := StudyLog(tmp_path / "scratch", in_parts=True), tmp_path / "store")
    (tmp_path / "scratch").mkdir()
    with log:
        for number in range(5):
            ours.info("line %02d %s", number, "x" * 100)
        log._listener.stop()  # by now all is in the files
        taker.take()
        taker.take()
        log._listener.start()
        ours.info("more")
    taker.take()
    assert written == ["0001.jsonl", "0002.jsonl", "0003.jsonl", "0003.jsonl"], "two lines a part, and one more"


def test_a_store_that_is_not_there_hurts_nobody(bucket_url: str) -> None:
    with kept_log(ResultsFolder(location("s3://nowhere-at-all/results")), 1):
        ours.info("lost")
