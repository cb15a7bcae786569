"""Reading what ``torch.save`` wrote: a file that was cut or has a wrong byte is told from a whole one."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import IO, Any

import torch

from bimp.data.raw import UNREADABLE

CUT_OR_FOREIGN: tuple[type[Exception], ...] = (*UNREADABLE, OSError, struct.error, zipfile.BadZipFile)
"""What :func:`load_tensors` raises of a file that is not whole, not of PyTorch, or holds more than it takes."""


class WrongByteError(ValueError):
    """A part of a file does not have its checksum; names the part."""


def load_tensors(file: Path | IO[bytes]) -> Any:
    """Tensors and plain values, in main memory; no code in the file is run.

    ``torch.load`` looks at no checksum, so that a wrong byte would be another number, without a word.

    Raises:
        WrongByteError: a part is not what was written. Files of before PyTorch 1.6 have no checksums.
        Exception: one of :data:`CUT_OR_FOREIGN`.
    """
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as parts:
            damaged = parts.testzip()
        if damaged is not None:
            raise WrongByteError(f"wrong checksum of {damaged}")
    if not isinstance(file, Path):
        file.seek(0)
    return torch.load(file, map_location="cpu", weights_only=True)
