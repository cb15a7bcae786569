"""A study that is killed, stopped or loses a worker ends as if nothing had happened."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import psutil
import pytest
from conftest import Finished, Studies
from finished import mirrored_epochs, mirrored_trials, numbers, records
from started import Started

from study.journal import Journal
from study.records import RecordError, TrialRecord, read_record

pytestmark = pytest.mark.system


def live_record(results: Path, *, records_before: int, epochs: int) -> TrialRecord | None:
    """The record of a trial under way with so many epochs, once so many trials have ended."""
    if len(list((results / "records").glob("*.parquet"))) < records_before:
        return None
    for path in (results / "live").glob("*/*/record.parquet"):
        if not path.with_name("checkpoint.pt").exists():
            continue
        try:
            record = read_record(path)
        except RecordError:  # sealed since it was listed
            continue
        if record.status == "running" and record.num_epochs >= epochs:
            return record
    return None


def in_mid_trial(started: Started, results: Path, *, records_before: int, epochs: int) -> TrialRecord:
    found = started.until(
        lambda: live_record(results, records_before=records_before, epochs=epochs),
        f"a trial with {epochs} epochs after {records_before} ended ones",
    )
    assert found is not None
    return found


def assert_as_undisturbed(results: Path, undisturbed: Finished) -> None:
    """Every trial once, its numbers bit for bit those of the undisturbed run, and so in MLflow."""
    assert undisturbed.ended.code == 0, undisturbed.ended
    expected, found = records(undisturbed.results), records(results)
    assert {key: numbers(record) for key, record in found.items()} == {
        key: numbers(record) for key, record in expected.items()
    }
    assert list(Journal(results / "journal").entries()) == list(Journal(undisturbed.results / "journal").entries())
    assert (results / "tables" / "results.tex").read_bytes() == (
        undisturbed.results / "tables" / "results.tex"
    ).read_bytes()
    assert list((results / "live").iterdir()) == []
    assert mirrored_trials(results) == dict.fromkeys(found, 1)
    assert mirrored_epochs(results) == {
        key: [(epoch.epoch, epoch.val_loss) for epoch in record.epochs] for key, record in found.items()
    }


def untouched(results: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (results / "records").glob("*.parquet")}


def test_a_study_whose_driver_was_killed_ends_as_an_undisturbed_one(
    studies: Studies, one_by_one: Finished, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    first = studies.start(one_by_one.file, results)
    under_way = in_mid_trial(first, results, records_before=2, epochs=2)
    first.kill_with_descendants()
    ended_before = untouched(results)
    left = studies.status(results)
    assert left.code == 0, left
    assert re.search(rf"one_by_one: {len(ended_before)}/10 trials\n(0 running|1 unfinished), ", left.out)
    assert "\nno run works on it; the last sign of life was " in left.out

    second = studies.run(one_by_one.file, results)
    assert second.code == 0, second
    assert second.err == ""
    assert_as_undisturbed(results, one_by_one)
    assert untouched(results).items() >= ended_before.items(), "a trial that had ended was written again"
    # Epochs that were on disk were not trained again: their clocks are those of the first start.
    assert records(results)[under_way.key].epochs[:2] == under_way.epochs[:2]


@pytest.mark.slow
def test_ctrl_c_and_sigterm_stop_a_study_in_one_line_and_it_goes_on(
    studies: Studies, one_by_one: Finished, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    told = (
        "stopping: trials under way end with this epoch and its checkpoint; Ctrl-C again stops now\n"
        f"stopped; nothing that ended is lost; the same command goes on in {results}\n"
    )
    first = studies.start(one_by_one.file, results)
    in_mid_trial(first, results, records_before=1, epochs=1)
    looked = studies.status(results)
    assert (looked.code, looked.err) == (0, ""), looked
    assert re.search(r"one_by_one: [1-9]/10 trials", looked.out)
    assert f"\na run works on it now (process {first.process.pid} of " in looked.out
    first.ctrl_c()
    stopped = first.end()
    assert stopped.code == 130
    # Between two trials none is waited for, and only the last line is told.
    assert stopped.err in (told, told.splitlines(keepends=True)[-1])
    assert "Traceback" not in stopped.out
    if stopped.err == told:
        kept = live_record(results, records_before=0, epochs=1)
        # One that was at its last epoch by then has ended by itself.
        ended = not any((results / "live").iterdir())
        assert kept is not None or ended, "the trial under way kept the epoch in which it was"

    second = studies.start(one_by_one.file, results)
    in_mid_trial(second, results, records_before=len(untouched(results)) + 1, epochs=1)
    second.process.send_signal(signal.SIGTERM)
    stopped = second.end()
    assert stopped.code == 130
    # Between two trials none is waited for, and only the last line is told.
    assert stopped.err in (told, told.splitlines(keepends=True)[-1])

    third = studies.run(one_by_one.file, results)
    assert third.code == 0, third
    assert_as_undisturbed(results, one_by_one)


def test_a_trial_whose_worker_was_killed_goes_on_and_nothing_listens_beyond_this_machine(
    studies: Studies, one_by_one: Finished, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    started = studies.start(one_by_one.file, results)
    in_mid_trial(started, results, records_before=0, epochs=1)
    descendants = started.descendants()
    assert not foreign_listeners([psutil.Process(started.process.pid), *descendants])
    (worker,) = (process for process in descendants if "ImplicitFunc" in " ".join(process.cmdline()))
    under_way = in_mid_trial(started, results, records_before=1, epochs=2)
    worker.kill()

    outcome = started.end()
    assert outcome.code == 0, outcome
    assert outcome.err.count("\n") == 1, outcome.err
    assert "its worker was lost; it goes on from its last checkpoint (try 2 of 3)" in outcome.err
    assert_as_undisturbed(results, one_by_one)
    assert records(results)[under_way.key].epochs[:2] == under_way.epochs[:2]


def foreign_listeners(processes: list[psutil.Process]) -> list[tuple[str, str, int]]:
    """Program, address and port of every socket that other machines could reach."""
    found = []
    heard = 0
    for process in processes:
        try:
            for socket in process.net_connections(kind="inet"):
                if socket.status == psutil.CONN_LISTEN:
                    heard += 1
                    if socket.laddr.ip.removeprefix("::ffff:") not in ("127.0.0.1", "::1"):
                        found.append((process.name(), socket.laddr.ip, socket.laddr.port))
        except psutil.NoSuchProcess:
            continue
    assert heard, "Ray listens somewhere; not to see it means that nothing was seen"
    return found
