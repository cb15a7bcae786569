"""Every filter that docs/mlflow.md names, asked of a real MLflow server by its client and in its pages."""

from __future__ import annotations

import re
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import pytest
from conftest import Finished
from finished import records
from started import ROOT, Started, environment, run_study
from test_mlflow_pages import answers, browser, opened

from study.records import TrialRecord, write_record

__all__ = ["browser"]
pytestmark = pytest.mark.system

BOOSTING = "digits-gcn-boosting-L2-5k"
AS_IN_THE_PAGE = {BOOSTING: "digits-gcn-boosting-L4-100k", "5000": "100000"}
"""What the page says of the quickstart study, for the study that is asked here."""
EXPECTED: dict[str, Callable[[TrialRecord], bool]] = {
    "the best trials of a cell's search": lambda r: (r.cell, r.phase, r.status) == (BOOSTING, "search", "finished"),
    "how all of a cell's search trials ended": lambda r: (r.cell, r.phase) == (BOOSTING, "search"),
    "the confirm trials behind a cell's number": lambda r: (
        (r.cell, r.phase, r.status) == (BOOSTING, "confirm", "finished")
    ),
    "all confirm trials of bi-GCN": lambda r: r.placement != "none" and r.phase == "confirm",
    "all trials of gated GCNs, whatever the gate": lambda r: r.placement != "none",
    "what failed or diverged": lambda r: r.status in ("failed", "diverged"),
    "what was pruned": lambda r: r.status == "pruned",
    "everything that did not finish": lambda r: r.status != "finished",
    "what a later choice replaced": lambda r: r.status == "superseded",
    "everything of one seed": lambda r: r.seed == 41,
    "one placement at one budget": lambda r: (r.placement, r.budget) == ("boosting", 5000),
    "search trials above a value": lambda r: (
        r.phase == "search" and r.status != "running" and r.val_metric is not None and r.val_metric > 0.5
    ),
    "trained from files that were not committed": lambda r: r.git_dirty is True,
}
"""By question, for all that ask for trials."""
PARENTS = {
    "the rows of the table": ["GCN Digits 5k", "bi-GCN Digits 5k"],
    "the tables, pictures and the page": ["study one_by_one"],
}


@dataclass(frozen=True)
class Question:
    text: str
    filter: str
    sort: str


@dataclass(frozen=True)
class Mirrored:
    """A study on a server of its own: ten trials of a real one, four of which now ended in other ways."""

    address: str
    records: dict[str, TrialRecord]


def questions() -> list[Question]:
    page = (ROOT / "docs" / "mlflow.md").read_text(encoding="utf-8")
    for ours, theirs in AS_IN_THE_PAGE.items():
        page = page.replace(theirs, ours)
    rows = re.findall(r"^\| (.+) \| `(.+)` \| `(\w+)` \|$", page, flags=re.MULTILINE)
    return [Question(*row) for row in rows]


@pytest.fixture(scope="module")
def mirrored(one_by_one: Finished, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirrored]:
    folder = tmp_path_factory.mktemp("filters")
    results = folder / "results"
    shutil.copytree(one_by_one.results, results)
    other_ends(results)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    where = environment(MLFLOW_DISABLE_TELEMETRY="true", MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false")
    stores = ["--backend-store-uri", f"sqlite:///{folder}/server.db", "--artifacts-destination", f"{folder}/files"]
    listen = ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    server = Started([sys.executable, "-m", "mlflow", "server", *stores, *listen], where)
    address = f"http://127.0.0.1:{port}"
    server.until(lambda: answers(f"{address}/health"), "an answer of MLflow's server")
    ended = run_study("rebuild-mlflow", results, "--mlflow", address, environment=environment()).end()
    assert ended.code == 0, ended
    yield Mirrored(address, records(results))
    server.kill_with_descendants()


def other_ends(results: Path) -> None:
    found = sorted(records(results).values(), key=lambda record: (record.phase, record.cell, record.number or 0))
    search = [record for record in found if record.phase == "search"]
    confirm = [record for record in found if record.phase == "confirm"]
    changed = [
        replace(search[0], status="diverged", reason="epoch 2: loss nan in training", val_metric=None),
        replace(search[1], status="failed", reason="its worker was lost", val_metric=None),
        replace(search[2], status="pruned", reason="at the rung of epoch 2"),
        replace(
            confirm[0],
            status="superseded",
            reason="its search, extended or with failed trials tried again, chose another configuration",
        ),
    ]
    for record in changed:
        write_record(record, results / "records" / f"{record.key}.parquet")


def test_the_page_asks_nothing_that_is_not_tried() -> None:
    asked = [question.text for question in questions()]
    assert sorted(asked) == sorted([*EXPECTED, *PARENTS])


@pytest.mark.slow
def test_every_filter_answers_its_question_by_the_client(mirrored: Mirrored) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(mirrored.address)
    experiment = client.get_experiment_by_name("one_by_one")
    assert experiment is not None
    found_any = set()
    for question in questions():
        runs = client.search_runs(
            [experiment.experiment_id], question.filter, order_by=[f"metrics.{question.sort} DESC"]
        )
        if question.text in PARENTS:
            assert sorted(run.data.tags["mlflow.runName"] for run in runs) == PARENTS[question.text]
            continue
        expected = {key for key, record in mirrored.records.items() if EXPECTED[question.text](record)}
        assert {run.data.tags["trial_key"] for run in runs} == expected, question.text
        values = [run.data.metrics[question.sort] for run in runs if question.sort in run.data.metrics]
        assert values == sorted(values, reverse=True)
        found_any |= {question.text} if expected else set()
    assert {"what was pruned", "what failed or diverged", "what a later choice replaced"} <= found_any


@pytest.mark.slow
def test_the_run_of_the_study_holds_its_tables(mirrored: Mirrored) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(mirrored.address)
    experiment = client.get_experiment_by_name("one_by_one")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id], "tags.level = 'study'")
    assert run.info.status == "KILLED", "what replaces the superseded trial is still to be trained"
    listed = {entry.path for entry in client.list_artifacts(run.info.run_id, "tables")}
    assert {"tables/results.tex", "tables/results.md", "tables/results.csv"} <= listed


@pytest.mark.slow
def test_every_filter_answers_its_question_in_the_pages(mirrored: Mirrored, browser: str, tmp_path: Path) -> None:
    for question in questions():
        if question.text in PARENTS:
            count = len(PARENTS[question.text])
        else:
            count = sum(map(EXPECTED[question.text], mirrored.records.values()))
        sort = f"orderByKey={quote(f'metrics.`{question.sort}`')}&orderByAsc=false"
        address = f"{mirrored.address}/#/experiments/1/runs?workflowType=machine_learning&{sort}"
        page = opened(browser, f"{address}&searchFilter={quote(question.filter)}", tmp_path / "profile", "matching run")
        text = " ".join(re.sub(r"<[^>]*>", " ", page).split())
        shown = re.search(r"(\d+) matching run", text)
        assert shown is not None
        assert int(shown[1]) == count, question.text
