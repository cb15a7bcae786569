"""What cannot run is refused in one line with exit code 2, soon, and before anything was spent."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import TINY, Studies
from started import Ended, environment, run_study

from study.journal import Journal

pytestmark = pytest.mark.system

SOON_S = 60.0
"""Far above what a refusal takes even on a busy machine, and far below what Ray and urllib would wait."""


def assert_refused(ended: Ended, *told: str) -> None:
    assert ended.code == 2, ended
    (line,) = (line for line in ended.err.splitlines() if not line.startswith("Downloading"))
    assert line.startswith("error: ")
    for words in told:
        assert words in line
    assert "Traceback" not in ended.out
    assert ended.seconds < SOON_S


def test_resources_that_no_machine_has(studies: Studies, tmp_path: Path) -> None:
    file, results = tmp_path / "large.yaml", tmp_path / "results"
    file.write_text(TINY.read_text() + "\nresources: {cpus_per_trial: 4096}\n")
    refused = studies.run(file, results)
    assert_refused(refused, "a trial asks for 4096 CPUs and 0 GPUs", "lower resources.cpus_per_trial")
    assert list(Journal(results / "journal").entries()) == []
    assert not list((results / "records").iterdir())


def test_an_address_at_which_nobody_listens(studies: Studies, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    refused = studies.run(TINY, tmp_path / "results", "--address", address)
    assert_refused(refused, f"--address {address}: no Ray cluster there", "Connection refused")
    assert list(Journal(tmp_path / "results" / "journal").entries()) == []


def test_an_address_at_which_another_program_listens(studies: Studies, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_answer_like_a_web_server, args=(server,), daemon=True).start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        refused = studies.run(TINY, tmp_path / "results", "--address", address)
    assert_refused(refused, f"--address {address}: no Ray cluster there (another program listens at this port)")


@pytest.fixture
def silent_proxy() -> Iterator[str]:
    """A web proxy that takes connections and never answers, as a firewall that swallows everything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("network", ["down", pytest.param("swallowed", marks=pytest.mark.slow)])
def test_a_download_without_a_network(network: str, silent_proxy: str, tmp_path: Path) -> None:
    proxy = silent_proxy if network == "swallowed" else "http://127.0.0.1:9"
    where = environment(http_proxy=proxy, https_proxy=proxy, HTTP_PROXY=proxy, HTTPS_PROXY=proxy, no_proxy="")
    refused = run_study("prepare", "zinc", "--data", tmp_path / "data", environment=where).end()
    assert_refused(refused, "zinc: not prepared yet, and its download failed", "prepare zinc --from PATH")
    assert not (tmp_path / "data" / "zinc").exists()


def _answer_like_a_web_server(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(1024)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
