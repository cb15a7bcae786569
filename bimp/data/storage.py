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
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bimp.data.errors import DataError

FORMAT = 1
MANIFEST = "manifest.json"
VERIFIED = "verified.json"
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.uint8, torch.int16, torch.int32, torch.int64, torch.float32)
}


@dataclass(frozen=True, kw_only=True)
class StoredTensor:
    """One tensor's file: type and shape of the tensor, SHA-256 of the file."""

    dtype: str
    shape: tuple[int, ...]
    sha256: str

    @property
    def numel(self) -> int:
        """Number of elements."""
        return torch.Size(self.shape).numel()

    @property
    def bytes(self) -> int:
        """Size of the file."""
        return self.numel * DTYPES[self.dtype].itemsize


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a prepared folder holds.

    Attributes:
        dataset: its name.
        origin: one line for people: where graphs and splits come from.
        parameters: what the source was asked for, such as seed and size.
        raw_sha256: name and checksum of each raw file that was read.
        labels: what carries a label: ``graph``, ``node`` or ``edge``.
        folds: number of cross-validation folds; None: one split.
        tensors: every tensor by name.
    """

    dataset: str
    origin: str
    parameters: Mapping[str, int]
    raw_sha256: Mapping[str, str]
    labels: str
    folds: int | None
    tensors: Mapping[str, StoredTensor]

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that name the graphs and the splits.

        The same data has the same fingerprint on every machine and at any time, however it was got: neither paths and
        raw files nor the origin enter.
        """
        identity = {
            "format": FORMAT,
            "dataset": self.dataset,
            "labels": self.labels,
            "folds": self.folds,
            "tensors": {name: asdict(stored) for name, stored in self.tensors.items()},
        }
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


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


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write ``manifest.json`` and force it and the folder's entries to the disk."""
    plain = {"format": FORMAT, "fingerprint": manifest.fingerprint, **asdict(manifest)}
    with (folder / MANIFEST).open("x", encoding="utf-8") as file:
        json.dump(plain, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    sync_folder(folder)


def read_manifest(folder: Path) -> Manifest:
    """The manifest in ``folder``.

    Raises:
        DataError: it is missing, no manifest, of another format version, or was edited.
    """
    path = folder / MANIFEST
    mend = _mend(folder)
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: found no file, expected a prepared dataset; {mend}") from None
    except ValueError as error:
        raise DataError(f"{path}: found no valid JSON ({error}); {mend}") from error
    version = plain.get("format") if isinstance(plain, dict) else None
    if version != FORMAT:
        raise DataError(f"{path}: found format {version}, expected {FORMAT}; {mend}")
    try:
        manifest, fingerprint = _manifest_from(plain), plain["fingerprint"]
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: found no complete manifest ({error!r}); {mend}") from error
    if manifest.fingerprint != fingerprint:
        raise DataError(
            f"{path}: found fingerprint {fingerprint}, expected {manifest.fingerprint} of its entries: "
            f"it was edited; {mend}"
        )
    if manifest.dataset != folder.name:
        raise DataError(f"{path}: found the dataset {manifest.dataset!r}, expected {folder.name!r}; {mend}")
    return manifest


def map_tensors(folder: Path, manifest: Manifest) -> dict[str, Tensor]:
    """Every tensor, mapped privately: pages are shared by all processes, what a process writes stays its own.

    Raises:
        DataError: a file is missing or has another size than the manifest says.
    """
    tensors = {}
    for name, stored in manifest.tensors.items():
        _check_size(folder, name, stored)
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
    states = {}
    for name, stored in manifest.tensors.items():
        path = tensor_path(folder, name)
        # Taken before the hashing: a change during it must not pass for verified.
        states[name] = _check_size(folder, name, stored)
        if remembered.get(name) == states[name]:
            continue
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != stored.sha256:
            raise DataError(
                f"{path}: found SHA-256 {found[:16]}..., expected {stored.sha256[:16]}...: "
                f"the file was altered; {_mend(folder)}"
            )
    if remembered != states:
        _write_verified(folder, manifest, states)


def sync_folder(folder: Path) -> None:
    """Force the entries of ``folder`` (new and renamed files) to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_size(folder: Path, name: str, stored: StoredTensor) -> int:
    """The file's ctime in nanoseconds, once its size is known to be right."""
    path = tensor_path(folder, name)
    try:
        status = path.stat()
    except FileNotFoundError:
        raise DataError(f"{path}: found no file, expected {stored.bytes} bytes; {_mend(folder)}") from None
    if status.st_size != stored.bytes:
        raise DataError(f"{path}: found {status.st_size} bytes, expected {stored.bytes}; {_mend(folder)}")
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
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(folder / VERIFIED)


def _manifest_from(plain: Mapping[str, Any]) -> Manifest:
    tensors = {
        name: StoredTensor(dtype=stored["dtype"], shape=tuple(stored["shape"]), sha256=stored["sha256"])
        for name, stored in plain["tensors"].items()
    }
    for stored in tensors.values():
        DTYPES[stored.dtype]
    return Manifest(
        dataset=plain["dataset"],
        origin=plain["origin"],
        parameters=plain["parameters"],
        raw_sha256=plain["raw_sha256"],
        labels=plain["labels"],
        folds=plain["folds"],
        tensors=tensors,
    )


def _mend(folder: Path) -> str:
    return f"run `run_study.py prepare {folder.name} --force`"
