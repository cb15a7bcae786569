"""MLflow servers: a real one that can be killed and started again, and a socket that takes calls and never answers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

STARTS_WITHIN_S = 120.0


@dataclass
class TrackingServer:
    """``mlflow server`` over a database in ``folder``, on a loopback port that stays its own."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @classmethod
    @contextmanager
    def running(cls, folder: Path) -> Iterator[TrackingServer]:
        """Such a server, which answers; it ends with the block."""
        folder.mkdir(parents=True, exist_ok=True)
        server = cls(folder, free_port())
        try:
            server.start()
            yield server
        finally:
            server.kill()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> Path:
        return self.folder / "server.db"

    def start(self) -> None:
        """Start it, and come back once it answers."""
        where = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
        where |= {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        stores = ["--backend-store-uri", f"sqlite:///{self.database}"]
        stores += ["--artifacts-destination", str(self.folder / "files")]
        listens = ["--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mlflow", "server", *stores, *listens],
                cwd=self.folder,
                env=where,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        began = time.monotonic()
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() - began > STARTS_WITHIN_S:
                raise SystemExit(f"MLflow's server did not start: {self.folder / 'server.log'}")
            time.sleep(0.2)

    def kill(self) -> None:
        """SIGKILL to all of its processes, as where its machine dies."""
        if self.process is not None:
            with_children = []
            if psutil.pid_exists(self.process.pid):
                with_children = psutil.Process(self.process.pid).children(recursive=True)
            self.process.send_signal(signal.SIGKILL)
            for each in with_children:
                if each.is_running():
                    each.kill()
            self.process.wait()
            psutil.wait_procs(with_children, timeout=10)
            self.process = None

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


@contextmanager
def hanging_server() -> Iterator[str]:
    """The address of a socket that takes every call and never answers one: the kernel does it, nobody accepts."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def free_port() -> int:
    """A loopback port on which nobody listens at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextmanager
def refusing_server() -> Iterator[str]:
    """The address of a server that answers 403 to everything."""
    answer = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    def refuse(connection: socket.socket) -> None:
        with connection:
            connection.recv(65536)
            connection.sendall(answer)

    with _serving(refuse) as address:
        yield address


@contextmanager
def slow_server(server: TrackingServer, seconds: float) -> Iterator[str]:
    """The address of a way to ``server`` on which every request takes so many seconds longer."""

    def forward(connection: socket.socket) -> None:
        with connection, socket.create_connection(("127.0.0.1", server.port)) as onward:
            back = threading.Thread(target=_relay, args=(onward, connection, 0.0), daemon=True)
            back.start()
            _relay(connection, onward, seconds)
            back.join()

    with _serving(forward) as address:
        yield address


@contextmanager
def _serving(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    def serve(listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:  # the block has ended
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def _relay(source: socket.socket, target: socket.socket, seconds: float) -> None:
    """Hand on what comes, each time after so many seconds; a request comes in one piece or two."""
    with suppress(OSError):
        while part := source.recv(1 << 20):
            time.sleep(seconds)
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)
