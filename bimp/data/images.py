"""Image files placed by hand: MNIST in its idx format, packed by gzip or not, and CIFAR10 in its Python pickles."""

from __future__ import annotations

import gzip
import math
import pickle
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bimp.data.errors import DataError
from bimp.data.raw import UNREADABLE, any_file, find_files

IMAGES_MAGIC, LABELS_MAGIC = 0x00000803, 0x00000801
CIFAR_SIDE, CIFAR_COLOURS = 32, 3

MNIST_NAMES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
CIFAR_NAMES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
MNIST_COUNTS = {"train": 60_000, "test": 10_000}
CIFAR_COUNTS = {"train": 50_000, "test": 10_000}


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Images ``[images, height, width, colours]`` from 0 to 255, and the class of each, ``[images]`` from 0 to 9."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]


def mnist_seen(folders: Sequence[Path]) -> bool:
    """Whether a file of MNIST lies in one of the folders."""
    return any_file(folders, (*MNIST_NAMES, *(f"{name}.gz" for name in MNIST_NAMES)))


def mnist_files(dataset: str, folders: Sequence[Path]) -> tuple[Path, ...]:
    """The four files of MNIST in the first folder that has any, all packed by gzip or none.

    Raises:
        DataError: one is missing.
    """
    packed = tuple(f"{name}.gz" for name in MNIST_NAMES)
    return find_files(dataset, folders, MNIST_NAMES if any_file(folders, MNIST_NAMES) else packed)


def read_mnist(paths: tuple[Path, ...]) -> tuple[LabelledImages, LabelledImages]:
    """The images to train on and those to test, from :func:`mnist_files`.

    Raises:
        DataError: a file that is cut, of another format, or of another number of images than MNIST's.
    """
    parts = []
    for part, count in enumerate(MNIST_COUNTS.values()):
        images = _read_idx(paths[2 * part], IMAGES_MAGIC, count)
        labels = _read_idx(paths[2 * part + 1], LABELS_MAGIC, count)
        parts.append(LabelledImages(images[..., None], _classes(paths[2 * part + 1], labels)))
    return parts[0], parts[1]


def cifar_seen(folders: Sequence[Path]) -> bool:
    """Whether a file of CIFAR10 lies in one of the folders."""
    return any_file(folders, CIFAR_NAMES)


def cifar_files(dataset: str, folders: Sequence[Path]) -> tuple[Path, ...]:
    """The six pickles of CIFAR10.

    Raises:
        DataError: one is missing.
    """
    return find_files(dataset, folders, CIFAR_NAMES)


def read_cifar(paths: tuple[Path, ...]) -> tuple[LabelledImages, LabelledImages]:
    """The images to train on and those to test, from :func:`cifar_files`. Runs what is in the pickles.

    Raises:
        DataError: a file that is cut, of another format, or of another number of images than CIFAR10's.
    """
    batches = [_read_cifar_batch(path) for path in paths]
    train = LabelledImages(
        np.concatenate([batch.images for batch in batches[:-1]]),
        np.concatenate([batch.labels for batch in batches[:-1]]),
    )
    for images, count, path in zip((train, batches[-1]), CIFAR_COUNTS.values(), (paths[0], paths[-1]), strict=True):
        if len(images.labels) != count:
            raise DataError(f"{path}: found {len(images.labels)} images in its split, expected {count}; get it again")
    return train, batches[-1]


def _read_idx(path: Path, magic: int, count: int) -> NDArray[np.uint8]:
    """The array of an idx file: a big-endian header of magic number and sizes, then bytes."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: found a file that is cut or not packed by gzip ({error}); get it again") from error
    dimensions = magic & 0xFF
    size = 4 * (1 + dimensions)
    if len(content) < size or int.from_bytes(content[:4], "big") != magic:
        found = content[:4].hex() if len(content) >= size else f"{len(content)} bytes"
        raise DataError(f"{path}: found {found} at its beginning, expected {magic:08x} as in MNIST's idx files")
    shape = tuple(np.frombuffer(content[4:size], dtype=">u4").tolist())
    body = len(content) - size
    expected = math.prod((count, *shape[1:]))
    if shape[0] != count or body != expected:
        raise DataError(
            f"{path}: found {body} bytes for {shape[0]} items, expected {expected} for {count}; the file is cut or of "
            "another dataset; get it again"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=size).reshape(shape)


def _read_cifar_batch(path: Path) -> LabelledImages:
    try:
        with path.open("rb") as file:
            content = pickle.load(file, encoding="bytes")
        rows = np.asarray(content[b"data"], dtype=np.uint8)
        labels = np.asarray(content[b"labels"])
        images = rows.reshape(len(labels), CIFAR_COLOURS, CIFAR_SIDE, CIFAR_SIDE).transpose(0, 2, 3, 1)
    except UNREADABLE as error:
        raise DataError(
            f"{path}: found a file that is cut or not of CIFAR10's Python version ({type(error).__name__}: {error}), "
            "expected a pickled dict of data and labels; get it again"
        ) from error
    return LabelledImages(images, _classes(path, labels))


def _classes(path: Path, labels: NDArray[np.integer]) -> NDArray[np.int64]:
    if labels.size and (labels.min() < 0 or labels.max() > 9):
        raise DataError(f"{path}: found labels {labels.min()} to {labels.max()}, expected 0 to 9; get the file again")
    return labels.astype(np.int64)
