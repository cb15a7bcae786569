"""Where MLflow lies: its address, how to print it, how to open it, and the settings of its client."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shlex
import sys
from pathlib import Path
from urllib.parse import quote, urlsplit

from study.location import is_remote

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
_LONGEST_FOLDER_NAME = 150
_LONGEST_ERROR = 300
_SECRET_KEY = r"(?=[^=&;]*?(?:pass|pwd|token|secret|key|sig|auth|cred))[^=&;]*+"
_NAME_BEGINS = r"(?:(?<=[&;])|(?<![^=&;])[^=&;?]*+\?)"
"""Of a parameter: tried once between two of ``=&;``, so that a long text takes no longer than its length."""


class MirrorError(ValueError):
    """A results folder that cannot be mirrored, or an address that is none: what is wrong and how to mend it."""


UI_PORT = 5000
"""Where a printed command serves MLflow's pages."""

URI_VARIABLE = "MLFLOW_TRACKING_URI"
"""Of the environment: where a printed command looks for an address that holds a secret."""

SCHEMES = ("sqlite", "postgresql", "mysql", "mssql", "http", "https", "databricks")
"""What a tracking URI may begin with; databases also with a driver, as in ``mysql+pymysql``."""


def require_tracking_uri(tracking_uri: str) -> None:
    """Refuse a tracking URI that MLflow could never open.

    Raises:
        MirrorError: it begins with none of :data:`SCHEMES`, or is a server's without a host or with no port's number.
    """
    scheme = tracking_uri.partition(":")[0].partition("+")[0]
    if scheme not in SCHEMES:
        raise MirrorError(
            f"--mlflow {masked(tracking_uri)}: expected a URI that begins with one of {', '.join(SCHEMES)}"
        )
    if scheme in ("http", "https") and not _names_a_host(tracking_uri):
        raise MirrorError(f"--mlflow {masked(tracking_uri)}: found no server in it, expected {scheme}://HOST:PORT")


def _names_a_host(tracking_uri: str) -> bool:
    try:
        parts = urlsplit(tracking_uri)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # of the port
        return False


def default_tracking_uri(results: Path) -> str:
    """A database in the results folder itself: no server is needed.

    No database can lie in an object store: that of such a study is in a folder of the working folder's ``results``.
    """
    return sqlite_uri(own_database(results))


def sqlite_uri(path: Path) -> str:
    """The URI of the SQLite database in the file ``path``, as the SQLAlchemy that is installed reads it."""
    plain = f"sqlite:///{path}"
    escaped = re.sub(r"%(?=[0-9A-Fa-f]{2})", "%25", plain).replace("?", "%3F")
    if escaped == plain:
        return plain
    from sqlalchemy.engine import make_url

    # Before 2.1 it takes what follows the slashes as it stands. So does MLflow as it makes the file's folder, which
    # leaves an empty one beside the right one.
    return escaped if make_url(escaped).database == str(path) else plain


def own_database(results: Path) -> Path:
    """The file of the database of :func:`default_tracking_uri`; it may not be there."""
    return _folder_on_disk(results) / "mlflow.db"


def artifact_location(tracking_uri: str, results: Path) -> str | None:
    """Where runs of a database of our own keep files: in the results folder. None: a server decides itself."""
    return None if _is_server(tracking_uri) else (_folder_on_disk(results) / "mlartifacts").as_uri()


def _folder_on_disk(results: Path) -> Path:
    return (Path("results") / _one_name(str(results)) if is_remote(results) else results).absolute()


def _one_name(url: str) -> str:
    """``url`` as the name of a folder that no other has, and no study: theirs know no ``+``."""
    scheme, _, path = url.rstrip("/").partition("://")
    parts = (quote(part, safe="").replace("~", "%7E").replace("%", "~") for part in path.split("/"))
    name = "+".join([scheme, *parts])
    if len(name) <= _LONGEST_FOLDER_NAME:
        return name
    return f"{name[:_LONGEST_FOLDER_NAME]}+{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def masked(tracking_uri: str) -> str:
    """``tracking_uri`` fit to be printed: passwords and tokens are replaced by ``***``.

    User names stay where a password follows them; a lone part before ``@`` may be a token and goes.
    """
    if tracking_uri.startswith(("sqlite:", "file:")):
        return tracking_uri
    # Greedy up to the last @: a password that holds / or @ unescaped must not show in part.
    without_password = re.sub(r"^([^:/?#]++://)([^:@?]*+)(:?)[^?]*@", _mask_authority, tracking_uri)
    return re.sub(rf"({_NAME_BEGINS}{_SECRET_KEY}=)[^&;]*", r"\1***", without_password, flags=re.IGNORECASE)


def masked_text(text: str, tracking_uri: str) -> str:
    """``text`` with ``tracking_uri``, and every other address in it, masked: for messages of MLflow's errors."""
    return masked_addresses(text.replace(tracking_uri, masked(tracking_uri)))


def told_error(error: Exception, tracking_uri: str) -> str:
    """What MLflow or its database said, in one line of bounded length and without secrets."""
    # Masked before it is cut: half an address can still hold a whole password.
    text = " ".join(masked_text(f"{type(error).__name__}: {error}", tracking_uri).split())
    return text if len(text) <= _LONGEST_ERROR else text[:_LONGEST_ERROR] + " ..."


def masked_addresses(text: str) -> str:
    """``text`` with every address in it masked, as :func:`masked` does; in time that grows with its length alone."""
    # From the beginning of a word only: tried from each of its letters, a word of 100,000 letters takes half a minute.
    return re.sub(r"(?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]++://[^\s'\"<>]+", lambda match: masked(match[0]), text)


def ui_command(tracking_uri: str) -> str:
    """The one command that opens MLflow's pages on ``tracking_uri``, to be pasted into a shell.

    It serves this machine alone. For a server, whose pages are open already, it is their address.
    """
    if _is_server(tracking_uri):
        # The browser asks for a name and password.
        return masked(re.sub(r"^(https?://)[^/?#]*@", r"\1", tracking_uri))
    # One worker without the job runner: two processes in place of fifteen.
    program = f"MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false {shlex.quote(sys.executable)} -m mlflow ui"
    return f"{program} --backend-store-uri {in_shell(tracking_uri)} --host 127.0.0.1 --port {UI_PORT} --workers 1"


def in_shell(tracking_uri: str) -> str:
    """``tracking_uri`` in a command that is printed, to be pasted: a variable stands for one that holds a secret."""
    return shlex.quote(tracking_uri) if masked(tracking_uri) == tracking_uri else f'"${URI_VARIABLE}"'


def to_fill_in(tracking_uri: str) -> str:
    """What a command with :func:`in_shell` in it needs to be told; empty where it holds all."""
    if masked(tracking_uri) == tracking_uri:
        return ""
    return f"where {URI_VARIABLE} is {masked(tracking_uri)}, with what *** stands for"


def ui_page() -> str:
    """Where a browser finds the study once :func:`ui_command` runs: its runs, and not MLflow's page of traces.

    The database in a results folder holds one study, whose experiment is number 1.
    """
    return f"http://127.0.0.1:{UI_PORT}/#/experiments/1?workflowType=machine_learning"


def set_client_settings() -> None:
    """Set what :data:`CLIENT_SETTINGS` names in the environment, except what the user has set.

    To be called before MLflow is imported: it decides on telemetry as it is.
    """
    for name, value in CLIENT_SETTINGS.items():
        os.environ.setdefault(name, value)
    for name, level in _TALKATIVE.items():
        logging.getLogger(name).setLevel(level)


def _is_server(tracking_uri: str) -> bool:
    return tracking_uri.startswith(("http://", "https://", "databricks"))


def _mask_authority(match: re.Match[str]) -> str:
    scheme, user, colon = match.groups()
    return f"{scheme}{user}:***@" if colon else f"{scheme}***@"
