"""Where results lie: a folder of this machine or of a shared disk, or a place in an object store, given by its URL."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

from upath import UPath

STORES = {"s3": ("s3fs", "s3"), "gs": ("gcsfs", "gs"), "memory": (None, None)}
"""Of each scheme that a URL may have: the library that speaks to it, and the extra of this project that brings it.

``memory`` lies in this process alone and is for trials of one's own code. A store must be able to create an object only
where there is none: by that one run keeps the others out (``study.lease``).
"""

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://(?P<rest>.*)", re.DOTALL)

_CUT_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/(?P<rest>[^/].*)", re.DOTALL)
"""A URL that lost a slash, as one does that was taken for a path."""

_PATTERN = re.compile(r"[*\[]")
"""Of a name, by which ``fsspec`` looks for others that are like it, and may remove them; ``?`` begins parameters."""

_CLIENTS = frozenset({"aiobotocore", "aiohttp", "botocore", "fsspec", "gcsfs", "google", "s3fs"})

_ACCESS = {
    "s3": "AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL where it is not Amazon's",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or `gcloud auth application-default login`",
}
"""Of each scheme: what gives access."""

_OPTIONS: dict[str, dict[str, Any]] = {
    # Others write there too: what was listed a moment ago must not be believed.
    "s3": {"use_listings_cache": False, "config_kwargs": {"connect_timeout": 10, "read_timeout": 60}},
    "gs": {"use_listings_cache": False},
    "memory": {},
}


class LocationError(ValueError):
    """A place that cannot hold results: what was given, what was expected."""


def location(place: str | Path) -> Path:
    """The folder or the place in an object store that ``place`` names.

    A URL gives a :class:`upath.UPath`, which has the methods of a path, and is called one in the types of this project.

    Raises:
        LocationError: a URL of a scheme that is not in :data:`STORES`, whose library is not installed, without a
            bucket, with one slash, or with a name, a password, parameters or a pattern in it; a file's with a host;
            Google's without credentials.
    """
    found = _URL.fullmatch(str(place))
    if found is None:
        cut = _CUT_URL.fullmatch(str(place))
        if cut is not None:
            meant = f"{cut['scheme']}://{cut['rest']}"
            raise LocationError(f"{place}: found one slash, expected {meant} (or ./{place}, a folder of that name)")
        return Path(place)
    scheme, bucket = found["scheme"].lower(), found["rest"].partition("/")[0]
    if scheme == "file":
        if bucket:
            raise LocationError(f"{place}: found a host, expected file:///FOLDER, or the folder's path alone")
        return Path(unquote(found["rest"]))
    may_hold_secrets = "@" in bucket or ":" in bucket or "?" in found["rest"]
    if scheme not in STORES:
        shown = f"{scheme}://***" if may_hold_secrets else place
        raise LocationError(f"{shown}: found scheme {scheme}, expected a folder or one of {_schemes()}")
    if may_hold_secrets:
        raise LocationError(
            f"{scheme}://***: found a name, a password or parameters in the URL, expected {scheme}://BUCKET/FOLDER; "
            "give credentials as the store's own tools take them (environment or profile)"
        )
    if not bucket:
        raise LocationError(f"{place}: found no bucket, expected {scheme}://BUCKET/FOLDER")
    pattern = _PATTERN.search(found["rest"])
    if pattern is not None:
        raise LocationError(
            f"{place}: found {pattern[0]} in the URL, which the store's library takes for a pattern of names; expected "
            f"{scheme}://BUCKET/FOLDER without it"
        )
    library, extra = STORES[scheme]
    try:
        return _opened(scheme, found["rest"].rstrip("/"))
    except ImportError as error:
        raise LocationError(
            f"{place}: {library} is not installed; pip install 'bimp-study[{extra}]' on every node"
        ) from error


def is_remote(place: Path) -> bool:
    """Whether ``place`` lies in an object store."""
    return isinstance(place, UPath) and not isinstance(place, Path)


def is_client_error(error: BaseException) -> bool:
    """Whether a library of an object store raised it of its own kind: it tells of the way there, or of the answer."""
    return type(error).__module__.partition(".")[0] in _CLIENTS


def access_hint(place: Path) -> str:
    """What to look at if the store of ``place`` does not let one in; empty for a folder."""
    scheme = str(place).partition("://")[0]
    return _hint(scheme) if is_remote(place) and scheme in _ACCESS else ""


def absolute(place: Path) -> Path:
    """``place`` as every process of this machine finds it."""
    return place if is_remote(place) else place.resolve()


def _root(scheme: str, bucket: str) -> Any:
    return UPath(f"{scheme}://{bucket}", **_OPTIONS[scheme])


def _opened(scheme: str, rest: str) -> Path:
    # Their own lines would come before ours, with a traceback for each try.
    for talkative in ("gcsfs", "google.auth", "s3fs"):
        logging.getLogger(talkative).setLevel(logging.CRITICAL)
    if scheme == "gs":
        _require_google_credentials(f"{scheme}://{rest}")
    bucket, *folders = rest.split("/")
    place = _root(scheme, bucket).joinpath(*folders)
    place.fs  # noqa: B018 - imports the library
    return cast("Path", place)


def _require_google_credentials(place: str) -> None:
    """Refuse at once what gcsfs would try without a name, for most of a minute.

    Raises:
        LocationError: there are none. ImportError: Google's libraries are not installed.
    """
    # Else it asks for the kind of each bucket first, by another way, which may take as long again.
    os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    if os.environ.get("STORAGE_EMULATOR_HOST"):
        return
    import google.auth
    from google.auth.exceptions import GoogleAuthError

    try:
        google.auth.default()
    except GoogleAuthError as error:
        cause = " ".join(str(error).split()).partition(". ")[0].rstrip(".")
        raise LocationError(f"{place}: found no access to Google's store ({cause}); {_hint('gs')}") from error


def _hint(scheme: str) -> str:
    return f"check the URL, the network and your access ({_ACCESS[scheme]})"


def _schemes() -> str:
    return ", ".join(f"{scheme}://" for scheme, (library, _) in STORES.items() if library)
