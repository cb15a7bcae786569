"""Faults that are really caused to a running study; ``python -m benchmarks.faults`` has more of them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.faults.leases import killed_driver_and_object_store, object_store_away
from benchmarks.faults.lost_ray import lost_local_head, lost_raylet
from benchmarks.faults.mirror_scenarios import tracking_server_hangs, tracking_server_killed
from benchmarks.faults.scenarios import full_disk, refused_memory, secret_address
from benchmarks.faults.scene import Stage
from benchmarks.faults.seen import Seen

pytestmark = [pytest.mark.system, pytest.mark.slow]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    # Ray's sockets lie there: their paths must be short, so it is no folder of pytest's.
    stage = Stage(Path(tempfile.mkdtemp(prefix="faults-")))
    yield stage
    for running in stage.running:
        running.kill()
    shutil.rmtree(stage.folder, ignore_errors=True)


@pytest.mark.parametrize(
    "scenario",
    [
        refused_memory,
        full_disk,
        secret_address,
        killed_driver_and_object_store,
        object_store_away,
        lost_raylet,
        lost_local_head,
        tracking_server_killed,
        tracking_server_hangs,
    ],
)
def test_it_ends_as_it_should(scenario: Callable[[Stage], Seen], stage: Stage) -> None:
    try:
        seen = scenario(stage)
    except PermissionError as error:
        pytest.skip(str(error))
    assert seen.good, "\n".join((seen.caused, *seen.lines))
