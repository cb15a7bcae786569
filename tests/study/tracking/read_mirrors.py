"""What stands in the MLflow database of a results folder, read past MLflow."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from benchmarks.faults.mirrored import Content
from study.results import ResultsFolder

TABLES = ("experiments", "runs", "params", "tags", "metrics", "latest_metrics")
Rebuilt = Callable[[], Content]


def query(folder: ResultsFolder, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Read MLflow's tables past MLflow."""
    connection = sqlite3.connect(folder.root / "mlflow.db")
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def dump(folder: ResultsFolder) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table that a mirror writes."""
    return {table: sorted(query(folder, f"select * from {table}"), key=repr) for table in TABLES}


def live_runs(folder: ResultsFolder) -> dict[str, str]:
    """Id by name of the runs that are not deleted."""
    return dict(query(folder, "select name, run_uuid from runs where lifecycle_stage = 'active'"))


def tags_of(folder: ResultsFolder, run: str) -> dict[str, str]:
    return dict(query(folder, "select key, value from tags where run_uuid = ?", live_runs(folder)[run]))


def parameters_of(folder: ResultsFolder, run: str) -> dict[str, str]:
    return dict(query(folder, "select key, value from params where run_uuid = ?", live_runs(folder)[run]))


def curve(folder: ResultsFolder, run: str, metric: str) -> list[tuple[int, float, int]]:
    """Step, value and milliseconds since 1970 of every point."""
    statement = "select step, value, timestamp from metrics where run_uuid = ? and key = ? order by step, timestamp"
    return query(folder, statement, live_runs(folder)[run], metric)


def state_of(folder: ResultsFolder, run: str) -> tuple[str, int, int | None]:
    """Status, start and end in milliseconds since 1970."""
    statement = "select status, start_time, end_time from runs where run_uuid = ?"
    return query(folder, statement, live_runs(folder)[run])[0]
