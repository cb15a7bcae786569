import gzip
import pickle
from pathlib import Path

import numpy as np
import pytest
from image_files import blobs, write_cifar, write_idx, write_mnist

from bimp.data import DataError, images
from bimp.data.images import cifar_files, mnist_files, read_cifar, read_mnist


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MNIST_COUNTS", {"train": 8, "test": 4})
    monkeypatch.setattr(images, "CIFAR_COUNTS", {"train": 10, "test": 2})


@pytest.mark.parametrize("packed", [False, True])
def test_mnist_packed_or_not(tmp_path: Path, packed: bool) -> None:
    folder = write_mnist(tmp_path / "mnist", packed=packed)
    train, test = read_mnist(mnist_files("smnist", (folder,)))
    np.testing.assert_array_equal(train.images, blobs(8, 28, 1, seed=8))
    np.testing.assert_array_equal(test.images, blobs(4, 28, 1, seed=4))
    assert (train.labels.tolist(), test.labels.tolist()) == ([0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3])


def test_cifar(tmp_path: Path) -> None:
    train, test = read_cifar(cifar_files("cifar10", (write_cifar(tmp_path / "cifar"),)))
    assert train.images.shape == (10, 32, 32, 3)
    np.testing.assert_array_equal(train.images[2:4], blobs(2, 32, 3, seed=1))
    np.testing.assert_array_equal(test.images, blobs(2, 32, 3, seed=5))
    assert (train.labels.tolist(), test.labels.tolist()) == ([0, 1, 1, 2, 2, 3, 3, 4, 4, 5], [5, 6])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    folder = write_mnist(tmp_path / "mnist", packed=True)
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataError, match=r"t10k-labels-idx1-ubyte\.gz: found no file"):
        mnist_files("smnist", (folder,))
    with pytest.raises(DataError, match=r"data_batch_1: found no file"):
        cifar_files("cifar10", (folder,))


NAME = "train-images-idx3-ubyte"


def broken_mnist(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name}: ") as caught:
        read_mnist(mnist_files("smnist", (folder,)))
    assert "expected" in str(caught.value) or "get it again" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_cut_and_foreign_idx_files_are_named(tmp_path: Path) -> None:
    folder = write_mnist(tmp_path / "mnist")
    good = (folder / NAME).read_bytes()
    for content in (b"", good[:3], good[:10], good[:-1], good + b"x", b"PK\x03\x04" + good[4:]):
        broken_mnist(folder, NAME, content)
    broken_mnist(folder, NAME, (folder / "t10k-images-idx3-ubyte").read_bytes())  # whole, but of 4 images


def test_a_cut_archive_and_foreign_labels_are_named(tmp_path: Path) -> None:
    folder = write_mnist(tmp_path / "mnist", packed=True)
    good = (folder / f"{NAME}.gz").read_bytes()
    for content in (good[:-20], b"no gzip", gzip.compress(b"")):
        broken_mnist(folder, f"{NAME}.gz", content)
    (folder / f"{NAME}.gz").write_bytes(good)
    write_idx(folder / "train-labels-idx1-ubyte.gz", np.full(8, 10, dtype=np.uint8))
    with pytest.raises(DataError, match=r"train-labels-idx1-ubyte\.gz: found labels 10 to 10, expected 0 to 9"):
        read_mnist(mnist_files("smnist", (folder,)))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no pickle",
        pickle.dumps([1]),
        pickle.dumps({b"labels": [1]}),
        pickle.dumps({b"data": np.zeros((2, 5), dtype=np.uint8), b"labels": [1, 2]}),
    ],
)
def test_a_foreign_pickle_is_named(tmp_path: Path, content: bytes) -> None:
    folder = write_cifar(tmp_path / "cifar")
    (folder / "data_batch_3").write_bytes(content)
    with pytest.raises(DataError, match=r"data_batch_3: found a file that is cut or not of CIFAR10's Python version"):
        read_cifar(cifar_files("cifar10", (folder,)))


def test_another_number_of_images_is_named(tmp_path: Path) -> None:
    folder = write_cifar(tmp_path / "cifar")
    (folder / "test_batch").write_bytes(
        pickle.dumps({b"data": np.zeros((1, 3072), dtype=np.uint8), b"labels": [1]}),
    )
    with pytest.raises(DataError, match=r"test_batch: found 1 images in its split, expected 2"):
        read_cifar(cifar_files("cifar10", (folder,)))
