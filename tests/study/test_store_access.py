"""The first question to an object store: a real server of S3 answers it, or none."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from study import store_access
from study.faults import require_folder
from study.found_study import NoStudyError, require_study
from study.location import location
from study.store_access import StoreAccessError, is_there, refused_by_store, require_bucket
from study.whole_files import write_whole


def test_a_bucket_that_is_not_there_is_named_with_its_option(bucket_url: str) -> None:
    require_folder(location(f"{bucket_url}/zinc"), "--results")
    missing = location("s3://no-such-bucket/zinc")
    told = r"^s3://no-such-bucket/zinc: there is no such bucket; make it, or name another with --results$"
    with pytest.raises(StoreAccessError, match=told):
        require_folder(missing, "--results")


def test_an_object_is_there_or_not(bucket_url: str) -> None:
    place = location(f"{bucket_url}/zinc")
    write_whole(place / "plan.json", b"{}")
    assert is_there(place, "plan.json")
    assert is_there(place.parent, "zinc"), "a folder is what lies in it"
    assert not is_there(place, "plan.jso")
    require_bucket(place)


def test_a_study_in_a_bucket(bucket_url: str) -> None:
    place = location(f"{bucket_url}/zinc")
    told = rf"^{place}: no study here \(plan.json is missing\); give a study's results folder, or its URL$"
    with pytest.raises(NoStudyError, match=told):
        require_study(place)
    write_whole(place / "plan.json", b"{}")
    require_study(place)
    with pytest.raises(StoreAccessError, match=r"^s3://no-such-bucket/: there is no such bucket"):
        require_study(location("s3://no-such-bucket"))


def test_a_study_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}")
    require_study(tmp_path)
    for place, cause in (
        (tmp_path / "none", "there is no such folder"),
        (tmp_path / "plan.json", "it is a file"),
    ):
        with pytest.raises(NoStudyError, match=rf"^{place}: no study here \({cause}\)"):
            require_study(place)


def test_no_server_at_the_address(bucket_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
    place = another_store(address, monkeypatch)
    told = r"^s3://studies/zinc: the store cannot be read \(Could not connect to .*\); check the URL, the net"
    with pytest.raises(StoreAccessError, match=told):
        require_bucket(place)


def test_a_server_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_access, "PATIENCE_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = another_store(f"http://127.0.0.1:{silent.getsockname()[1]}", monkeypatch)
        with pytest.raises(StoreAccessError, match=r"the store cannot be read \(no answer within 0.2 s\); check"):
            require_bucket(place)


def test_an_error_in_mid_study_is_told_with_its_place(bucket_url: str, tmp_path: Path) -> None:
    place = location(f"{bucket_url}/zinc")
    missing = location("s3://no-such-bucket/zinc")
    with pytest.raises(OSError, match="bucket") as raised:
        write_whole(missing / "plan.json", b"{}")
    told = refused_by_store(place, raised.value)
    assert str(told).startswith(f"{place}: the store does not answer as it should (NoSuchBucket: ")
    assert str(told).endswith("; once this is mended the same command goes on")
    assert refused_by_store(tmp_path, raised.value) is None, "results on a disk are not in the store"
    assert refused_by_store(place, OSError(28, "No space left on device")) is None


def another_store(address: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place at another server: clients are kept, and know their server from when they were made."""
    from s3fs import S3FileSystem
    from upath import UPath

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "anybody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "anything")
    fresh = UPath("s3://studies/zinc", endpoint_url=address, skip_instance_cache=True)
    assert isinstance(fresh.fs, S3FileSystem)
    return fresh
