"""Where MLflow lies: its address, how to print it, how to open it, and the settings of its client."""

from __future__ import annotations

import logging
import os
import re
import shlex
import sys
from pathlib import Path

from study.location import is_remote
from study.whole_files import replacing

CLIENT_SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_JITTER": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}
"""MLflow's own patience with a server that is down is minutes for each call. The mirror comes again in seconds, so it
gives up at once, and no retry is printed in each round; ten seconds leave a slow server time for a full batch."""

_TALKATIVE = {
    # Announces migrations, and prints a traceback for each locked database before it raises the error we report.
    "mlflow.store.db.utils": logging.CRITICAL,
    "alembic.runtime.migration": logging.WARNING,
}
_SECRET_KEY = r"[^=&;?]*(?:pass|pwd|token|secret|key|sig|auth|cred)[^=&;]*"


class MirrorError(ValueError):
    """A results folder that cannot be mirrored, or an address that is none: what is wrong and how to mend it."""


SCHEMES = ("sqlite", "postgresql", "mysql", "mssql", "http", "https", "databricks")
"""What a tracking URI may begin with; databases also with a driver, as in ``mysql+pymysql``."""


def require_known_scheme(tracking_uri: str) -> None:
    """Refuse a tracking URI that MLflow could never open.

    Raises:
        MirrorError: it begins with none of :data:`SCHEMES`.
    """
    scheme = tracking_uri.partition(":")[0].partition("+")[0]
    if scheme not in SCHEMES:
        raise MirrorError(
            f"--mlflow {masked(tracking_uri)}: expected a URI that begins with one of {', '.join(SCHEMES)}"
        )


def default_tracking_uri(results: Path) -> str:
    """A database in the results folder itself: no server is needed.

    No database can lie in an object store: that of such a study is in ``results/NAME`` of the working folder.
    """
    return f"sqlite:///{_folder_on_disk(results) / 'mlflow.db'}"


def artifact_location(tracking_uri: str, results: Path) -> str | None:
    """Where runs of a database of our own keep files: in the results folder. None: a server decides itself."""
    return None if _is_server(tracking_uri) else (_folder_on_disk(results) / "mlartifacts").as_uri()


def _folder_on_disk(results: Path) -> Path:
    return (Path("results") / results.name if is_remote(results) else results).absolute()


def masked(tracking_uri: str) -> str:
    """``tracking_uri`` fit to be printed: passwords and tokens are replaced by ``***``.

    User names stay where a password follows them; a lone part before ``@`` may be a token and goes.
    """
    if tracking_uri.startswith(("sqlite:", "file:")):
        return tracking_uri
    # Greedy up to the last @: a password that holds / or @ unescaped must not show in part.
    without_password = re.sub(r"^([^:/?#]+://)([^:@?]*)(:?)[^?]*@", _mask_authority, tracking_uri)
    return re.sub(rf"([?&;]{_SECRET_KEY}=)[^&;]*", r"\1***", without_password, flags=re.IGNORECASE)


def masked_text(text: str, tracking_uri: str) -> str:
    """``text`` with ``tracking_uri``, and every other address in it, masked: for messages of MLflow's errors."""
    return masked_addresses(text.replace(tracking_uri, masked(tracking_uri)))


def masked_addresses(text: str) -> str:
    """``text`` with every address in it masked, as :func:`masked` does."""
    return re.sub(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+", lambda match: masked(match[0]), text)


def ui_command(tracking_uri: str, port: int = 5000) -> str:
    """The one command that opens MLflow's pages on ``tracking_uri``, to be pasted into a shell.

    It serves this machine alone. For a server, whose pages are open already, it is their address.
    """
    if _is_server(tracking_uri):
        return masked(tracking_uri)
    # One worker without the job runner: two processes in place of fifteen.
    program = f"MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false {shlex.quote(sys.executable)} -m mlflow ui"
    return (
        f"{program} --backend-store-uri {shlex.quote(masked(tracking_uri))} --host 127.0.0.1 --port {port} --workers 1"
    )


def ui_page(experiment_id: str = "1", port: int = 5000) -> str:
    """Where a browser finds the study once :func:`ui_command` runs: its runs, and not MLflow's page of traces.

    The database in a results folder holds one study, whose experiment is number 1.
    """
    return f"http://127.0.0.1:{port}/#/experiments/{experiment_id}?workflowType=machine_learning"


def set_client_settings() -> None:
    """Set what :data:`CLIENT_SETTINGS` names in the environment, except what the user has set.

    To be called before MLflow is imported: it decides on telemetry as it is.
    """
    for name, value in CLIENT_SETTINGS.items():
        os.environ.setdefault(name, value)
    for name, level in _TALKATIVE.items():
        logging.getLogger(name).setLevel(level)


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
        MlflowClient(tracking_uri=f"sqlite:///{temporary.absolute()}")


def _database_path(tracking_uri: str) -> Path | None:
    prefix = "sqlite:///"
    name = tracking_uri.removeprefix(prefix)
    if not tracking_uri.startswith(prefix) or name in ("", ":memory:") or "?" in name:
        return None
    return Path(name)


def _is_server(tracking_uri: str) -> bool:
    return tracking_uri.startswith(("http://", "https://", "databricks"))


def _mask_authority(match: re.Match[str]) -> str:
    scheme, user, colon = match.groups()
    return f"{scheme}{user}:***@" if colon else f"{scheme}***@"
