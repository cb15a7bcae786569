"""What system tests share: prepared data, finished studies to look at, and the certainty that nothing runs on."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from started import (
    ROOT,
    Ended,
    Started,
    adopt_orphans,
    environment,
    kill_descendants_of_this_process,
    run_study,
)

TINY = ROOT / "search_spaces" / "tiny.yaml"

ONE_BY_ONE = """
name: one_by_one
seed: 1
arms: {dataset: digits, backbone: gcn, placement: [none, boosting], budget: 5000, layers: 2}
space:
  num_clusters: {int: [2, 8]}
  sigma_m: {log_uniform: [0.1, 10]}
  learning_rate: {log_uniform: [1e-3, 1e-2]}
fixed: {max_epochs: 4, batch_size: 128}
search: {sampler: random, trials: 3, asha: {grace_epochs: 2, reduction_factor: 2}}
confirm: {seeds: [41, 95]}
resources: {max_concurrent: 1}
"""
"""One trial at a time, so that what is pruned and chosen follows from the file alone; 10 trials."""


@dataclass(frozen=True)
class Studies:
    """Starts studies on the data that was prepared once."""

    data: Path
    environment: dict[str, str]

    def start(self, file: Path, results: Path, *options: str, data: Path | None = None) -> Started:
        return run_study(
            "run", file, "--results", results, "--data", data or self.data, *options, environment=self.environment
        )

    def run(self, file: Path, results: Path, *options: str, data: Path | None = None) -> Ended:
        return self.start(file, results, *options, data=data).end()

    def status(self, results: Path) -> Ended:
        return run_study("status", results, environment=self.environment).end()


@dataclass(frozen=True)
class Finished:
    """A study that ran to its end undisturbed."""

    file: Path
    results: Path
    ended: Ended


@pytest.fixture(scope="session", autouse=True)
def _orphans() -> None:
    adopt_orphans()


@pytest.fixture(autouse=True)
def _nothing_runs_on() -> Iterator[None]:
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    yield
    kill_descendants_of_this_process(except_for=before)


@pytest.fixture(scope="session")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studies]:
    # Ray's sockets lie there: their paths must be short, so it is no folder of pytest's.
    ray = Path(tempfile.mkdtemp(prefix="ray-"))
    data = tmp_path_factory.mktemp("data")
    where = environment(RAY_TMPDIR=str(ray))
    prepared = run_study("prepare", "digits", "--data", data, environment=where).end()
    assert prepared.code == 0, prepared
    yield Studies(data, where)
    shutil.rmtree(ray, ignore_errors=True)


@pytest.fixture(scope="session")
def tiny(studies: Studies, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    results = tmp_path_factory.mktemp("tiny") / "results"
    return Finished(TINY, results, studies.run(TINY, results))


@pytest.fixture(scope="session")
def one_by_one(studies: Studies, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("one_by_one")
    file = folder / "study.yaml"
    file.write_text(ONE_BY_ONE)
    return Finished(file, folder / "results", studies.run(file, folder / "results"))
