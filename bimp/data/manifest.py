"""The manifest of a prepared folder: what it holds, from what it was made, and the fingerprint of the data."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from bimp.data.errors import DataError

FORMAT = 1
MANIFEST = "manifest.json"
POSITIONAL_ENCODINGS = "pos_enc"
DERIVED = frozenset({POSITIONAL_ENCODINGS})
"""Tensors that follow from the others. Eigenvectors differ in their last bits between machines, and of an eigenvalue
that occurs twice even the directions do: a fingerprint with them would name the machine, not the data."""
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
        maker: which of the dataset's sources made it; "" in manifests of earlier versions.
        parameters: what the source was asked for, such as seed and size.
        raw_sha256: name and checksum of each raw file that was read.
        labels: what carries a label: ``graph``, ``node`` or ``edge``.
        folds: number of cross-validation folds; None: one split.
        tensors: every tensor by name.
        statistics: :class:`bimp.data.statistics.DatasetStatistics` as plain values, for those who read no tensors;
            empty in manifests of earlier versions.
    """

    dataset: str
    origin: str
    parameters: Mapping[str, int]
    raw_sha256: Mapping[str, str]
    labels: str
    folds: int | None
    tensors: Mapping[str, StoredTensor]
    maker: str = ""
    statistics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that name the graphs and the splits.

        The same data has the same fingerprint on every machine and at any time, however it was got: neither paths and
        raw files nor the origin enter, nor what follows from the graphs (:data:`DERIVED`).
        """
        identity = {
            "format": FORMAT,
            "dataset": self.dataset,
            "labels": self.labels,
            "folds": self.folds,
            "tensors": {name: asdict(stored) for name, stored in self.tensors.items() if name not in DERIVED},
        }
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write ``manifest.json`` and force it to the disk."""
    plain = {"format": FORMAT, "fingerprint": manifest.fingerprint, **asdict(manifest)}
    with (folder / MANIFEST).open("x", encoding="utf-8") as file:
        json.dump(plain, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def read_manifest(folder: Path) -> Manifest:
    """The manifest in ``folder``.

    Raises:
        DataError: it is missing, no manifest, of another format version, or was edited.
    """
    path = folder / MANIFEST
    mend = f"{how_to_mend(folder)} with the options that it was made with"
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


def how_to_mend(folder: Path, made: Manifest | None = None) -> str:
    """The end of every error about a prepared folder; with its manifest the command makes the same data again."""
    return f"run {prepare_command(folder, *(_options(made) if made else ()), '--force')}"


def prepare_command(folder: Path, *options: str) -> str:
    """The command that prepares the dataset of ``folder`` there, as a message gives it to be pasted."""
    return f"`{shlex.join(('run_study.py', 'prepare', folder.name, '--data', str(folder.parent), *options))}`"


def _options(made: Manifest) -> Iterator[str]:
    """Without them a preparation anew would make a dataset of the published size, on which no trial goes on."""
    if made.maker:
        yield from ("--maker", made.maker)
    for name, value in made.parameters.items():
        yield from (f"--{name}", str(value))
    if POSITIONAL_ENCODINGS in made.tensors:
        yield from ("--pos-enc", str(made.tensors[POSITIONAL_ENCODINGS].shape[1]))


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
        maker=plain.get("maker", ""),
        statistics=plain.get("statistics", {}),
    )
