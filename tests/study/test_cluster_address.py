from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from study import cluster_address
from study.cluster_address import ClusterAddressError, answering_cluster

SETTINGS_FRAME = b"\0\0\0\4\0\0\0\0\0"


@contextmanager
def server(answer: bytes) -> Iterator[str]:
    """HOST:PORT of a server that gives ``answer`` to whoever comes first."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def test_a_server_that_speaks_as_ray_does_is_taken() -> None:
    with server(SETTINGS_FRAME) as address:
        assert answering_cluster(address) == address


def test_auto_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(SETTINGS_FRAME) as address:
        monkeypatch.setenv("RAY_ADDRESS", address)
        assert answering_cluster("auto") == address
    monkeypatch.setenv("RAY_ADDRESS", "http://127.0.0.1:8265")
    told = "--address auto: RAY_ADDRESS=http://127.0.0.1:8265: expected HOST:PORT of a Ray cluster's head"
    with pytest.raises(ClusterAddressError, match=f"^{re.escape(told)}"):
        answering_cluster("auto")


def test_auto_without_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_found(_: str) -> str:
        raise ConnectionError("many words of Ray's")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr("ray._private.services.canonicalize_bootstrap_address", none_found)
    with pytest.raises(ClusterAddressError, match=r"^--address auto: no Ray cluster runs on this machine, and RAY_ADD"):
        answering_cluster("auto")


def test_another_program_is_told_apart() -> None:
    with (
        server(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address,
        pytest.raises(ClusterAddressError, match=r"no Ray cluster there \(another program listens at this port\)$"),
    ):
        answering_cluster(address)


def test_a_server_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_address, "ANSWER_WITHIN_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ClusterAddressError, match=rf"^--address {address}: no Ray cluster there \(timed out\)$"):
            answering_cluster(address)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("ray://host:10001", "--address ray://host:10001: found an address of Ray's client, which no study can use"),
        ("host", "--address host: expected HOST:PORT of a Ray cluster's head"),
        ("local", "--address local: expected HOST:PORT"),
        (":6379", "--address :6379: expected HOST:PORT"),
        ("host:port", "--address host:port: expected HOST:PORT"),
        ("http://host:8265", "--address http://host:8265: expected HOST:PORT"),
        ("127.0.0.1:99999", "--address 127.0.0.1:99999: no Ray cluster there"),
    ],
)
def test_what_can_be_no_address_is_refused(address: str, told: str) -> None:
    with pytest.raises(ClusterAddressError, match=f"^{re.escape(told)}"):
        answering_cluster(address)
