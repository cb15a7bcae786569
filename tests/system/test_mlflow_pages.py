"""MLflow's own pages on a finished study, opened with the command that the study printed, in a real browser."""

from __future__ import annotations

import os
import re
import shutil
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from conftest import Finished
from finished import query, records
from started import DEADLINE_S, Started, environment

pytestmark = pytest.mark.system

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        assert os.environ.get("CI") != "true", f"CI must have one of {', '.join(BROWSERS)}"
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    return found


@pytest.fixture
def pages(tiny: Finished) -> Iterator[str]:
    """The address of MLflow's pages, served by the printed command on a port that is free."""
    (command,) = re.findall(r"^its pages: (.*)$", tiny.ended.out, flags=re.MULTILINE)
    assert "--port 5000" in command
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Started(["bash", "-c", command.replace("--port 5000", f"--port {port}")], environment())
    address = f"http://127.0.0.1:{port}"
    server.until(lambda: answers(f"{address}/health"), "an answer of MLflow's server")
    yield address
    server.kill_with_descendants()


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def opened(browser: str, address: str, profile: Path, *words: str) -> str:
    """The page once it shows all ``words``: it draws itself bit by bit, so it is opened until it does."""
    began = time.monotonic()
    while True:
        looking = Started(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                f"--user-data-dir={profile}",
                "--window-size=1600,1000",
                "--virtual-time-budget=30000",
                "--dump-dom",
                address,
            ],
            environment(),
        )
        page = looking.end().out
        missing = [word for word in words if word not in page]
        if not missing:
            return page
        assert time.monotonic() - began < DEADLINE_S, f"{address} does not show {', '.join(missing)}"


def test_runs_parameters_and_metrics_are_where_a_researcher_looks(
    tiny: Finished, pages: str, browser: str, tmp_path: Path
) -> None:
    ((experiment,),) = query(tiny.results, "SELECT experiment_id FROM experiments WHERE name = 'tiny'")
    runs = f"{pages}/#/experiments/{experiment}/runs"
    training = "workflowType=machine_learning"
    assert f"/#/experiments/{experiment}?{training}" in tiny.ended.out, "the page that the study names is its own"
    opened(browser, f"{runs}?{training}", tmp_path / "profile", "study tiny", "matching runs")
    confirm = quote('tags.phase = "confirm"')
    opened(
        browser, f"{runs}?{training}&searchFilter={confirm}", tmp_path / "profile", "GCN Digits 5k", "bi-GCN Digits 5k"
    )

    record = next(r for r in records(tiny.results).values() if r.phase == "confirm" and r.gate and r.seed == 41)
    ((run,),) = query(tiny.results, f"SELECT run_uuid FROM tags WHERE key = 'trial_key' AND value = '{record.key}'")
    page = opened(
        browser,
        f"{runs}/{run}?{training}",
        tmp_path / "profile",
        "bi-GCN Digits 5k seed 41",
        *("sigma_m", "num_clusters", "learning_rate", "placement", "hidden_dim", "params"),
        *("val_accuracy", "val_loss", "train_loss", "test_accuracy", "gate_std"),
    )
    text = re.sub(r"<[^>]*>", " ", page)
    assert re.search(rf"num_clusters\s+{record.num_clusters}\b", text)
    assert re.search(rf"hidden_dim\s+{record.hidden_dim}\b", text)
