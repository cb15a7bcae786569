"""Wait until all machines of a batch job have joined its Ray cluster: ``python -m study.joined_nodes ADDRESS COUNT``.

Whether trials fit, and how many share a GPU, a study decides by the nodes that are there when it starts: its driver is
to begin no sooner. Ends with 0 once they have, with 2 when they have not in time, and with one line and 130 when a
signal ends the waiting.
"""

from __future__ import annotations

import logging
import sys
import time

from study.cluster import prepare_environment
from study.exit_codes import INTERRUPTED, WRONG_INPUT
from study.interruption import Interruption
from study.signals import ProcessSignals

JOINED_WITHIN_S = 300.0
ASKED_EVERY_S = 2.0


def wait_for_nodes(address: str, count: int, interruption: Interruption) -> bool:
    """Wait for a cluster at ``address`` to have ``count`` nodes; False if it has not in time."""
    prepare_environment(joins=True)
    import ray

    until = time.monotonic() + JOINED_WITHIN_S
    while time.monotonic() < until:
        try:
            with interruption.undisturbed():
                if not ray.is_initialized():
                    ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
                joined = sum(node["Alive"] for node in ray.nodes())
        except (ConnectionError, RuntimeError):  # there is no head yet
            joined = 0
        if joined >= count:
            return True
        interruption.pause(ASKED_EVERY_S)
    return False


def main() -> None:
    """Wait as the command line says."""
    interruption = Interruption()
    interruption.last_words = "stopped while not all machines had joined yet"
    signals = ProcessSignals(interruption, INTERRUPTED)
    address, count = sys.argv[1], int(sys.argv[2])
    try:
        try:
            signals.take()
            joined = wait_for_nodes(address, count, interruption)
        finally:
            signals.settle()
    except KeyboardInterrupt:
        signals.end_now()
    if not joined:
        sys.stderr.write(
            f"error: not all {count} machines joined {address} within {JOINED_WITHIN_S / 60:.0f} minutes\n"
        )
        sys.exit(WRONG_INPUT)


if __name__ == "__main__":
    main()
