"""Small stand-ins for the image files of MNIST and CIFAR10."""

from __future__ import annotations

import gzip
import pickle
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bimp.data import images

MNIST_TRAIN, MNIST_TEST = 8, 4


def write_idx(path: Path, array: NDArray[np.uint8]) -> None:
    header = struct.pack(f">{1 + array.ndim}I", 0x800 + array.ndim, *array.shape)
    path.write_bytes(gzip.compress(header + array.tobytes()) if path.suffix == ".gz" else header + array.tobytes())


def blobs(count: int, side: int, colours: int, seed: int) -> NDArray[np.uint8]:
    """Dark images with one bright rectangle each, and noise: ``[count, side, side, colours]``."""
    rng = np.random.default_rng(seed)
    made = rng.integers(0, 30, size=(count, side, side, colours), dtype=np.uint8)
    for image in made:
        top, left = rng.integers(0, side // 2, size=2)
        image[top : top + side // 3, left : left + side // 3] = rng.integers(150, 256, size=colours, dtype=np.uint8)
    return made


def write_mnist(folder: Path, *, packed: bool = False) -> Path:
    folder.mkdir(parents=True)
    suffix = ".gz" if packed else ""
    for part, count in (("train", MNIST_TRAIN), ("t10k", MNIST_TEST)):
        write_idx(folder / f"{part}-images-idx3-ubyte{suffix}", blobs(count, 28, 1, seed=count)[..., 0])
        write_idx(folder / f"{part}-labels-idx1-ubyte{suffix}", np.arange(count, dtype=np.uint8) % 10)
    return folder


def write_cifar(folder: Path) -> Path:
    """Six pickles of two images each; labels 0, 1 in the first batch, 1, 2 in the second and so on."""
    folder.mkdir(parents=True)
    for number, name in enumerate(images.CIFAR_NAMES):
        rows = blobs(2, 32, 3, seed=number).transpose(0, 3, 1, 2).reshape(2, -1)
        content = {b"data": rows, b"labels": [number, number + 1], b"batch_label": name.encode()}
        (folder / name).write_bytes(pickle.dumps(content))
    return folder
