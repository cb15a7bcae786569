from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from study.given_place import GivenPlaceError, given_text, local_path, place_or_url


def test_a_path_is_given_as_it_is(tmp_path: Path) -> None:
    assert place_or_url("--results")(str(tmp_path)) == tmp_path
    assert place_or_url("--results")(".") == Path()
    assert local_path("--data")(Path("data")) == Path("data"), "a default is no text"
    assert given_text("--mlflow", "a URI")("http://host") == "http://host"


def test_the_home_folder_is_meant_by_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No shell replaces it in --results=~/zinc, and a folder of that name came to be in the working folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert place_or_url("--results")("~/zinc") == tmp_path / "zinc"
    assert local_path("--data")("~") == tmp_path
    assert place_or_url("--results")("./~/zinc") == Path("~/zinc")
    assert place_or_url("--results")("a~/zinc~") == Path("a~/zinc~")


@pytest.mark.parametrize("text", ["", " ", "\t"])
def test_nothing_is_no_place(text: str) -> None:
    for parse in (place_or_url("--results"), local_path("--results"), given_text("--results", "a URI")):
        with pytest.raises(GivenPlaceError, match=r"^--results: found nothing, expected a "):
            parse(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a\nb", r"--out: found a character that cannot be printed \('\\n'\), expected"),
        ("a\x1b[31m", r"--out: found a character that cannot be printed \('\\x1b'\), expected"),
        ("x" * 256, "--out: found a file's or folder's name of 256 bytes, expected 255 at most"),
        ("é" * 128, "--out: found a file's or folder's name of 256 bytes, expected 255 at most"),
        ("x/" * 451, "--out: found 902 bytes, expected 900 at most"),
        ("s3:/bucket", "--out: s3:/bucket: found one slash, expected s3://bucket"),
        ("ftp://host/x", "--out: ftp://host/x: found scheme ftp, expected a folder or one of s3://, gs://"),
        ("memory://x", "--out: memory://x: found a place in this program's memory, expected a folder or its URL"),
        ("s3://me:hunter2@bucket", r"--out: s3://\*\*\*: found a name, a password"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_option(text: str, told: str) -> None:
    with pytest.raises(GivenPlaceError, match=f"^{told}") as refused:
        place_or_url("--out")(text)
    assert str(refused.value).isprintable()
    assert "hunter2" not in str(refused.value)


def test_a_url_is_no_path_of_this_machine(bucket_url: str) -> None:
    assert str(place_or_url("--out")(f"{bucket_url}/best.yaml")) == f"{bucket_url}/best.yaml"
    with pytest.raises(GivenPlaceError, match=f"^--data: {bucket_url}: found a URL, expected a path on this machine$"):
        local_path("--data")(bucket_url)


@given(st.text(st.characters(blacklist_characters=":\0", blacklist_categories=["Cs"]), max_size=300))
def test_every_other_text_is_that_path_or_refused_in_one_line(text: str) -> None:
    assume(text != "~" and not text.startswith("~/"))
    if text.strip() and text.isprintable() and all(len(name.encode()) <= 255 for name in text.split("/")):
        assert place_or_url("--out")(text) == Path(text)
        return
    with pytest.raises(GivenPlaceError, match=r"^--out: ") as refused:
        place_or_url("--out")(text)
    assert str(refused.value).isprintable()
