"""The database that a tracking URI names: made where it is a file, and asked first where it is a server's."""

from __future__ import annotations

from pathlib import Path

from study.tracking.address import sqlite_uri
from study.whole_files import replacing

ANSWER_WITHIN_S = 10
"""How long a database's server may take to answer."""

_TAKES_A_TIMEOUT = ("postgresql", "mysql")


def create_database(tracking_uri: str) -> None:
    """Make the sqlite database of ``tracking_uri`` where there is none; nothing for other addresses.

    The tables are made in a file that takes its name when it is whole. A database whose making was cut short
    by Ctrl-C or a crash would be refused by MLflow for ever.

    Raises:
        OSError: the folder cannot be written.
    """
    path = _database_path(tracking_uri)
    if path is None or (path.exists() and path.stat().st_size > 0):
        return
    from mlflow import MlflowClient

    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        MlflowClient(tracking_uri=sqlite_uri(temporary.absolute()))


def _database_path(tracking_uri: str) -> Path | None:
    if not tracking_uri.startswith("sqlite:///") or "?" in tracking_uri:
        return None
    from sqlalchemy.engine import make_url

    name = make_url(tracking_uri).database
    return None if name in (None, "", ":memory:") else Path(name)


def require_database(tracking_uri: str) -> None:
    """Ask a database whether it lets one in; nothing for other addresses.

    MLflow itself would try ten times, for over a minute and without a word, before it said that it is refused.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: it does not, or not within :data:`ANSWER_WITHIN_S` (PostgreSQL and MySQL), or
            a file is no database of SQLite.
        ImportError: the driver of such a database is not installed.
    """
    kind = tracking_uri.partition("://")[0].partition("+")[0]
    if kind not in (*_TAKES_A_TIMEOUT, "mssql", "sqlite"):
        return
    from sqlalchemy import NullPool, create_engine
    from sqlalchemy.engine import make_url

    given = "connect_timeout" in make_url(tracking_uri).query
    timeout = {"connect_timeout": ANSWER_WITHIN_S} if kind in _TAKES_A_TIMEOUT and not given else {}
    with create_engine(tracking_uri, poolclass=NullPool, connect_args=timeout).connect() as connection:
        if kind == "sqlite":  # which opens a file without looking into it
            connection.exec_driver_sql("PRAGMA schema_version")
