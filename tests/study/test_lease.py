"""Two runs on one results folder; "elsewhere" is a run whose lease names a host that is not this one."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import threading
import time
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest

from study import lease as lease_module
from study.journal import Journal, JournalEntry
from study.lease import Lease, LeaseLostError
from study.lease_holder import EXPIRES_S, Holder, last_holder
from study.location import location
from study.results import ResultsFolder, ResultsFolderError
from study.whole_files import make_folder, write_whole


@pytest.fixture(params=["folder", "object store"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> ResultsFolder:
    if request.param == "folder":
        return ResultsFolder(tmp_path / "results")
    return ResultsFolder(location(f"{request.getfixturevalue('bucket_url')}/results"))


def elsewhere(folder: ResultsFolder, *, seen_ago_s: float, attempt: int = 7) -> Holder:
    """The lease of a run on another host, which gave its last sign of life so long ago."""
    holder = Holder(
        attempt=attempt,
        run="other",
        host="node-b",
        processes="pid:[1]",
        pid=1,
        process_started=1.0,
        seen=time.time() - seen_ago_s,
    )
    make_folder(folder.leases)
    write_whole(folder.leases / f"{attempt:06d}.json", json.dumps(asdict(holder)).encode())
    return holder


def beat(folder: ResultsFolder, attempt: int, seen: float) -> None:
    write_whole(folder.leases / f"{attempt:06d}.beat", json.dumps({"seen": seen}).encode())


def test_a_folder_that_nobody_worked_in_has_no_holder(folder: ResultsFolder) -> None:
    assert last_holder(folder) is None


@pytest.mark.parametrize("content", [b"[]", b'{"seen": "now"}', b'"7"', b"{", b"\xff\x00"])
def test_a_sign_of_life_or_a_claim_that_is_none_counts_as_not_written_yet(
    folder: ResultsFolder, content: bytes
) -> None:
    told = elsewhere(folder, seen_ago_s=20.0)
    write_whole(folder.leases / "000007.beat", content)
    assert last_holder(folder) == told
    write_whole(folder.leases / "000007.json", content)
    holder = last_holder(folder)
    assert holder is not None
    assert (holder.attempt, holder.host) == (7, "?")


def test_each_run_has_the_next_number_and_says_when_it_ends(folder: ResultsFolder) -> None:
    for attempt in (1, 2, 3):
        with Lease(folder) as lease:
            assert lease.attempt == attempt
            lease.require()
            holder = last_holder(folder)
            assert holder is not None
            assert (holder.attempt, holder.pid, holder.works) == (attempt, os.getpid(), True)
        ended = last_holder(folder)
        assert ended is not None
        assert (ended.attempt, ended.ended, ended.works) == (attempt, True, False)


def test_a_run_in_a_folder_whose_leases_were_removed_goes_on_behind_its_journals(folder: ResultsFolder) -> None:
    earlier = JournalEntry(cell="cell", number=0, key="first", values={})
    journal = Journal(folder.journal, attempt=4)
    journal.begin()
    journal.append(earlier)
    later = JournalEntry(cell="cell", number=1, key="second", values={})
    with Lease(folder) as lease:
        assert lease.attempt == 5
        journal = Journal(folder.journal, lease.attempt)
        journal.begin()
        journal.append(later)
    assert list(Journal(folder.journal).entries()) == [earlier, later]


def test_a_second_run_of_this_host_is_refused_at_once(folder: ResultsFolder) -> None:
    waited: list[float] = []
    with (
        Lease(folder),
        pytest.raises(ResultsFolderError, match=rf"another run works in this folder \(process {os.getpid()} .*; mend"),
        Lease(folder, "mend", pause=waited.append),
    ):
        pass
    assert waited == []
    with Lease(folder):
        pass


def hold_until_killed(place: str) -> None:
    with Lease(ResultsFolder(location(place))):
        signal.pause()


def test_a_clock_that_is_set_makes_no_run_of_this_host_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux tells the begin of a process by the time since the machine's, to which the clock of the moment is added."""
    folder, started = ResultsFolder(tmp_path), psutil.boot_time()
    with Lease(folder):
        monkeypatch.setattr("psutil._psplatform.boot_time", lambda: started + 3600.0)
        held = last_holder(folder)
        assert held is not None
        assert held.works
        with pytest.raises(ResultsFolderError, match="another run works in this folder"), Lease(folder):
            pass
        # Not the parent: under a program that only starts this one, both began in the same hundredth of a second.
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as later:
            write_whole(folder.leases / "000001.json", json.dumps({**asdict(held), "pid": later.pid}).encode())
            other = last_holder(folder)
            assert other is not None
            assert not other.works, "a process of that number which began at another time"


def test_the_lease_of_a_killed_run_of_this_host_is_taken_at_once(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    other = multiprocessing.get_context("spawn").Process(target=hold_until_killed, args=(str(tmp_path),))
    other.start()
    while last_holder(folder) is None:
        os.sched_yield()
    with pytest.raises(ResultsFolderError, match=f"process {other.pid} of"), Lease(folder):
        pass
    other.kill()
    other.join()
    waited: list[float] = []
    with Lease(folder, pause=waited.append) as lease:
        assert lease.attempt == 2
    assert waited == []


def test_a_run_elsewhere_that_was_seen_a_moment_ago_is_not_disturbed(folder: ResultsFolder) -> None:
    elsewhere(folder, seen_ago_s=5)
    with pytest.raises(ResultsFolderError, match=r"process 1 of node-b, last sign of life 5 s ago"), Lease(folder):
        pass


def test_a_run_elsewhere_that_gives_no_sign_is_replaced_after_a_wait(folder: ResultsFolder) -> None:
    elsewhere(folder, seen_ago_s=3600)
    waited: list[float] = []
    told: list[str] = []
    with Lease(folder, pause=waited.append, tell=told.append) as lease:
        assert lease.attempt == 8
    assert waited == [EXPIRES_S]
    assert "process 1 of node-b, last sign of life 3600 s ago) and did not say that it ended; waiting 45 s" in told[0]


def test_a_run_elsewhere_whose_clock_is_behind_is_heard_all_the_same(folder: ResultsFolder) -> None:
    other = elsewhere(folder, seen_ago_s=3600)
    with (
        pytest.raises(ResultsFolderError, match="another run works in this folder"),
        Lease(folder, pause=lambda seconds: beat(folder, 7, other.seen + seconds)),
    ):
        pass


def test_who_takes_the_lease_while_another_waits_for_it_has_it_and_is_named(folder: ResultsFolder) -> None:
    elsewhere(folder, seen_ago_s=3600)
    with (
        pytest.raises(
            ResultsFolderError, match=r"works in this folder \(process 1 of node-b, last sign of life 0 s ago"
        ),
        Lease(folder, pause=lambda _: elsewhere(folder, seen_ago_s=0, attempt=8)),
    ):
        pass


def test_a_run_that_was_away_too_long_finds_its_lease_taken(
    folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a laptop that slept: its clock has gone on, and it has given no sign meanwhile."""
    clock = [100.0]
    monkeypatch.setattr(lease_module.time, "monotonic", lambda: clock[0])
    with Lease(folder) as lease:
        elsewhere(folder, seen_ago_s=0, attempt=2)
        lease.require()  # it gave a sign a moment ago: nobody may have taken it
        clock[0] += EXPIRES_S
        with pytest.raises(LeaseLostError, match="another run took this folder"):
            lease.require()
        with pytest.raises(LeaseLostError):
            lease.require()
    last = last_holder(folder)
    assert last is not None
    assert (last.attempt, last.ended) == (2, False), "the end of the old lease ends none but it"


def test_a_run_that_was_away_and_was_not_missed_goes_on(folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(lease_module.time, "monotonic", lambda: clock[0])
    with Lease(folder) as lease:
        clock[0] += 10 * EXPIRES_S
        lease.require()
        assert (folder.leases / "000001.beat").exists()


def test_the_loss_is_told_by_the_heart_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "HEARTBEAT_S", 0.001)
    lost: multiprocessing.Queue[str] = multiprocessing.Queue()
    folder = ResultsFolder(tmp_path)
    with Lease(folder) as lease:
        lease.on_loss = lambda error: lost.put(str(error))
        elsewhere(folder, seen_ago_s=0, attempt=2)
        assert "another run took this folder" in lost.get(timeout=60)


def test_a_lease_that_is_taken_while_the_one_before_is_read_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ResultsFolder(tmp_path)
    with Lease(folder):
        pass
    read, later = Path.read_bytes, Lease(folder)

    def disturbed(path: Path) -> bytes:
        monkeypatch.setattr(Path, "read_bytes", read)
        later.__enter__()
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", disturbed)
    held = last_holder(folder)
    assert held is not None
    assert (held.attempt, held.works) == (2, True)
    later.__exit__(None, None, None)


def test_a_lease_that_was_created_but_not_yet_written_counts(folder: ResultsFolder) -> None:
    make_folder(folder.leases)
    write_whole(folder.leases / "000003.json", b"")
    with pytest.raises(ResultsFolderError, match="another run works in this folder"), Lease(folder):
        pass


def test_a_run_shows_with_its_beat_what_it_waits_for(folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "HEARTBEAT_S", 0.01)
    said = threading.Event()

    def beat_and_say(path: Path, content: bytes) -> None:
        write_whole(path, content)
        if b"no node is left" in content:
            said.set()

    monkeypatch.setattr(lease_module, "write_whole", beat_and_say)
    with Lease(folder) as lease:
        holder = last_holder(folder)
        assert holder is not None
        assert holder.waits is None
        lease.waits = "no node is left on which trials fit"
        assert said.wait(60.0)
    holder = last_holder(folder)
    assert holder is not None
    assert holder.waits == "no node is left on which trials fit"
