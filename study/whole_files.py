"""Files that are written whole or not at all, in a folder or in an object store, and what else both must be asked for.

In a folder a file takes its name when it is whole; an object store knows nothing but whole objects.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from study.location import is_remote


class replacing:  # noqa: N801 - used as a verb: ``with replacing(path) as temporary``
    """A temporary file that takes the place of ``path`` when the block ends well, and vanishes when it does not.

    Args:
        path: the file to write.
        durable: be certain, when the block has ended, that content and name outlive a loss of power.
    """

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        self._path = path
        self._durable = durable

    def __enter__(self) -> Path:
        folder = None if is_remote(self._path) else self._path.parent
        handle, name = tempfile.mkstemp(dir=folder, prefix=f".{self._path.name}.", suffix=".tmp")
        os.close(handle)
        self._temporary = Path(name)
        # mkstemp's file is its owner's alone; results are read by colleagues and other nodes.
        self._temporary.chmod(0o666 & ~_umask())
        return self._temporary

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        try:
            if kind is not None:
                return
            if is_remote(self._path):
                _store(self._path).put_file(str(self._temporary), _key(self._path))
                return
            if self._durable:
                _sync(self._temporary)
            self._temporary.replace(self._path)
            if self._durable:
                _sync(self._path.parent)
        finally:
            self._temporary.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` so that a reader sees the old file or the new one, never a part."""
    if is_remote(path):
        _store(path).pipe_file(_key(path), content)
        return
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def create_once(path: Path, content: bytes) -> bool:
    """Write ``content`` to ``path`` if nothing is there; False if something is, whoever else tries at the same time."""
    try:
        if is_remote(path):
            _store(path).pipe_file(_key(path), content, mode="create")
            return True
        with path.open("xb") as stream:
            stream.write(content)
    except FileExistsError:
        return False
    return True


def make_folder(path: Path) -> None:
    """Make the folder ``path`` and its parents where they are missing; an object store has no folders to make."""
    if not is_remote(path):
        path.mkdir(parents=True, exist_ok=True)


def remove_folder(path: Path) -> None:
    """Remove ``path`` with all that it holds, as far as that can be done; a part that stays does no harm."""
    if not is_remote(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(FileNotFoundError):
        _store(path).rm(_key(path), recursive=True)


def move(source: Path, target: Path) -> None:
    """Give the file ``source`` the name ``target``, in the same folder or store, over what is there."""
    if is_remote(source):
        _store(source).mv(_key(source), _key(target))
    else:
        source.replace(target)


@dataclass(frozen=True)
class FoundFile:
    """A file as a listing showed it.

    Attributes:
        path: of the file.
        modified: when it was written, in Unix seconds by the clock of its disk or store.
        stamp: differs whenever the file was written anew.
    """

    path: Path
    modified: float
    stamp: tuple[object, ...]


def found_files(folder: Path) -> list[FoundFile]:
    """Every file below ``folder``, at any depth, ordered by path; none where there is no folder.

    Hidden files, which are being written, are left out. An object store is asked once for a thousand files.

    Raises:
        NotADirectoryError: it is a file.
    """
    found = list(_found_objects(folder) if is_remote(folder) else _found_on_disk(folder))
    return sorted(found, key=lambda file: str(file.path))


def read_all(paths: Sequence[Path]) -> list[bytes | Exception]:
    """The content of every one of ``paths``, which lie in one store, or why it cannot be read."""
    if not paths or not is_remote(paths[0]):
        return [_content(path) for path in paths]
    # One at a time, a thousand objects would be a thousand times the way to the store and back.
    contents = _store(paths[0]).cat([_key(path) for path in paths], on_error="return")
    if isinstance(contents, bytes):  # of a single one
        return [contents]
    return [contents[_key(path)] for path in paths]


def stamp(path: Path) -> tuple[object, ...]:
    """As :attr:`FoundFile.stamp`.

    Raises:
        FileNotFoundError: there is no such file.
    """
    if is_remote(path):
        return _stamp_of_object(_store(path).info(_key(path)))
    return _stamp_of_file(path.stat())


def _found_on_disk(folder: Path) -> Iterator[FoundFile]:
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:  # never was, or is gone since it was listed
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _found_on_disk(Path(entry.path))
            continue
        with suppress(FileNotFoundError):
            status = entry.stat()
            yield FoundFile(Path(entry.path), status.st_mtime, _stamp_of_file(status))


def _found_objects(folder: Path) -> Iterator[FoundFile]:
    store, top = _store(folder), _key(folder)
    for key, info in store.find(top, detail=True).items():
        below = key[len(top) :].lstrip("/")
        if not any(part.startswith(".") for part in below.split("/")):
            modified = info.get("LastModified") or info.get("mtime") or info.get("created") or 0.0
            seconds = modified.timestamp() if isinstance(modified, datetime) else float(modified)
            yield FoundFile(folder / below, seconds, _stamp_of_object(info))


def _stamp_of_file(status: os.stat_result) -> tuple[object, ...]:
    return status.st_mtime_ns, status.st_size, status.st_ino


def _stamp_of_object(info: dict[str, Any]) -> tuple[object, ...]:
    # S3 calls it ETag, Google Cloud Storage etag; what lies in memory has a time alone.
    return info.get("ETag") or info.get("etag") or str(info.get("created")), info.get("size")


def _content(path: Path) -> bytes | Exception:
    try:
        return path.read_bytes()
    except OSError as error:
        return error


def _store(path: Path) -> Any:
    return path.fs  # type: ignore[attr-defined]  # of a UPath


def _key(path: Path) -> str:
    return str(path.path)  # type: ignore[attr-defined]  # of a UPath


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
