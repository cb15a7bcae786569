"""A prepared dataset goes into a store once, and comes out whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
import torch
from upath import UPath

from bimp.data import DataError, open_prepared, prepare
from bimp.data.manifest import read_manifest
from bimp.data.transfer import pull_prepared, put_prepared, version_of

PULL = """
import sys
from pathlib import Path
from bimp.data.transfer import pull_prepared
pull_prepared(Path(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    prepare("digits", root)
    return root


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder; or, by ``@objects``, a store of objects that has the methods of a path and nothing else."""
    if getattr(request, "param", "folder") == "folder":
        yield tmp_path / "store"
        return
    place = UPath(f"memory://{uuid.uuid4().hex}/results/data")
    yield cast("Path", place)
    place.fs.rm(place.parent.parent.path, recursive=True)


objects = pytest.mark.parametrize("store", ["folder", "objects"], indirect=True)


def content(folder: Path) -> dict[str, bytes]:
    names = [*(f"{name}.bin" for name in read_manifest(folder).tensors), "manifest.json"]
    return {name: (folder / name).read_bytes() for name in names}


@objects
def test_what_is_pulled_is_what_was_put(data: Path, store: Path, tmp_path: Path) -> None:
    version = put_prepared(data / "digits", store)
    assert version == read_manifest(data / "digits").fingerprint
    pull_prepared(store / version / "digits", tmp_path / "node" / version / "digits")
    assert content(tmp_path / "node" / version / "digits") == content(data / "digits")
    pulled, original = open_prepared("digits", tmp_path / "node" / version, verify=True), open_prepared("digits", data)
    assert torch.equal(pulled.graphs.x, original.graphs.x)
    assert [path.name for path in (tmp_path / "node" / version).iterdir()] == ["digits"]


@objects
def test_it_is_put_once(data: Path, store: Path) -> None:
    version = put_prepared(data / "digits", store)
    manifest = store / version / "digits" / "manifest.json"
    before = manifest.stat()
    assert put_prepared(data / "digits", store) == version
    assert manifest.stat().st_mtime == before.st_mtime


@objects
def test_what_was_put_by_half_is_put_anew(data: Path, store: Path, tmp_path: Path) -> None:
    version = put_prepared(data / "digits", store)
    place = store / version / "digits"
    (place / "manifest.json").unlink()
    (place / "x.bin").unlink()
    (place / "x.bin").write_bytes(b"cut")
    with pytest.raises(DataError, match="found no whole dataset, expected what the driver put there"):
        pull_prepared(place, tmp_path / "node" / "digits")
    put_prepared(data / "digits", store)
    pull_prepared(place, tmp_path / "node" / "digits")
    assert content(tmp_path / "node" / "digits") == content(data / "digits")


def test_mending_the_store_never_writes_into_the_driver_s_own_files(data: Path, tmp_path: Path) -> None:
    """Within one disk both are names of the same file."""
    mine = tmp_path / "mine"
    shutil.copytree(data, mine)
    before = content(mine / "digits")
    version = put_prepared(mine / "digits", tmp_path / "store")
    place = tmp_path / "store" / version / "digits"
    assert (place / "x.bin").samefile(mine / "digits" / "x.bin")
    (place / "manifest.json").unlink()
    put_prepared(mine / "digits", tmp_path / "store")
    assert content(mine / "digits") == before


@objects
def test_an_altered_file_is_refused_and_leaves_no_dataset(data: Path, store: Path, tmp_path: Path) -> None:
    version = put_prepared(data / "digits", store)
    place = store / version / "digits"
    altered = bytearray((place / "edge_index.bin").read_bytes())
    altered[-1] ^= 1
    (place / "edge_index.bin").unlink()
    (place / "edge_index.bin").write_bytes(bytes(altered))
    target = tmp_path / "node" / "digits"
    with pytest.raises(DataError, match=rf"^{re.escape(str(place))}/edge_index.bin: found SHA-256 .* expected "):
        pull_prepared(place, target)
    assert list(target.parent.iterdir()) == []


def test_a_pull_that_is_killed_leaves_no_dataset_and_the_next_one_succeeds(data: Path, tmp_path: Path) -> None:
    version = put_prepared(data / "digits", tmp_path / "store")
    place, target = tmp_path / "store" / version / "digits", tmp_path / "node" / "digits"
    last = f"{list(read_manifest(place).tensors)[-1]}.bin"
    kept = (place / last).read_bytes()
    (place / last).unlink()
    os.mkfifo(place / last)  # whoever reads it waits until somebody writes
    pulling = subprocess.Popen([sys.executable, "-c", PULL, str(place), str(target)])
    with (place / last).open("wb"):  # opens once it is read: all files before are there
        pulling.send_signal(signal.SIGKILL)
        assert pulling.wait(timeout=60) == -signal.SIGKILL
    left = target.parent / ".digits.unfinished" / "digits"
    assert (left / "x.bin").exists(), "it was killed in the middle"
    assert not target.exists()

    (place / last).unlink()
    (place / last).write_bytes(kept)
    pull_prepared(place, target)
    assert content(target) == content(data / "digits")
    assert [path.name for path in target.parent.iterdir()] == ["digits"]


def test_a_node_s_folder_that_cannot_be_written_is_named(data: Path, tmp_path: Path) -> None:
    version = put_prepared(data / "digits", tmp_path / "store")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match=rf"^{tmp_path}/file/digits: cannot be written \(Not a dir.* in BIMP_DATA$"):
        pull_prepared(tmp_path / "store" / version / "digits", tmp_path / "file" / "digits")


def test_a_store_that_refuses_is_an_error_of_the_store(data: Path, tmp_path: Path) -> None:
    """It may be tried again, which a full disk of the node may not."""
    version = put_prepared(data / "digits", tmp_path / "store")
    place = tmp_path / "store" / version / "digits"
    (place / "x.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"x\.bin"):
        pull_prepared(place, tmp_path / "node" / "digits")
    assert list((tmp_path / "node").iterdir()) == []


def test_encodings_have_no_part_in_the_fingerprint_but_in_the_version(data: Path, tmp_path: Path) -> None:
    prepare("digits", tmp_path, positional_encodings=2)
    plain, encoded = read_manifest(data / "digits"), read_manifest(tmp_path / "digits")
    assert plain.fingerprint == encoded.fingerprint == version_of(plain)
    assert version_of(encoded) == f"{plain.fingerprint}-{encoded.tensors['pos_enc'].sha256[:8]}"
