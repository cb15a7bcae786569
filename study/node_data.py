"""The prepared data on the nodes of a cluster, which may not see the driver's data folder.

The driver puts every dataset of the study into the store, beside the results. A trial takes it from the first place
that has the very files: the driver's data folder, where the node sees it; the node's own, ``BIMP_DATA``; a cache, into
which it is pulled under a lock, so that of all trials of a node one pulls.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from bimp.data import DataError, PreparedDataset, open_prepared
from bimp.data.manifest import read_manifest
from bimp.data.transfer import pull_prepared, version_of

DATA_VARIABLE = "BIMP_DATA"
"""A node's own data folder; on a cluster best on a disk of the node."""

STORE_FOLDER = "data"
"""Within the results."""


def open_on_node(
    name: str, root: Path, version: str, store: Path, environment: Mapping[str, str] = os.environ
) -> PreparedDataset:
    """Open the dataset of this version where it is, or pull it first.

    Args:
        name: of the dataset.
        root: the driver's data folder, which this node may see.
        version: of :func:`bimp.data.transfer.version_of`.
        store: where :func:`bimp.data.transfer.put_prepared` put it.
        environment: of this process.

    Raises:
        DataError: it is not whole in the store, or the node's folder cannot be written.
        OSError: the store refuses.
    """
    own = environment.get(DATA_VARIABLE)
    for folder in (root, *([Path(own)] if own else [])):
        if _has(folder / name, version):
            return open_prepared(name, folder)
    cache = cache_folder(environment) / version
    with _locked(cache / name):
        if not _opens(name, cache):
            pull_prepared(store / version / name, cache / name)
        return open_prepared(name, cache)


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where this node keeps what it pulled, one folder a version; it may be removed while no study runs."""
    own = environment.get(DATA_VARIABLE)
    if own:
        return Path(own) / "pulled"
    caches = environment.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "bimp-study" / "data"


def _has(folder: Path, version: str) -> bool:
    try:
        return version_of(read_manifest(folder)) == version
    except (DataError, OSError):
        return False


def _opens(name: str, cache: Path) -> bool:
    """Whether it was pulled, and nothing has damaged it since."""
    try:
        open_prepared(name, cache)
    except DataError:
        return False
    return True


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Keep other trials of the node from pulling at the same time; a process that dies lets go."""
    lock = FileLock(target.parent / f".{target.name}.lock")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:
        raise DataError(
            f"{target}: cannot be written ({error.strerror}); name another folder of this node for data in "
            f"{DATA_VARIABLE}"
        ) from error
    try:
        yield
    finally:
        lock.release()
