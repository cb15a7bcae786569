"""Where results lie: a folder of this machine or of a shared disk, or a place in an object store, given by its URL."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

from upath import UPath

STORES = {"s3": ("s3fs", "s3"), "gs": ("gcsfs", "gs"), "memory": (None, None)}
"""Of each scheme that a URL may have: the library that speaks to it, and the extra of this project that brings it.

``memory`` lies in this process alone and is for trials of one's own code. A store must be able to create an object only
where there is none: by that one run keeps the others out (``study.lease``).
"""

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://(?P<rest>.*)", re.DOTALL)

_CLIENTS = frozenset({"aiobotocore", "aiohttp", "botocore", "gcsfs", "s3fs"})

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
            bucket, or with a name or password in it.
    """
    found = _URL.fullmatch(str(place))
    if found is None:
        return Path(place)
    scheme, bucket = found["scheme"].lower(), found["rest"].partition("/")[0]
    if scheme == "file":
        return Path(found["rest"])
    if "@" in bucket or ":" in bucket or "?" in found["rest"]:
        raise LocationError(
            f"{scheme}://***: found a name, a password or parameters in the URL, expected {scheme}://BUCKET/FOLDER; "
            "give credentials as the store's own tools take them (environment or profile)"
        )
    if scheme not in STORES:
        raise LocationError(f"{place}: found scheme {scheme}, expected a folder or one of {_schemes()}")
    if not bucket:
        raise LocationError(f"{place}: found no bucket, expected {scheme}://BUCKET/FOLDER")
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


def absolute(place: Path) -> Path:
    """``place`` as every process of this machine finds it."""
    return place if is_remote(place) else place.resolve()


def _root(scheme: str, bucket: str) -> Any:
    return UPath(f"{scheme}://{bucket}", **_OPTIONS[scheme])


def _opened(scheme: str, rest: str) -> Path:
    bucket, *folders = rest.split("/")
    place = _root(scheme, bucket).joinpath(*folders)
    place.fs  # noqa: B018 - imports the library
    return cast("Path", place)


def _schemes() -> str:
    return ", ".join(f"{scheme}://" for scheme, (library, _) in STORES.items() if library)
