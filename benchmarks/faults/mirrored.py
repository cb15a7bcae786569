"""What MLflow's database holds, read with SQL, past MLflow."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

TABLES = ("experiments", "runs", "params", "tags", "metrics", "latest_metrics")

Content = dict[str, tuple[Any, ...]]


def dump(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, ids included: equal only where nothing was written in between."""
    with closing(_opened(database)) as connection:
        return {table: sorted(connection.execute(f"select * from {table}"), key=repr) for table in TABLES}


def content(database: Path) -> Content:
    """By name, all that it holds of every run that is not deleted; ids as names, so that two databases compare.

    A run that is there twice has its second one under a name of its own. When a study or a cell began is left out: no
    record says it; a mirror that watched it begin knows, and one that comes later takes the start of its first trial.
    """
    with closing(_opened(database)) as connection:
        runs = connection.execute(
            "select run_uuid, name, status, start_time, end_time from runs where lifecycle_stage = 'active'"
        ).fetchall()
        names = {run: name for run, name, *_ in runs}
        found: Content = {}
        for run, name, status, start, end in runs:
            rows = [
                sorted(connection.execute(f"select {columns} from {table} where run_uuid = ?", (run,)).fetchall())
                for table, columns in (
                    ("params", "key, value"),
                    ("metrics", "key, step, value, timestamp"),
                    ("latest_metrics", "key, step, value, timestamp"),
                )
            ]
            tags = connection.execute("select key, value from tags where run_uuid = ?", (run,)).fetchall()
            named = sorted((key, names.get(value, value)) for key, value in tags)
            started = start if ("level", "trial") in tags else None
            found[name if name not in found else f"{name} ({run})"] = (status, started, end, named, *rows)
        return found


def is_sound(database: Path) -> bool:
    """Whether the database itself says so."""
    with closing(_opened(database)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def _opened(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{database}?mode=ro", uri=True)
