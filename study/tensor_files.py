"""Checkpoints and weights as they lie on disk."""

from __future__ import annotations

import io
from typing import Any

import torch

from bimp.data.torch_files import CUT_OR_FOREIGN, WrongByteError, load_tensors


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
    try:
        return load_tensors(io.BytesIO(stored))
    except WrongByteError as error:
        raise DamagedFileError(str(error)) from error
    except CUT_OR_FOREIGN as error:
        raise DamagedFileError(type(error).__name__) from error
