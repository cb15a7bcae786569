"""Faults of the mirror: MLflow's server dies, hangs, or its database is locked; and a study that is killed 20 times."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

from benchmarks.faults.mirrored import content, dump, is_sound
from benchmarks.faults.scene import ROOT, Running, Stage, in_words, live_record, records, same_numbers, study_text
from benchmarks.faults.seen import Seen, undisturbed
from benchmarks.faults.tracking_server import TrackingServer, hanging_server
from study.records import RecordError, read_record

AWAY, BACK = "cannot be written for study", "can be written again"
KILLS, SEED = 20, 7


def tracking_server_killed(stage: Stage) -> Seen:
    """A real MLflow server dies in mid-study, between two trials that it is told of, and comes back later."""
    results = stage.folder / "server_killed"
    with TrackingServer.running(stage.folder / "server") as server:
        running = stage.run(study_text(), results, "--mlflow", server.address)
        running.until(lambda: len(records(results)) == 1 if (results / "records").exists() else False, "a trial's end")
        worker = running.worker()
        worker.suspend()  # so that the study is not over before the mirror has looked
        running.until(lambda: _ended_trials(server.database), "the trial in MLflow")
        server.kill()
        worker.resume()
        running.until(lambda: len(records(results)) == 2, "a trial's end without a server")
        worker.suspend()
        running.until_told(AWAY)
        server.start()
        running.until_told(BACK)
        worker.resume()
        code = running.end()
        whole = content(server.database) == _rebuilt(results, stage.folder / "rebuilt_killed.db")
        before = dump(server.database)
        again = _rebuild(results, server.address)
        unchanged = dump(server.database) == before
        sound = is_sound(server.database)
    same = same_numbers(results, undisturbed(stage))
    told = _told(running)
    once = [sum(words in line for line in told) for words in (AWAY, BACK)] == [1, 1] and len(told) == 2
    return Seen(
        "SIGKILL to all processes of an MLflow server that a study writes to; a trial later the server starts again",
        (
            *told,
            f"exit code {code}; {in_words(results)}; {_same(same)}",
            f"the server holds what the records hold, no more and no less: {_yes(whole)}; rebuild-mlflow changes "
            f"nothing: {_yes(unchanged)}",
        ),
        code == 0 and again == 0 and whole and unchanged and sound and once and same,
    )


def tracking_server_hangs(stage: Stage) -> Seen:
    """A server that takes every call and never answers."""
    results = stage.folder / "server_hangs"
    with hanging_server() as address:
        running = stage.run(study_text(), results, "--mlflow", address)
        code = running.end()
    same = same_numbers(results, undisturbed(stage))
    told = _told(running)
    once = sum(AWAY in line for line in told) == 1 and "rebuild-mlflow" in told[-1]
    _rebuilt(results, stage.folder / "after_hanging.db")
    ended = _ended_trials(stage.folder / "after_hanging.db")
    return Seen(
        "--mlflow names a socket that takes calls and never answers; rebuild-mlflow into a database afterwards",
        (
            *told,
            f"exit code {code}; {in_words(results)}; {_same(same)}; trials in MLflow after rebuild-mlflow: {ended}",
        ),
        code == 0 and once and same and ended == len(records(results)),
    )


def locked_database(stage: Stage) -> Seen:
    """MLflow's database is locked by another program for longer than SQLite waits."""
    results = stage.folder / "locked"
    database = results / "mlflow.db"
    running = stage.run(study_text(), results)
    running.until(lambda: live_record(results, epochs=2), "two epochs")
    worker = running.worker()
    worker.suspend()
    with closing(sqlite3.connect(database, isolation_level=None, timeout=60)) as other:
        other.execute("BEGIN EXCLUSIVE")
        worker.resume()
        running.until_told(AWAY)
        other.execute("ROLLBACK")
    code = running.end()
    whole = content(database) == _rebuilt(results, stage.folder / "rebuilt_locked.db")
    same = same_numbers(results, undisturbed(stage))
    told = _told(running)
    return Seen(
        "another program holds mlflow.db locked until the study has told of it",
        (*told, f"exit code {code}; {in_words(results)}; {_same(same)}; all in MLflow, once: {_yes(whole)}"),
        code == 0 and whole and same and any(BACK in line for line in told),
    )


def kill_and_resume(stage: Stage) -> Seen:
    """SIGKILL to the driver of one study 20 times, at random moments; the same command each time."""
    text = study_text(trials=40, epochs=12, beside=2)
    reference, results = stage.folder / "never_killed", stage.folder / "killed_again"
    if stage.run(text, reference).end():
        raise SystemExit("the undisturbed study failed")
    moments = random.Random(SEED)
    on_record = []
    for kill in range(KILLS):
        trained = _epochs_on_disk(results)
        running = stage.run(text, results)
        if kill % 2:  # any moment, before training too
            wait = moments.uniform(0.5, 10.0)
        else:
            running.until(partial(_has_more_epochs, results, trained), "an epoch")
            wait = moments.uniform(0.0, 2.0)
        _wait(running, wait)
        ended = running.process.poll() is not None
        running.process.send_signal(signal.SIGKILL)
        running.end()
        on_record.append(len(records(results)) if (results / "records").exists() else 0)
        if ended:
            raise SystemExit(f"the study ended before kill {kill + 1}: give it more trials")
    code = stage.run(text, results).end()
    same = same_numbers(results, reference)
    keys = [record.key for record in records(results)]
    database = results / "mlflow.db"
    whole = content(database) == _rebuilt(results, stage.folder / "rebuilt_killed_again.db")
    before = dump(database)
    again = _rebuild(results, f"sqlite:///{database}")
    unchanged = dump(database) == before
    left = list((results / "live").iterdir())
    return Seen(
        f"SIGKILL to the driver at {KILLS} random moments (seed {SEED}), every other one after an epoch more, the rest "
        "also before training; the same command each time",
        (
            "trials on record after each kill: " + ", ".join(map(str, on_record)),
            f"then: exit code {code}; {in_words(results)}; {len(keys)} records of {len(set(keys))} trials",
            _same(same),
            f"MLflow holds what the records hold, no more and no less: {_yes(whole)}; rebuild-mlflow changes nothing: "
            f"{_yes(unchanged)}; sound: {_yes(is_sound(database))}; live folders left: {len(left)}",
        ),
        code == 0 and again == 0 and same and len(keys) == len(set(keys)) and whole and unchanged and not left,
    )


MIRROR_SCENARIOS = (tracking_server_killed, tracking_server_hangs, locked_database, kill_and_resume)


def _has_more_epochs(results: Path, before: int) -> bool:
    return _epochs_on_disk(results) > before


def _epochs_on_disk(results: Path) -> int:
    """Of trials that ended and of those under way; each attempt at a trial begins with the epochs of the one before."""
    live: dict[str, int] = {}
    for path in (results / "live").glob("*/*/record.parquet"):
        with suppress(RecordError):  # sealed since it was listed
            record = read_record(path)
            live[record.key] = max(live.get(record.key, 0), record.num_epochs)
    return sum(live.values()) + sum(record.num_epochs for record in records(results))


def _wait(running: Running, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and running.process.poll() is None:
        time.sleep(0.02)


def _ended_trials(database: Path) -> int:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        ended = connection.execute(
            "select count(*) from runs join tags using (run_uuid)"
            " where tags.key = 'trial_key' and runs.status = 'FINISHED' and runs.lifecycle_stage = 'active'"
        )
        return int(ended.fetchone()[0])


def _rebuild(results: Path, uri: str) -> int:
    command = [sys.executable, "run_study.py", "rebuild-mlflow", str(results), "--mlflow", uri]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode


def _rebuilt(results: Path, database: Path) -> object:
    """What MLflow holds once the folder was mirrored to it for the first time."""
    if _rebuild(results, f"sqlite:///{database}"):
        raise SystemExit(f"rebuild-mlflow {results} failed")
    return content(database)


def _told(running: Running) -> tuple[str, ...]:
    return tuple(f"told: {line.rstrip()}" for line in running.err if line.strip())


def _yes(good: bool) -> str:
    return "yes" if good else "no"


def _same(same: bool) -> str:
    return f"numbers {'are' if same else 'are NOT'} those of an undisturbed run, to the bit"
