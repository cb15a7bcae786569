"""Addresses of MLflow: which are refused, how one that holds a secret is shown, and where a mirror lies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.engine import make_url

from study.location import location
from study.tracking import (
    MirrorError,
    default_tracking_uri,
    masked,
    masked_text,
    require_tracking_uri,
    to_fill_in,
    ui_command,
    ui_page,
)
from study.tracking.address import _one_name, in_shell, masked_addresses, set_client_settings
from study.tracking.database import create_database, require_database


@pytest.mark.parametrize("uri", ["foo://bar", "runs.db", "ftp://host/x"])
def test_an_address_that_mlflow_could_never_open_is_refused(uri: str) -> None:
    with pytest.raises(MirrorError, match="expected a URI that begins with one of sqlite"):
        require_tracking_uri(uri)


@pytest.mark.parametrize("uri", ["sqlite:////tmp/m.db", "http://127.0.0.1:5000", "mysql+pymysql://u:p@h/d"])
def test_known_addresses_pass(uri: str) -> None:
    require_tracking_uri(uri)


@pytest.mark.parametrize("uri", ["http://", "https:///path", "http://:5000", "http://host:port", "http://host:99999"])
def test_a_server_without_a_host_or_port_is_refused(uri: str) -> None:
    with pytest.raises(MirrorError, match=f"^--mlflow {uri}: found no server in it, expected https?://HOST:PORT$"):
        require_tracking_uri(uri)


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("sqlite:////home/me@work/mlflow.db", "sqlite:////home/me@work/mlflow.db"),
        ("http://localhost:5000", "http://localhost:5000"),
        ("https://me:secret@host:443/path", "https://me:***@host:443/path"),
        ("https://token@host", "https://***@host"),
        ("postgresql+psycopg2://me:a/b@c#d@host/db", "postgresql+psycopg2://me:***@host/db"),
        (
            "postgresql://host/db?user=me&password=secret&sslmode=require",
            "postgresql://host/db?user=me&password=***&sslmode=require",
        ),
        ("mysql://:secret@host/db", "mysql://:***@host/db"),
        ("https://host/?access_TOKEN=secret", "https://host/?access_TOKEN=***"),
        ("https://host/?token?x=secret&a=b?key=secret", "https://host/?token?x=***&a=b?key=***"),
        ("mssql://host;pwd=secret;a=b", "mssql://host;pwd=***;a=b"),
    ],
)
def test_an_address_is_printed_without_its_secrets(uri: str, shown: str) -> None:
    assert masked(uri) == shown
    assert masked_text(f"cannot reach {uri} now", uri) == f"cannot reach {shown} now"


@given(st.text(alphabet=st.characters(codec="ascii", exclude_characters="?"), min_size=4))
def test_no_password_survives(password: str) -> None:
    assert masked(f"postgresql://me:{password}@host/db") == "postgresql://me:***@host/db"


@given(st.text(alphabet="aZ9+.-:/@= \n'<", max_size=12), st.text(alphabet="ab=/.:+' ", max_size=12))
def test_no_password_survives_wherever_an_address_stands(before: str, after: str) -> None:
    text = f"{before}s3://me:PASSWORD@host/{after}"
    shown = masked_addresses(text)
    assert "PASSWORD" not in shown
    assert shown.endswith(f"***@host/{after}")


@pytest.mark.parametrize("long", ["m", "a://", "x:", "/?key", "/?a=key"])
def test_a_text_of_a_million_characters_is_masked_before_one_has_waited(long: str) -> None:
    # Tried from each of its letters it would take an hour.
    text = long * (1_000_000 // len(long))
    assert masked_addresses(f"{text} s3://me:secret@host") == f"{text} s3://me:***@host"
    assert masked_addresses(f"s3://{text}") == f"s3://{text}"


def test_the_pages_open_with_one_command(tmp_path: Path) -> None:
    command = ui_command(f"sqlite:///{tmp_path}/my results/mlflow.db")
    assert f"--backend-store-uri 'sqlite:///{tmp_path}/my results/mlflow.db'" in command
    assert "--host 127.0.0.1 --port 5000" in command
    assert ui_command("https://me:secret@host/path") == "https://host/path", "the browser asks"
    assert ui_page() == "http://127.0.0.1:5000/#/experiments/1?workflowType=machine_learning"


def test_what_the_user_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "77")
    monkeypatch.delenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", raising=False)
    set_client_settings()
    assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "77"
    assert os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "0"


def test_a_secret_is_left_out_of_commands_and_what_to_fill_in_is_told() -> None:
    assert in_shell("http://host:5000") == "http://host:5000"
    assert in_shell("sqlite:////my results/mlflow.db") == "'sqlite:////my results/mlflow.db'"
    assert to_fill_in("http://host:5000") == ""
    secret = "postgresql://me:hunter2@host/db"
    assert in_shell(secret) == '"$MLFLOW_TRACKING_URI"'
    assert to_fill_in(secret) == ("where MLFLOW_TRACKING_URI is postgresql://me:***@host/db, with what *** stands for")
    assert '--backend-store-uri "$MLFLOW_TRACKING_URI" ' in ui_command(secret)


@pytest.mark.parametrize(
    ("name", "written"), [("50%20?", "50%2520%3F"), ("100% of", "100% of"), ("a%3fb", "a%253fb"), ("a#b", "a#b")]
)
def test_the_database_lies_in_a_results_folder_of_any_name(name: str, written: str) -> None:
    """SQLAlchemy reads %20 in an address as a space, and what follows ? as parameters."""
    uri = default_tracking_uri(Path("/results") / name)
    assert uri == f"sqlite:////results/{written}/mlflow.db"
    assert make_url(uri).database == f"/results/{name}/mlflow.db"


def test_a_database_is_made_where_mlflow_looks_for_it(tmp_path: Path) -> None:
    results = tmp_path / "50%20?"
    results.mkdir()
    create_database(default_tracking_uri(results))
    require_database(default_tracking_uri(results))
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.db")] == ["50%20?/mlflow.db"]


class TestMirrorOfAnObjectStore:
    def place(self, url: str) -> str:
        return default_tracking_uri(location(url)).removeprefix("sqlite:///")

    def test_has_a_folder_of_its_own(self, bucket_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        bucket = bucket_url.removeprefix("s3://")
        assert self.place(f"{bucket_url}/zinc") == f"{tmp_path}/results/s3+{bucket}+zinc/mlflow.db"
        assert self.place(f"{bucket_url}/") == f"{tmp_path}/results/s3+{bucket}/mlflow.db"
        assert default_tracking_uri(Path("results/zinc")) == f"sqlite:///{tmp_path}/results/zinc/mlflow.db"
        create_database(default_tracking_uri(location(f"{bucket_url}/a +b")))
        assert (tmp_path / "results" / f"s3+{bucket}+a~20~2Bb" / "mlflow.db").exists()

    @given(st.lists(st.text(min_size=1, max_size=60), min_size=2, max_size=2, unique=True))
    def test_no_two_share_one_and_none_leads_out(self, urls: list[str]) -> None:
        one, other = (_one_name(f"s3://bucket/{url}") for url in urls)
        if urls[0].rstrip("/") != urls[1].rstrip("/"):
            assert one != other
        assert "/" not in one
        assert one.startswith("s3+bucket")
        assert len(one) <= 170
