"""Named tensors on disk: one raw file each and a manifest, mapped into memory rather than read.

A folder holds ``manifest.json`` and ``NAME.bin`` for every tensor (little-endian, as the tensor lies in memory). The
manifest keeps each file's checksum. Hashing all files for each of a thousand trials would cost more than the trials
read, so ``verified.json`` remembers for which state of each file (its ctime, which no program can set back) the
checksum was found right; a file in another state is hashed again before it is used.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor

from bimp.data.errors import DataError
from bimp.data.manifest import DTYPES, Manifest, StoredTensor, how_to_mend

VERIFIED = "verified.json"
SETTLED_AFTER_NS = 2_000_000_000
"""A file that changed less than this before it was hashed is hashed again: file systems' clocks tick coarsely."""


def tensor_path(folder: Path, name: str) -> Path:
    """The file of the tensor ``name``."""
    return folder / f"{name}.bin"


def write_tensor(folder: Path, name: str, tensor: Tensor) -> StoredTensor:
    """Write ``tensor`` and force it to the disk."""
    array = tensor.contiguous().numpy()
    content = array.data.cast("B") if array.size else b""
    with tensor_path(folder, name).open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return StoredTensor(
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
        sha256=hashlib.sha256(content).hexdigest(),
    )


def map_tensors(folder: Path, manifest: Manifest) -> dict[str, Tensor]:
    """Every tensor, mapped privately: pages are shared by all processes, what a process writes stays its own.

    Raises:
        DataError: a file is missing or has another size than the manifest says.
    """
    tensors = {}
    for name, stored in manifest.tensors.items():
        _check_size(folder, name, manifest)
        dtype = DTYPES[stored.dtype]
        if stored.numel:
            flat = torch.from_file(str(tensor_path(folder, name)), shared=False, size=stored.numel, dtype=dtype)
        else:
            flat = torch.empty(0, dtype=dtype)  # nothing can be mapped of an empty file
        tensors[name] = flat.view(stored.shape)
    return tensors


def verify(folder: Path, manifest: Manifest, *, all_files: bool) -> None:
    """Hash the files that changed since they were last found right, or every file, and remember the outcome.

    Raises:
        DataError: a file is missing, or its size or content is not the manifest's.
    """
    remembered = {} if all_files else _read_verified(folder, manifest)
    started = time.time_ns()
    states = {}
    for name, stored in manifest.tensors.items():
        path = tensor_path(folder, name)
        # Taken before the hashing: a change during it must not pass for verified.
        states[name] = _check_size(folder, name, manifest)
        if remembered.get(name) == states[name]:
            continue
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != stored.sha256:
            raise DataError(
                f"{path}: found SHA-256 {found[:16]}..., expected {stored.sha256[:16]}...: "
                f"the file was altered; {how_to_mend(folder, manifest)}"
            )
    settled = {name: state for name, state in states.items() if started - state > SETTLED_AFTER_NS}
    if remembered != settled:
        _write_verified(folder, manifest, settled)


def sync_folder(folder: Path) -> None:
    """Force the entries of ``folder`` (new and renamed files) to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def link_or_copy(source: Path, target: Path) -> None:
    """Give the file ``source`` a second name, or copy it where that cannot be; what is at ``target`` goes."""
    # A copy over a name of another file would write into that.
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:  # some file systems have no links, and none leads from one to another
        shutil.copyfile(source, target)


@contextlib.contextmanager
def taking_the_place_of(target: Path) -> Iterator[tuple[Path, Path]]:
    """An empty folder that takes the place of ``target`` when all went well, and a workspace; the lock is ours.

    What a killed process left behind is cleared. Of a ``target`` that is a link the link alone goes.
    """
    root = target.parent
    unfinished, replaced = root / f".{target.name}.unfinished", root / f".{target.name}.replaced"
    for leftover in (unfinished, replaced):
        _remove(leftover)
    folder, workspace = unfinished / target.name, unfinished / "workspace"
    folder.mkdir(parents=True)
    workspace.mkdir()
    try:
        yield folder, workspace
        sync_folder(folder)
        if target.exists():
            target.replace(replaced)
        folder.replace(target)
        sync_folder(root)
    except OSError as error:
        if error.filename is None:  # a disk that gets full does not say which it is
            error.filename = str(target)
        raise
    finally:
        _remove(unfinished)
        _remove(replaced)


def _remove(folder: Path) -> None:
    """Remove what is left of a folder, a file in its place, or a link: what that leads to may be others' data."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink(missing_ok=True)
    else:
        shutil.rmtree(folder, ignore_errors=True)


def _check_size(folder: Path, name: str, manifest: Manifest) -> int:
    """The file's ctime in nanoseconds, once its size is known to be right."""
    path, stored = tensor_path(folder, name), manifest.tensors[name]
    try:
        status = path.stat()
    except FileNotFoundError:
        raise DataError(
            f"{path}: found no file, expected {stored.bytes} bytes; {how_to_mend(folder, manifest)}"
        ) from None
    if status.st_size != stored.bytes:
        raise DataError(
            f"{path}: found {status.st_size} bytes, expected {stored.bytes}; {how_to_mend(folder, manifest)}"
        )
    return status.st_ctime_ns


def _read_verified(folder: Path, manifest: Manifest) -> dict[str, int]:
    try:
        plain = json.loads((folder / VERIFIED).read_text(encoding="utf-8"))
        return dict(plain["files"]) if plain["fingerprint"] == manifest.fingerprint else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # no memory, or a broken one: everything is hashed


def _write_verified(folder: Path, manifest: Manifest, states: Mapping[str, int]) -> None:
    # A folder that cannot be written to is still good data; it is then hashed at every opening.
    with contextlib.suppress(OSError):
        temporary = folder / f".{VERIFIED}.{uuid.uuid4().hex}"
        text = json.dumps({"fingerprint": manifest.fingerprint, "files": states})
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(folder / VERIFIED)
        finally:
            temporary.unlink(missing_ok=True)  # a full disk takes a name and no content
