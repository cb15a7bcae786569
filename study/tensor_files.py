"""Checkpoints and weights as they lie on disk: a file that was cut or has a wrong byte is told from a whole one."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from typing import Any

import torch

_CAUSES = (
    *(EOFError, RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError),
    *(pickle.UnpicklingError, struct.error, zipfile.BadZipFile),
)
"""What zipfile and torch raise of a damaged file, and of one that holds something else."""


class DamagedFileError(ValueError):
    """The bytes are no file that was written whole, or hold more than tensors and plain values."""


def to_bytes(content: dict[str, Any]) -> bytes:
    """Tensors and plain values as a file of PyTorch, with a checksum of each part."""
    # Into memory first: of a disk that gets full under it, torch.save says nothing that tells it from a fault.
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def from_bytes(stored: bytes) -> Any:
    """What :func:`to_bytes` was given, in main memory; no code in the file is run.

    Raises:
        DamagedFileError: of other bytes.
    """
    content = io.BytesIO(stored)
    try:
        # torch.load looks at no checksum: a wrong byte in a tensor would be a wrong number.
        with zipfile.ZipFile(content) as file:
            damaged = file.testzip()
        if damaged is not None:
            raise DamagedFileError(f"wrong checksum of {damaged}")
        content.seek(0)
        return torch.load(content, map_location="cpu", weights_only=True)
    except _CAUSES as error:
        if isinstance(error, DamagedFileError):
            raise
        raise DamagedFileError(type(error).__name__) from error
