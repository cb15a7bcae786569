"""File systems that are full, read-only or away: small ones in memory, which only root can mount."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """A disk of its own at ``place``; gone when the block ends.

    Raises:
        PermissionError: this user may not mount one.
    """
    place.mkdir(parents=True)
    _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place))
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=False, capture_output=True)


@contextmanager
def read_only(place: Path) -> Iterator[None]:
    """Let nothing at ``place`` be written, as a disk that its server made read-only; what is open stays open.

    Raises:
        PermissionError: this user may not mount.
    """
    _mount("--bind", str(place), str(place))
    try:
        _mount("-o", "remount,bind,ro", str(place))
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=False, capture_output=True)


def fill(place: Path) -> Path:
    """Fill the disk to its last byte, with one file, whose path is returned."""
    ballast = place / "ballast"
    # Unbuffered, or closing it would write once more.
    with ballast.open("wb", buffering=0) as file:
        for size in (2**20, 2**12, 1):
            with suppress(OSError):
                while file.write(bytes(size)):
                    pass
    return ballast


def _mount(*arguments: str) -> None:
    answer = subprocess.run(["mount", *arguments], check=False, capture_output=True, text=True)
    if answer.returncode:
        raise PermissionError(f"mount {' '.join(arguments)}: {answer.stderr.strip()}")
