"""Refusals are caused: a device that is always full, a folder that is renamed, a limit on the size of files."""

from __future__ import annotations

import errno
import itertools
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from study.faults import in_one_line
from study.journal import Journal, JournalEntry
from study.records import RecordError
from study.results import ResultsFolder
from study.store import PatientStore, StoreAwayError, StoreNews, StoreTrouble, store_trouble, trying, waits

FULL_DEVICE = Path("/dev/full")
"""Takes no byte: every write to it ends with ENOSPC."""


@pytest.fixture
def folder(tmp_path: Path) -> ResultsFolder:
    folder = ResultsFolder(tmp_path / "results")
    folder.create()
    return folder


def full_until(calls: int) -> Callable[[], str]:
    """Writes that the full device refuses, until the given one."""
    count = itertools.count(1)

    def write() -> str:
        if next(count) < calls:
            with FULL_DEVICE.open("wb", buffering=0) as file:
                file.write(b"a record")
        return "written"

    return write


def test_the_waits_double_up_to_half_a_minute() -> None:
    assert list(itertools.islice(waits(), 8)) == [1, 2, 4, 8, 16, 30, 30, 30]


@pytest.mark.skipif(not FULL_DEVICE.exists(), reason="no device that is always full")
def test_a_full_disk_is_said_once_and_tried_again_until_it_has_room(folder: ResultsFolder) -> None:
    told: list[str] = []
    waited: list[float] = []
    store = PatientStore(folder, StoreNews(folder, told.append), waited.append)
    assert store(full_until(5)) == "written"
    assert waited == [1, 2, 4, 8]
    assert len(told) == 2
    assert told[0].startswith(f"{folder.root} cannot be written ([Errno 28] No space left on device)")
    assert told[1] == f"{folder.root} can be written again; the study goes on"
    assert store(full_until(1)) == "written"
    assert len(told) == 2


def test_many_that_meet_the_same_trouble_tell_of_it_once(folder: ResultsFolder) -> None:
    told: list[str] = []
    news = StoreNews(folder, told.append)
    for who in ("a", "b", "the driver", "a"):
        news.refused(who, StoreTrouble("full"))
    news.written("a")
    news.gone("b")
    assert len(told) == 1
    news.written("the driver")
    assert len(told) == 2
    news.written("a")
    assert len(told) == 2


def test_a_folder_that_vanished_is_waited_for_and_not_made_anew(folder: ResultsFolder) -> None:
    elsewhere = folder.root.rename(folder.root.with_name("elsewhere"))
    tries = trying(folder, lambda: folder.live.joinpath("written").write_text("x"), lambda _: None)
    assert next(tries) == StoreTrouble(f"[Errno 2] The results folder is not there: '{folder.root}'")
    assert not folder.root.exists()
    elsewhere.rename(folder.root)
    with pytest.raises(StopIteration) as end:
        next(tries)
    assert end.value.value == 1
    assert folder.live.joinpath("written").read_text() == "x"


@pytest.mark.skipif(not FULL_DEVICE.exists(), reason="no device that is always full")
def test_patience_ends_with_the_refusal_itself(folder: ResultsFolder) -> None:
    tries = trying(folder, full_until(99), lambda _: None, patience_s=7)
    # Waits of 1, 2 and 4 seconds make 7.
    assert len([*itertools.islice(tries, 3)]) == 3
    with pytest.raises(OSError, match="No space left"):
        next(tries)


def test_a_fault_of_the_code_is_not_waited_for(folder: ResultsFolder) -> None:
    with pytest.raises(ZeroDivisionError):
        next(trying(folder, lambda: 1 // 0, lambda _: None))
    with pytest.raises(FileNotFoundError):
        next(trying(folder, lambda: (folder.live / "nowhere" / "file").write_text(""), lambda _: None))


def test_ctrl_c_ends_the_waiting(folder: ResultsFolder) -> None:
    def pressed(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        PatientStore(folder, StoreNews(folder, lambda _: None), pressed)(full_until(99))


def test_a_refusal_is_found_below_what_was_raised_from_it() -> None:
    refusal = OSError(errno.ESTALE, "Stale file handle")
    wrapped = RecordError("not a readable file")
    wrapped.__cause__ = refusal
    assert store_trouble(wrapped) is refusal
    assert store_trouble(RecordError("cut")) is None
    assert store_trouble(FileNotFoundError(errno.ENOENT, "no such file")) is None
    assert isinstance(store_trouble(StoreAwayError(errno.ENOENT, "gone")), StoreAwayError)
    assert in_one_line(refusal) == "[Errno 116] Stale file handle; once this is mended the same command goes on"


def test_a_journal_whose_disk_takes_half_a_line_goes_on_with_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "000001.jsonl"
    journal = Journal(tmp_path)
    journal.begin()
    entries = [JournalEntry(cell="a", number=number, key=f"key{number}", values={"x": 0.5}) for number in range(3)]
    journal.append(entries[0])
    whole = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 5, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            journal.append(entries[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(journal.entries()) == entries[:1]
    journal.append(entries[1])
    journal.append(entries[2])
    assert list(journal.entries()) == entries


def test_a_line_that_is_written_again_since_its_disk_went_away_stands_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk has the line, and neither confirms it nor takes it back."""
    journal = Journal(tmp_path)
    journal.begin()
    entry = JournalEntry(cell="a", number=0, key="key0", values={"x": 0.5})

    def away(*_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", away)
        broken.setattr("os.ftruncate", away)
        with pytest.raises(OSError, match="Input/output error"):
            journal.append(entry)
    journal.append(entry)
    assert list(journal.entries()) == [entry]
