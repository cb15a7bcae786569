"""A prepared dataset on its way to machines that do not see its folder: put into a store, pulled and checked there.

A store is a folder or anything else with the methods of a path (an object store, as universal_pathlib shows it). In it,
as on the machine that pulls, a dataset lies in ``VERSION/NAME``: each version is a data folder of its own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from bimp.data.errors import DataError
from bimp.data.manifest import MANIFEST, POSITIONAL_ENCODINGS, Manifest, read_manifest, write_manifest
from bimp.data.storage import link_or_copy, taking_the_place_of, tensor_path

BLOCK_BYTES = 8 * 2**20
"""How much is read and written at once."""

_ANEW = "remove its folder and start the study again, which puts it there anew"


def version_of(manifest: Manifest) -> str:
    """Names the content of every file: the fingerprint, and a checksum of encodings, which that leaves out."""
    encodings = manifest.tensors.get(POSITIONAL_ENCODINGS)
    return manifest.fingerprint if encodings is None else f"{manifest.fingerprint}-{encodings.sha256[:8]}"


def put_prepared(folder: Path, store: Path) -> str:
    """Copy the prepared ``folder`` into ``store`` unless it is there, and give its version.

    The manifest goes last: until it is there, nothing is. Where the store is a folder on the same disk, files are not
    copied but get a second name.

    Raises:
        DataError: ``folder`` holds no prepared dataset.
        OSError: the store refuses.
    """
    manifest = read_manifest(folder)
    version = version_of(manifest)
    place = store / version / manifest.dataset
    if not _is_whole(place, manifest):
        if isinstance(place, Path):  # an object store has no folders to make
            place.mkdir(parents=True, exist_ok=True)
        for name in manifest.tensors:
            _put(tensor_path(folder, name), tensor_path(place, name))
        _put(folder / MANIFEST, place / MANIFEST)
    return version


def pull_prepared(place: Path, target: Path) -> None:
    """Copy what :func:`put_prepared` left in ``place`` to the folder ``target``; the caller holds the lock of that.

    ``target`` takes its name when every checksum was found right; what a killed process left of it is cleared.

    Raises:
        DataError: nothing whole is in ``place``, a file has another content than the manifest says, or ``target``
            cannot be written.
        OSError: the store refuses.
    """
    try:
        manifest = read_manifest(place)
    except DataError as error:
        raise DataError(f"{place}: found no whole dataset, expected what the driver put there; {_ANEW}") from error
    try:
        with taking_the_place_of(target) as (folder, _):
            for name, stored in manifest.tensors.items():
                _pull(tensor_path(place, name), tensor_path(folder, name), stored.sha256)
            write_manifest(folder, manifest)
    except _StoreError as refusal:
        raise refusal.error from refusal
    except OSError as error:
        raise DataError(
            f"{target}: cannot be written ({error.strerror}); name another folder of this node for data in BIMP_DATA"
        ) from error


class _StoreError(Exception):
    """The store refused, not the disk that is written to."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


def _is_whole(place: Path, manifest: Manifest) -> bool:
    try:
        return read_manifest(place) == manifest and all(
            tensor_path(place, name).stat().st_size == stored.bytes for name, stored in manifest.tensors.items()
        )
    except (DataError, FileNotFoundError):
        return False


def _put(source: Path, target: Path) -> None:
    if isinstance(target, Path):
        link_or_copy(source, target)
        return
    with source.open("rb") as reader, target.open("wb") as writer:
        shutil.copyfileobj(reader, writer, BLOCK_BYTES)


def _pull(source: Path, target: Path, sha256: str) -> None:
    digest = hashlib.sha256()
    with target.open("xb") as file:
        for block in _blocks(source):
            digest.update(block)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    if digest.hexdigest() != sha256:
        raise DataError(
            f"{source}: found SHA-256 {digest.hexdigest()[:16]}..., expected {sha256[:16]}...: the file was altered; "
            f"{_ANEW}"
        )


def _blocks(source: Path) -> Iterator[bytes]:
    try:
        with source.open("rb") as reader:
            while block := reader.read(BLOCK_BYTES):
                yield block
    except OSError as error:
        raise _StoreError(error) from error
