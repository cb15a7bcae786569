"""The mirror in a real PostgreSQL, which is stopped at once and started again."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.faults.tracking_server import free_port
from benchmarks.made_study import make_study
from study.tracking import MlflowMirror, masked
from study.tracking.loop import MirrorThread

psycopg = pytest.importorskip("psycopg", reason="pip install 'bimp-study[postgresql]'")
pytestmark = pytest.mark.system

PASSWORD = "hunter2secret"


def postgres_programs() -> Path | None:
    found = shutil.which("initdb")
    return None if found is None else Path(found).resolve().parent


@dataclass(frozen=True)
class Database:
    """A PostgreSQL of its own; it refuses to run as root, so there it runs as nobody."""

    programs: Path
    folder: Path
    port: int

    @property
    def uri(self) -> str:
        return f"postgresql+psycopg://mirror:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def run(self, program: str, *arguments: str) -> None:
        user: dict[str, Any] = {"user": "nobody"} if os.geteuid() == 0 else {}
        log = self.folder / "log.txt"
        with log.open("ab") as stream:
            command = [str(self.programs / program), *arguments]
            subprocess.run(command, check=True, stdout=stream, stderr=stream, cwd=self.folder, **user)

    def start(self) -> None:
        listens = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}"
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-o", listens, "start")

    def stop(self) -> None:
        """As a crash leaves it."""
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        tables = ("experiments", "runs", "params", "tags", "metrics", "latest_metrics")
        with psycopg.connect(self.uri.replace("+psycopg", "")) as connection:
            return {
                table: sorted(connection.execute(f"select * from {table}").fetchall(), key=repr) for table in tables
            }


@pytest.fixture
def database() -> Iterator[Database]:
    programs = postgres_programs()
    if programs is None:
        pytest.skip("no PostgreSQL on this machine")
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
    made = Database(programs, folder, free_port())
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    made.run("initdb", "-D", str(folder / "data"), "-U", "mirror", "-A", "scram-sha-256", "--pwfile", str(secret))
    made.start()
    yield made
    if (folder / "data" / "postmaster.pid").exists():
        made.stop()
    shutil.rmtree(folder, ignore_errors=True)


def test_a_study_is_mirrored_to_postgresql_once_and_again_after_it_was_down(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_study(tmp_path / "results", trials=3, epochs=60)
    thread = MirrorThread(database.uri, folder.root)
    assert thread.step() is True
    once = database.rows()
    assert len(once["runs"]) == 1 + 1 + 3
    assert len(once["metrics"]) == 3 * (60 * 11 + 4)
    with monkeypatch.context() as patch:
        patch.setenv("PGUSER", "mirror")
        patch.setenv("PGPASSWORD", PASSWORD)
        without_secret = f"postgresql+psycopg://127.0.0.1:{database.port}/postgres"
        assert MlflowMirror(without_secret, folder.root).sync_folder() == 3
    assert database.rows() == once, "a second mirror changes nothing"

    database.stop()
    make_study(folder.root, trials=4, epochs=60)
    assert thread.step() is False
    database.start()
    assert thread.step() is True
    assert len(database.rows()["metrics"]) == 4 * (60 * 11 + 4)
    told = [entry.getMessage() for entry in caplog.records if entry.name.startswith("study")]
    assert [("cannot be written" in line, "can be written again" in line) for line in told] == [
        (True, False),
        (False, True),
    ]
    assert masked(database.uri) in told[0]
    assert PASSWORD not in caplog.text
