"""What ``--address`` names: a Ray cluster that answers, found out before anything is written or started."""

from __future__ import annotations

import logging
import os
import socket

ANSWER_WITHIN_S = 10.0
"""How long an address that a user gave may take to answer; Ray itself asks for a quarter of an hour."""

_HTTP2_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""How an HTTP/2 client, and so one of gRPC, begins; the server answers with a frame of the same type, 4."""

_EXPECTED = "expected HOST:PORT of a Ray cluster's head, or auto for one on this machine"


class ClusterAddressError(ValueError):
    """An address at which no Ray cluster can be joined: what is there, and what to give instead."""


def answering_cluster(address: str) -> str:
    """HOST:PORT of the cluster that ``address`` names, once it has answered.

    ``auto`` is what Ray makes of it: ``RAY_ADDRESS``, else a cluster that runs on this machine.

    Raises:
        ClusterAddressError: ``address`` has another form, or no Ray cluster answers there.
    """
    option, place = (f"--address {address}", address) if address != "auto" else _found()
    if place.startswith("ray://"):
        raise ClusterAddressError(
            f"{option}: found an address of Ray's client, which no study can use; {_EXPECTED}, or send the whole run "
            "there with `ray job submit`"
        )
    host, _, port = place.rpartition(":")
    if not host or "/" in place or not port.isdecimal():
        raise ClusterAddressError(f"{option}: {_EXPECTED}")
    _require_answer(option, host.strip("[]"), int(port))
    return place


def _found() -> tuple[str, str]:
    """What ``auto`` comes to: how to name it in a message, and the address."""
    variable = os.environ.get("RAY_ADDRESS", "")
    if variable not in ("", "auto"):
        return f"--address auto: RAY_ADDRESS={variable}", variable
    from ray._private.services import canonicalize_bootstrap_address

    # Which one it takes of several is said once it is joined.
    logging.getLogger("ray._private.services").setLevel(logging.ERROR)
    try:
        found = canonicalize_bootstrap_address("auto")
    except (ConnectionError, ValueError) as error:
        raise ClusterAddressError(
            "--address auto: no Ray cluster runs on this machine, and RAY_ADDRESS names none; start one with "
            "`ray start --head`, give HOST:PORT, or leave --address out for a Ray of the study's own"
        ) from error
    return f"--address auto: {found}", str(found)


def _require_answer(option: str, host: str, port: int) -> None:
    """Ask whether a server like Ray's listens at the host and port.

    Raises:
        ClusterAddressError: nobody does, or somebody else.
    """
    try:
        with socket.create_connection((host, port), timeout=ANSWER_WITHIN_S) as connection:
            if os.environ.get("RAY_USE_TLS", "0") != "0":
                return
            connection.sendall(_HTTP2_GREETING)
            answer = connection.recv(9)
    except (OSError, OverflowError, UnicodeError) as error:
        raise ClusterAddressError(f"{option}: no Ray cluster there ({error})") from error
    if answer[3:4] != b"\4":
        raise ClusterAddressError(f"{option}: no Ray cluster there (another program listens at this port)")
