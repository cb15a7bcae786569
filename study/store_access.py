"""Whether an object store lets one in, asked before anything else is done there, and with little patience.

Its libraries try again for a minute and more, which is right in mid-study and too long for a mistyped name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from study.location import access_hint, is_client_error, is_remote

PATIENCE_S = 15.0
"""So long a store may take to answer the first question."""


class StoreAccessError(ValueError):
    """An object store that cannot be reached, that lets nobody in, or that has no such bucket: its URL and a remedy."""


def require_bucket(place: Path, otherwise: str = "name another place") -> None:
    """Check that the bucket of ``place`` is there; nothing for a folder.

    Raises:
        StoreAccessError: it is not, or the store cannot be asked. ``otherwise``: what one could do beside making it.
    """
    if is_remote(place) and not _asked(place, _path(place)) and not _has_bucket(place):
        raise _no_bucket(place, otherwise)


def is_there(folder: Path, name: str) -> bool:
    """Whether ``folder`` has a file, a folder or an object of that name.

    Raises:
        StoreAccessError: the store cannot be asked, or has no such bucket.
        OSError: the disk cannot be asked.
    """
    if not is_remote(folder):
        return (folder / name).exists()
    if _asked(folder, _path(folder / name)):
        return True
    if _has_bucket(folder):
        return False
    raise _no_bucket(folder, "name another place")


def refused_by_store(place: Path, error: Exception) -> StoreAccessError | None:
    """What to tell of ``error`` if the store of ``place`` raised it, or what it was raised from; else None."""
    cause: BaseException | None = error if is_remote(place) else None
    while cause is not None and not is_client_error(cause):
        cause = cause.__cause__
    if cause is None:
        return None
    told = " ".join(f"{type(cause).__name__}: {cause}".split())
    return StoreAccessError(
        f"{place}: the store does not answer as it should ({told}); {access_hint(place)}; once this is mended the same "
        "command goes on"
    )


def _has_bucket(place: Path) -> bool:
    try:
        return _asked(place, _path(place).split("/")[0])
    except StoreAccessError as error:
        if isinstance(error.__cause__, PermissionError):  # it may be that only a folder of it is ours
            return True
        raise


def _no_bucket(place: Path, otherwise: str) -> StoreAccessError:
    return StoreAccessError(f"{place}: there is no such bucket; make it, or {otherwise}")


def _asked(place: Path, key: str) -> bool:
    """Whether the store of ``place`` has something at ``key``."""
    store: Any = place.fs  # type: ignore[attr-defined]  # of a UPath
    if not store.async_impl:  # one that lies in memory
        return store.protocol == "memory" or bool(store.exists(key))
    from fsspec.asyn import sync

    try:
        sync(store.loop, store._info, key, timeout=PATIENCE_S)
    except FileNotFoundError:
        return False
    except TimeoutError as error:
        raise _refusal(place, f"no answer within {PATIENCE_S:g} s") from error
    except (OSError, ValueError) as error:
        raise _refusal(place, str(error) or type(error).__name__) from error
    except Exception as error:
        if not is_client_error(error):
            raise
        raise _refusal(place, str(error) or type(error).__name__) from error
    return True


def _refusal(place: Path, cause: str) -> StoreAccessError:
    return StoreAccessError(f"{place}: the store cannot be read ({' '.join(cause.split())}); {access_hint(place)}")


def _path(place: Path) -> str:
    return str(place.path)  # type: ignore[attr-defined]  # of a UPath
