"""Results folders beside a real MLflow database; nothing of MLflow is replaced."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_mirrors import VANILLA, planned_cell, write_plan
from read_mirrors import Rebuilt

from benchmarks.faults.mirrored import Content, content
from study.results import ResultsFolder
from study.tracking import MlflowMirror
from study.tracking.address import CLIENT_SETTINGS
from study.tracking.database import create_database

GOAL = {"direction": "max", "trials": 1, "confirm_trials": 1, "max_epochs": 3, "rungs": [1, 3]}


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty MLflow database, made once: its migrations take seconds."""
    path = tmp_path_factory.mktemp("mlflow") / "migrated.db"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CLIENT_SETTINGS.items():
            patch.setenv(name, value)
        create_database(f"sqlite:///{path}")
    return path


@pytest.fixture(autouse=True)
def settings_put_back() -> Iterator[None]:
    """Put back what a mirror sets of MLflow's client in the environment."""
    before = dict(os.environ)
    yield
    for name in CLIENT_SETTINGS:
        os.environ.pop(name, None)
        if name in before:
            os.environ[name] = before[name]


@pytest.fixture
def folder(tmp_path: Path, migrated: Path) -> ResultsFolder:
    """A study of a gated and a vanilla cell, with no trial yet, and its database."""
    results = ResultsFolder(tmp_path / "results")
    results.create()
    write_plan(results, planned_cell(), planned_cell("gcn_none", **VANILLA))
    shutil.copyfile(migrated, results.root / "mlflow.db")
    return results


@pytest.fixture
def planned(folder: ResultsFolder) -> ResultsFolder:
    """The study with a plan that says what is to be done: a search trial and a confirm trial a cell."""
    write_plan(folder, planned_cell(**GOAL), planned_cell("gcn_none", **GOAL, **VANILLA))
    return folder


@pytest.fixture
def rebuilt(folder: ResultsFolder, tmp_path: Path, migrated: Path) -> Rebuilt:
    """What a mirror that sees the folder for the first time makes of it."""

    def make() -> Content:
        shutil.copyfile(migrated, tmp_path / "rebuilt.db")
        MlflowMirror(f"sqlite:///{tmp_path / 'rebuilt.db'}", folder.root).sync_folder()
        return content(tmp_path / "rebuilt.db")

    return make
