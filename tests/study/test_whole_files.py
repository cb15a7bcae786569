"""The same must hold in a folder and in an object store; each test here runs in both."""

from __future__ import annotations

import os
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from study.location import location
from study.whole_files import (
    create_once,
    found_files,
    make_folder,
    move,
    read_all,
    remove_folder,
    replacing,
    stamp,
    write_whole,
)


@pytest.fixture(params=["folder", "object store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "folder":
        return tmp_path
    return location(f"{request.getfixturevalue('bucket_url')}/results")


def test_a_file_is_written_over_another(place: Path) -> None:
    for content in (b"first", b"", b"second"):
        write_whole(place / "record", content)
        assert (place / "record").read_bytes() == content


def test_a_block_that_fails_leaves_the_old_file(place: Path) -> None:
    write_whole(place / "record", b"old")

    def fail() -> None:
        with replacing(place / "record") as temporary:
            temporary.write_bytes(b"half of the n")
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fail()
    assert (place / "record").read_bytes() == b"old"
    assert [file.path.name for file in found_files(place)] == ["record"]
    with replacing(place / "record", durable=True) as temporary:
        temporary.write_bytes(b"new")
    assert (place / "record").read_bytes() == b"new"
    assert not temporary.exists()


def test_of_many_that_create_a_file_one_succeeds(place: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        created = list(pool.map(lambda n: create_once(place / "lease", str(n).encode()), range(8)))
    assert sum(created) == 1
    assert (place / "lease").read_bytes() == str(created.index(True)).encode()


def test_files_are_found_at_any_depth_in_order_and_hidden_ones_are_not(place: Path) -> None:
    assert found_files(place / "nowhere") == []
    for name in ("b/2/record", "b/1/record", "a", ".b.tmp", "b/.c/d"):
        make_folder((place / name).parent)
        write_whole(place / name, b"content")
    assert [file.path.relative_to(place).as_posix() for file in found_files(place)] == ["a", "b/1/record", "b/2/record"]


def test_files_in_memory_are_found_whose_time_is_a_number() -> None:
    place = location(f"memory://{uuid.uuid4().hex}/results")
    before = time.time()
    write_whole(place / "record", b"content")
    (found,) = found_files(place)
    assert found.path == place / "record"
    assert before <= found.modified <= time.time()


def test_a_stamp_changes_with_the_content_and_is_that_of_a_listing(place: Path) -> None:
    write_whole(place / "record", b"one")
    before = stamp(place / "record")
    assert [file.stamp for file in found_files(place)] == [before]
    write_whole(place / "record", b"two")
    assert stamp(place / "record") != before
    with pytest.raises(FileNotFoundError):
        stamp(place / "other")


def test_many_files_are_read_in_order_and_what_is_missing_says_so(place: Path) -> None:
    for name in ("a", "b"):
        write_whole(place / name, name.encode())
    contents = read_all([place / "b", place / "gone", place / "a"])
    assert contents[0] == b"b"
    assert isinstance(contents[1], FileNotFoundError)
    assert contents[2] == b"a"
    assert read_all([place / "a"]) == [b"a"]
    assert isinstance(read_all([place / "gone"])[0], FileNotFoundError)
    assert read_all([]) == []


def test_a_folder_goes_with_all_that_it_holds(place: Path) -> None:
    for name in ("live/k/1/record", "live/k/2/record", "live/kk/record"):
        make_folder((place / name).parent)
        write_whole(place / name, b"content")
    remove_folder(place / "live" / "k")
    remove_folder(place / "live" / "none")
    assert [file.path.relative_to(place).as_posix() for file in found_files(place)] == ["live/kk/record"]


def test_a_moved_file_has_its_new_name_alone(place: Path) -> None:
    write_whole(place / "a", b"new")
    write_whole(place / "b", b"old")
    move(place / "a", place / "b")
    assert (place / "b").read_bytes() == b"new"
    assert [file.path.name for file in found_files(place)] == ["b"]


def test_others_may_read_what_is_written(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_whole(tmp_path / "record", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "record").stat().st_mode & 0o777 == 0o644
