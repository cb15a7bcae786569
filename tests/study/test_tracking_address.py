"""Addresses of MLflow: which are refused, how a command has one that holds a secret, and where a mirror lies."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.location import location
from study.tracking import MirrorError, default_tracking_uri, require_tracking_uri, to_fill_in, ui_command
from study.tracking.address import _one_name, in_shell
from study.tracking.database import create_database


@pytest.mark.parametrize("uri", ["http://", "https:///path", "http://:5000", "http://host:port", "http://host:99999"])
def test_a_server_without_a_host_or_port_is_refused(uri: str) -> None:
    with pytest.raises(MirrorError, match=f"^--mlflow {uri}: found no server in it, expected https?://HOST:PORT$"):
        require_tracking_uri(uri)


def test_a_secret_is_left_out_of_commands_and_what_to_fill_in_is_told() -> None:
    assert in_shell("http://host:5000") == "http://host:5000"
    assert in_shell("sqlite:////my results/mlflow.db") == "'sqlite:////my results/mlflow.db'"
    assert to_fill_in("http://host:5000") == ""
    secret = "postgresql://me:hunter2@host/db"
    assert in_shell(secret) == '"$MLFLOW_TRACKING_URI"'
    assert to_fill_in(secret) == ("where MLFLOW_TRACKING_URI is postgresql://me:***@host/db, with what *** stands for")
    assert '--backend-store-uri "$MLFLOW_TRACKING_URI" ' in ui_command(secret)


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
