from __future__ import annotations

import re
from pathlib import Path

import pytest

from study.location import LocationError, absolute, is_remote, location


@pytest.mark.parametrize("place", ["results/zinc", "/data/zinc", "C:zinc", "./s3:/bucket", ".", "a://"[:2]])
def test_what_is_no_url_is_a_folder(place: str) -> None:
    assert location(place) == Path(place)
    assert not is_remote(location(place))
    assert absolute(location(place)).is_absolute()


def test_a_path_stays_what_it_is(bucket_url: str, tmp_path: Path) -> None:
    assert location(Path("results")) == Path("results")
    place = location(f"{bucket_url}/zinc")
    assert location(place) == place
    assert location("file:///data/zinc") == Path("/data/zinc")
    assert location((tmp_path / "a b").as_uri()) == tmp_path / "a b"


def test_a_url_is_a_place_in_its_store(bucket_url: str) -> None:
    place = location(f"{bucket_url}/studies/zinc/")
    assert is_remote(place)
    assert absolute(place) == place
    assert (str(place), place.name) == (f"{bucket_url}/studies/zinc", "zinc")
    assert str(place / "records") == f"{bucket_url}/studies/zinc/records"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("ftp://host/zinc", "ftp://host/zinc: found scheme ftp, expected a folder or one of s3://, gs://"),
        ("s3://", "s3://: found no bucket, expected s3://BUCKET/FOLDER"),
        ("s3:///zinc", "s3:///zinc: found no bucket"),
        ("s3:/bucket/zinc", "s3:/bucket/zinc: found one slash, expected s3://bucket/zinc (or ./s3:/bucket/zinc, a"),
        ("http://host/zinc", "http://host/zinc: found scheme http, expected a folder"),
        ("http://host:9000/zinc", "http://***: found scheme http, expected a folder or one of s3://, gs://"),
        ("ftp://me:hunter2@host", "ftp://***: found scheme ftp, expected a folder or one of s3://, gs://"),
        ("s3://bucket/lr [1e-3]", "s3://bucket/lr [1e-3]: found [ in the URL, which the store's library takes for"),
        ("gs://bucket/zinc*", "gs://bucket/zinc*: found * in the URL"),
        ("file://host/zinc", "file://host/zinc: found a host, expected file:///FOLDER"),
    ],
)
def test_another_url_is_refused(url: str, told: str) -> None:
    with pytest.raises(LocationError, match=f"^{re.escape(told)}"):
        location(url)


@pytest.mark.parametrize("url", ["s3://me:hunter2@bucket/zinc", "s3://hunter2@bucket", "s3://bucket/zinc?key=hunter2"])
def test_a_secret_in_a_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(LocationError, match=r"^s3://\*\*\*: found a name, a password or parameters") as caught:
        location(url)
    assert "hunter2" not in str(caught.value)


def test_google_without_credentials_is_refused_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(
        LocationError, match=r"^gs://bucket/zinc: found no access to Google's store \(File .*none.json was"
    ):
        location("gs://bucket/zinc")
