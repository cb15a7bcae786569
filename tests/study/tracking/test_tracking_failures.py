"""Servers and databases that refuse, break or come back: what is said, and what the mirror holds afterwards."""

from __future__ import annotations

import errno
import logging
import shutil
import socket
from pathlib import Path

import pytest
from made_mirrors import TRIAL, mirror_of, record, running, seal
from read_mirrors import Rebuilt, state_of

from benchmarks.faults.mirrored import content
from study.records import RecordError, write_record
from study.results import FIRST_ATTEMPT, ResultsFolder
from study.tracking import MlflowMirror, loop, masked, mirror_errors
from study.tracking.database import create_database
from study.tracking.loop import MirrorThread


def a_refusing_uri() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://someone:hunter2@127.0.0.1:{listener.getsockname()[1]}"


def test_a_server_that_is_not_there_is_said_once_and_raises_nothing(
    folder: ResultsFolder, caplog: pytest.LogCaptureFixture
) -> None:
    seal(folder, record())
    thread = MirrorThread(a_refusing_uri(), folder.root)
    assert [thread.step(), thread.step(), thread.step()] == [False, False, False]
    told = [entry.getMessage() for entry in caplog.records]
    assert len(told) == 1
    assert "quickstart" in told[0]
    assert "http://someone:***@127.0.0.1" in told[0]
    assert "hunter2" not in caplog.text


def test_a_thread_whose_server_never_came_says_how_to_complete_the_mirror(
    folder: ResultsFolder, caplog: pytest.LogCaptureFixture
) -> None:
    thread_uri = a_refusing_uri()
    thread = MirrorThread(thread_uri, folder.root)
    thread.start()
    assert thread.stop(timeout_s=30.0) is False
    (told,) = (line for line in caplog.messages if "Complete it with" in line)
    masked_uri = thread_uri.replace("hunter2", "***")
    assert told.endswith(
        f'python run_study.py rebuild-mlflow {folder.root} --mlflow "$MLFLOW_TRACKING_URI" '
        f"(where MLFLOW_TRACKING_URI is {masked_uri}, with what *** stands for)"
    )
    assert "hunter2" not in caplog.text


def test_where_the_mirror_is_in_the_folder_the_command_needs_no_address(
    folder: ResultsFolder, caplog: pytest.LogCaptureFixture
) -> None:
    (folder.root / "mlflow.db").write_text("no database")
    thread = MirrorThread(None, folder.root)
    thread.start()
    assert thread.stop(timeout_s=30.0) is False
    (told,) = (line for line in caplog.messages if "Complete it with" in line)
    assert told.endswith(f"python run_study.py rebuild-mlflow {folder.root}")


def test_the_end_says_what_it_waits_for_and_waits_no_longer_than_it_may(
    folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_SAID_AFTER_S", 0.1)
    told: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://someone:hunter2@127.0.0.1:{silent.getsockname()[1]}"
        thread = MirrorThread(uri, folder.root, tell=told.append)
        thread.start()
        assert thread.stop(complete=False, timeout_s=0.5) is False, "it was interrupted: the study is not complete"
    assert told == [
        f"what was done of quickstart is on record; waiting for MLflow at {masked(uri)} to take the last of it, "
        "at most 0.5 s"
    ]


def test_the_end_says_nothing_where_it_need_not_wait(folder: ResultsFolder) -> None:
    told: list[str] = []
    with MirrorThread(None, folder.root, tell=told.append, interval_s=3600):
        pass
    assert told == []


def test_a_mirror_that_lost_its_server_reads_no_trial_again_that_arrived(folder: ResultsFolder) -> None:
    seal(folder, record(), record("key1", seed=95))
    write_record(running("key5", 2), folder.live_record("key5", FIRST_ATTEMPT))
    mirror = mirror_of(folder)
    assert mirror.sync_folder() == 3
    mirror.disconnect()
    seal(folder, record("key2", seed=12))
    assert mirror.sync_folder() == 2, "the live one and the new one"


def test_a_server_that_comes_back_with_an_older_state_gets_what_it_lost(
    folder: ResultsFolder, rebuilt: Rebuilt, tmp_path: Path
) -> None:
    seal(folder, record())
    mirror = mirror_of(folder)
    mirror.sync_folder()
    shutil.copyfile(folder.root / "mlflow.db", tmp_path / "backup.db")
    seal(folder, record("key1", seed=95))
    mirror.sync_folder()
    mirror.disconnect()
    shutil.copyfile(tmp_path / "backup.db", folder.root / "mlflow.db")
    assert mirror.sync_folder() == 1
    assert content(folder.root / "mlflow.db") == rebuilt()


def test_a_database_whose_server_refuses_is_said_at_once_by_its_own_error(
    folder: ResultsFolder, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg")
    uri = a_refusing_uri().replace("http://", "postgresql+psycopg://") + "/studies"

    def retried(_: str) -> None:
        raise AssertionError("this is MLflow's own way in, which tries ten times")

    monkeypatch.setattr("mlflow.store.db.utils.create_sqlalchemy_engine_with_retry", retried)
    assert MirrorThread(uri, folder.root).step() is False
    (told,) = (entry.getMessage() for entry in caplog.records)
    assert "Connection refused" in told
    assert "hunter2" not in told


def test_a_file_that_is_no_database_raises_nothing(folder: ResultsFolder, caplog: pytest.LogCaptureFixture) -> None:
    (folder.root / "mlflow.db").write_bytes(b"this is not a database" * 100)
    assert MirrorThread(None, folder.root).step() is False
    assert "file is not a database" in caplog.text


def test_a_database_that_cannot_be_made_is_made_when_it_can_be(
    folder: ResultsFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "study")
    seal(folder, record())
    (tmp_path / "blocked").write_text("a file where a folder should be")
    thread = MirrorThread(f"sqlite:///{tmp_path / 'blocked' / 'mlflow.db'}", folder.root)
    assert thread.step() is False
    (tmp_path / "blocked").unlink()
    assert thread.step() is True
    assert [entry.levelname for entry in caplog.records if entry.name.startswith("study")] == ["WARNING", "WARNING"]
    shutil.copyfile(tmp_path / "blocked" / "mlflow.db", folder.root / "mlflow.db")
    assert state_of(folder, TRIAL)[0] == "FINISHED"


def test_a_fresh_database_is_there_whole_or_not_at_all(
    folder: ResultsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    def interrupted(tracking_uri: str) -> None:
        Path(tracking_uri.removeprefix("sqlite:///")).write_bytes(b"half a database")
        raise KeyboardInterrupt

    path = tmp_path / "elsewhere" / "mlflow.db"
    with monkeypatch.context() as patch:
        patch.setattr(mlflow, "MlflowClient", interrupted)
        with pytest.raises(KeyboardInterrupt):
            create_database(f"sqlite:///{path}")
    assert list(path.parent.iterdir()) == []
    MlflowMirror(f"sqlite:///{path}", folder.root).sync_folder()
    assert [entry.name for entry in path.parent.iterdir()] == ["mlflow.db"]


@pytest.mark.parametrize("kind", ["folder", "text"])
def test_what_is_no_database_is_refused_before_mlflow_tries_for_minutes(
    kind: str, folder: ResultsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    def asked(tracking_uri: str) -> None:
        raise AssertionError("MLflow was asked, and would try again and again")

    path = tmp_path / "mlflow.db"
    path.mkdir() if kind == "folder" else path.write_text("no database, but something of somebody's")
    with monkeypatch.context() as patch:
        patch.setattr(mlflow, "MlflowClient", asked)
        with pytest.raises(mirror_errors(), match="file"):
            MlflowMirror(f"sqlite:///{path}", folder.root).sync_folder()
    assert path.is_dir() == (kind == "folder")


def test_a_record_that_the_store_refuses_at_this_moment_is_mirrored_with_the_next_pass(
    folder: ResultsFolder, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal(folder, record(), record("key1", seed=95))
    mirror = mirror_of(folder)
    mirror.connect()

    def stale(path: Path) -> bytes:
        raise OSError(errno.ESTALE, "Stale file handle", str(path))

    with monkeypatch.context() as broken:
        broken.setattr(Path, "read_bytes", stale)
        with pytest.raises(RecordError, match="Stale file handle"):
            mirror.sync_folder()
    assert mirror.sync_folder() == 2
    assert not caplog.messages
