from __future__ import annotations

import re
from pathlib import Path

import pytest

from study.faults import FolderError, require_folder
from study.location import LocationError, absolute, is_remote, location


@pytest.mark.parametrize("place", ["results/zinc", "/data/zinc", "C:zinc", "s3:/bucket", ".", "a://"[:2]])
def test_what_is_no_url_is_a_folder(place: str) -> None:
    assert location(place) == Path(place)
    assert not is_remote(location(place))
    assert absolute(location(place)).is_absolute()


def test_a_path_stays_what_it_is(bucket_url: str) -> None:
    assert location(Path("results")) == Path("results")
    place = location(f"{bucket_url}/zinc")
    assert location(place) == place
    assert location("file:///data/zinc") == Path("/data/zinc")


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


def test_a_bucket_that_is_not_there_is_named_with_its_option(bucket_url: str) -> None:
    require_folder(location(f"{bucket_url}/zinc"), "--results")
    missing = location("s3://no-such-bucket/zinc")
    with pytest.raises(FolderError, match=r"^s3://no-such-bucket/zinc: there is no such bucket; make it, or name"):
        require_folder(missing, "--results")
