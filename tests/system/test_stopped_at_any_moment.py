"""A signal at whatever moment ends a run with one line and exit code 130, and leaves no process behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from conftest import TINY, Finished, Studies
from finished import numbers, records
from started import Started
from test_interruptions import in_mid_trial

pytestmark = pytest.mark.system


def signals_are_taken(started: Started, results: Path) -> bool:
    status = Path(f"/proc/{started.process.pid}/status").read_text().splitlines()
    blocked = next(int(line.split()[1], 16) for line in status if line.startswith("SigBlk"))
    return bool(blocked & 1 << signal.SIGTERM - 1)


def the_folder_is_taken(started: Started, results: Path) -> bool:
    return any((results / "lease").glob("*.json"))


def ray_has_begun(started: Started, results: Path) -> bool:
    return "gcs_server" in started.names_of_descendants()


def ray_has_a_node(started: Started, results: Path) -> bool:
    return "raylet" in started.names_of_descendants()


def ray_has_workers(started: Started, results: Path) -> bool:
    return any(name.startswith("ray::") for name in started.names_of_descendants())


@pytest.fixture
def lives() -> Callable[[], list[str]]:
    """The programs of this process's descendants that were not there before and are not dead."""
    before = {process.pid for process in psutil.Process().children(recursive=True)}

    def lives() -> list[str]:
        found = []
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if process.pid not in before and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process.name())
        return found

    return lives


@pytest.mark.parametrize(
    ("moment", "first", "second"),
    [
        (signals_are_taken, signal.SIGTERM, None),
        (the_folder_is_taken, signal.SIGHUP, None),
        pytest.param(ray_has_begun, signal.SIGINT, None, marks=pytest.mark.slow),
        pytest.param(ray_has_a_node, signal.SIGTERM, signal.SIGTERM, marks=pytest.mark.slow),
        (ray_has_workers, signal.SIGTERM, None),
    ],
)
def test_before_training(
    moment: Callable[[Started, Path], bool],
    first: signal.Signals,
    second: signal.Signals | None,
    studies: Studies,
    lives: Callable[[], list[str]],
    tmp_path: Path,
) -> None:
    results = tmp_path / "results"
    started = studies.start(TINY, results)
    started.until(lambda: moment(started, results), moment.__name__)
    os.killpg(started.process.pid, first)
    if second is not None:
        os.killpg(started.process.pid, second)
    stopped = started.end()
    assert stopped.code == 130, stopped
    told = f"stopped; nothing that ended is lost; the same command goes on in {results}\n"
    assert stopped.err == told if moment is not signals_are_taken else stopped.err in ("stopped\n", told)
    assert lives() == []
    for lease in (results / "lease").glob("*.json"):
        assert lease.with_suffix(".end").exists(), "the folder was given back"


@pytest.mark.slow
def test_with_all_that_ray_started_in_mid_trial(
    studies: Studies, one_by_one: Finished, lives: Callable[[], list[str]], tmp_path: Path
) -> None:
    results = tmp_path / "results"
    started = studies.start(one_by_one.file, results)
    under_way = in_mid_trial(started, results, records_before=0, epochs=1)
    # As a container does, or systemd, that ends every process of a program by itself.
    for process in [*started.descendants(), psutil.Process(started.process.pid)]:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    stopped = started.end()
    assert stopped.code == 130, stopped
    last = f"stopped; nothing that ended is lost; the same command goes on in {results}\n"
    assert stopped.err.endswith(last)
    assert "GCS" not in stopped.err
    assert lives() == []

    again = studies.run(one_by_one.file, results)
    assert again.code == 0, again
    found, expected = records(results), records(one_by_one.results)
    assert {key: numbers(record) for key, record in found.items()} == {
        key: numbers(record) for key, record in expected.items()
    }
    assert found[under_way.key].epochs[: under_way.num_epochs] == under_way.epochs


@pytest.mark.slow
def test_ray_leads_sessions_of_its_own_and_ends_with_a_killed_driver(studies: Studies, tmp_path: Path) -> None:
    results = tmp_path / "results"
    started = studies.start(TINY, results)
    in_mid_trial(started, results, records_before=0, epochs=1)
    names = {process: process.name() for process in started.descendants()}
    assert os.getsid(started.process.pid) not in {os.getsid(process.pid) for process in names}
    needed = [process for process, name in names.items() if name in ("gcs_server", "raylet") or "ImplicitFunc" in name]
    assert len(needed) >= 3, names
    started.process.kill()
    started.process.communicate()
    _, left = psutil.wait_procs(needed, timeout=60)
    assert [names[process] for process in left if process.status() != psutil.STATUS_ZOMBIE] == []
