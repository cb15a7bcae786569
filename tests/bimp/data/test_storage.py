import errno
import hashlib
import json
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from bimp.data import DataError, open_prepared, prepare, storage
from bimp.data.manifest import Manifest, read_manifest, write_manifest
from bimp.data.storage import map_tensors, verify, write_tensor

TENSORS = {
    "bytes": torch.tensor([[1, 2, 255]], dtype=torch.uint8),
    "offsets": torch.tensor([0, 2**40]),
    "floats": torch.rand(3, 4).t(),
    "nothing": torch.empty((2, 0), dtype=torch.int16),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "cluster"
    folder.mkdir()
    stored = {name: write_tensor(folder, name, tensor) for name, tensor in TENSORS.items()}
    manifest = Manifest(
        dataset="cluster",
        origin="a test",
        parameters={"seed": 1},
        raw_sha256={},
        labels="graph",
        folds=None,
        tensors=stored,
    )
    write_manifest(folder, manifest)
    return folder


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)


def test_round_trip_without_warnings(folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mapped = map_tensors(folder, read_manifest(folder))
    assert list(mapped) == list(TENSORS)
    for name, tensor in TENSORS.items():
        assert mapped[name].dtype == tensor.dtype
        assert torch.equal(mapped[name], tensor)


def test_a_write_to_a_mapped_tensor_does_not_reach_the_file(folder: Path) -> None:
    manifest = read_manifest(folder)
    mapped = map_tensors(folder, manifest)
    mapped["offsets"].fill_(-1)
    mapped["floats"].mul_(2)
    assert torch.equal(map_tensors(folder, manifest)["offsets"], TENSORS["offsets"])
    verify(folder, manifest, all_files=True)


def test_checksums_are_those_of_the_files(folder: Path) -> None:
    for name, stored in read_manifest(folder).tensors.items():
        assert stored.sha256 == hashlib.sha256((folder / f"{name}.bin").read_bytes()).hexdigest()


def test_a_cut_file_is_named(folder: Path) -> None:
    with (folder / "offsets.bin").open("r+b") as file:
        file.truncate(9)
    with pytest.raises(DataError, match=r"offsets\.bin: found 9 bytes, expected 16; .*--force"):
        map_tensors(folder, read_manifest(folder))


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "floats.bin").unlink()
    with pytest.raises(DataError, match=r"floats\.bin: found no file, expected 48 bytes; .*--force"):
        map_tensors(folder, read_manifest(folder))


def test_an_altered_file_is_named(folder: Path) -> None:
    manifest = read_manifest(folder)
    flip_a_byte(folder / "floats.bin")
    with pytest.raises(DataError, match=r"floats\.bin: found SHA-256 .* was altered; .*--force"):
        verify(folder, manifest, all_files=True)


def test_only_files_that_changed_are_hashed_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = read_manifest(folder)
    monkeypatch.setattr(storage, "SETTLED_AFTER_NS", -(10**12))
    verify(folder, manifest, all_files=False)
    hashed: list[str] = []
    digest = hashlib.file_digest

    def counted(file: Any, name: str) -> Any:
        hashed.append(Path(file.name).name)
        return digest(file, name)

    monkeypatch.setattr(hashlib, "file_digest", counted)
    verify(folder, manifest, all_files=False)
    assert hashed == []
    memory = json.loads((folder / "verified.json").read_text())
    memory["files"]["bytes"] -= 1  # as if the file had changed since; its ctime itself cannot be set
    (folder / "verified.json").write_text(json.dumps(memory))
    verify(folder, manifest, all_files=False)
    assert hashed == ["bytes.bin"]
    verify(folder, manifest, all_files=False)
    assert hashed == ["bytes.bin"]
    verify(folder, manifest, all_files=True)
    assert len(hashed) == 1 + len(TENSORS)


def test_a_file_that_changed_just_now_is_not_remembered(folder: Path) -> None:
    verify(folder, read_manifest(folder), all_files=False)
    assert not (folder / "verified.json").exists()


def test_a_file_altered_after_it_was_verified_is_named_though_its_date_is_set_back(folder: Path) -> None:
    manifest = read_manifest(folder)
    verify(folder, manifest, all_files=False)
    status = (folder / "floats.bin").stat()
    flip_a_byte(folder / "floats.bin")
    os.utime(folder / "floats.bin", ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(DataError, match=r"floats\.bin"):
        verify(folder, manifest, all_files=False)


@pytest.mark.parametrize("content", ["", "[]", '{"fingerprint": 3}', '{"files": [1], "fingerprint": "x"}'])
def test_a_broken_memory_of_what_was_verified_is_not_believed(folder: Path, content: str) -> None:
    (folder / "verified.json").write_text(content)
    flip_a_byte(folder / "floats.bin")
    with pytest.raises(DataError, match=r"floats\.bin"):
        verify(folder, read_manifest(folder), all_files=False)


def edited(folder: Path, **changes: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "found format 2, expected 1"),
        ({"labels": "node"}, "it was edited"),
        ({"fingerprint": "0" * 16}, "found fingerprint 0000000000000000"),
        ({"tensors": {"x": {"shape": [1]}}}, "no complete manifest"),
        ({"tensors": {"x": {"dtype": "int65", "shape": [1], "sha256": ""}}}, "no complete manifest"),
        ({"tensors": []}, "no complete manifest"),
    ],
)
def test_a_foreign_or_edited_manifest_is_named(folder: Path, changes: dict[str, Any], message: str) -> None:
    edited(folder, **changes)
    mend = f"prepare cluster --data {folder.parent} --force`"
    with pytest.raises(DataError, match=rf"manifest\.json: .*{message}.*{mend}"):
        read_manifest(folder)


def test_a_manifest_that_is_missing_or_no_json_is_named(folder: Path) -> None:
    (folder / "manifest.json").write_text("{")
    with pytest.raises(DataError, match=r"manifest\.json: found no valid JSON"):
        read_manifest(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(DataError, match=r"manifest\.json: found no file"):
        read_manifest(folder)


def test_a_folder_under_another_name_is_refused(folder: Path) -> None:
    with pytest.raises(DataError, match="found the dataset 'cluster', expected 'zinc'"):
        read_manifest(folder.rename(folder.parent / "zinc"))


def test_the_fingerprint_depends_on_data_and_not_on_origin(folder: Path) -> None:
    manifest = read_manifest(folder)
    edited(folder, origin="elsewhere", parameters={}, raw_sha256={"file": "0"})
    assert read_manifest(folder).fingerprint == manifest.fingerprint


def test_opening_names_an_altered_file(tmp_path: Path) -> None:
    prepare("cluster", tmp_path, size=2)
    flip_a_byte(tmp_path / "cluster/y.bin")
    with pytest.raises(DataError, match=r"y\.bin: .*altered"):
        open_prepared("cluster", tmp_path)


def test_a_full_disk_gets_no_file_for_what_it_cannot_remember(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(folder.iterdir())

    def full(self: Path, *_: Any, **__: Any) -> None:
        self.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    monkeypatch.setattr(storage, "SETTLED_AFTER_NS", -1)
    verify(folder, read_manifest(folder), all_files=False)
    assert sorted(folder.iterdir()) == before
