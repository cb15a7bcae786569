"""Memory that ran out under a trial: told apart from faults of the code, and what would help.

Ray's memory monitor, and the kernel's, take the worker itself; of these the driver hears (``study.dispatch``).
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from typing import Literal

import torch

from bimp.config import TrialConfig

MemoryPlace = Literal["gpu", "host"]
"""Where memory ran out; a trial that is run again alone has that for itself: one GPU, or a whole node."""

TITLES: dict[MemoryPlace, str] = {"gpu": "GPU memory", "host": "host memory"}
ALONE: dict[MemoryPlace, str] = {"gpu": "a GPU to itself", "host": "a node to itself"}

_GPU_SAYS = re.compile(
    # A cuBLAS that finds no memory for its handle calls itself not initialised.
    r"CUDA(?:(?: driver)? error:)? out of memory|"
    r"CUBLAS_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)|CUDNN_STATUS_ALLOC_FAILED"
)
_HOST_SAYS = re.compile(r"DefaultCPUAllocator: (?:can't|not enough)|unable to mmap \d+ bytes|Cannot allocate memory")
_LONGEST_CAUSE = 600


@dataclass(frozen=True)
class OutOfMemory:
    """Memory ran out at ``place``; ``cause`` is who said so, in one line."""

    place: MemoryPlace
    cause: str


def out_of_memory(error: BaseException | None) -> OutOfMemory | None:
    """What of memory ``error``, or what it was raised from, speaks of; None if of something else.

    PyTorch has an error of its own for a GPU, and a RuntimeError that only its text tells apart for the host.
    """
    while error is not None:
        place = _place(error)
        if place is not None:
            return OutOfMemory(place, one_line(error))
        error = error.__cause__
    return None


def one_line(error: BaseException) -> str:
    """The error's kind and the first line of what it says."""
    text = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(": ")
    return text if len(text) <= _LONGEST_CAUSE else text[:_LONGEST_CAUSE] + " ..."


def _place(error: BaseException) -> MemoryPlace | None:
    if isinstance(error, torch.OutOfMemoryError):
        return "gpu"
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return "host"
    if isinstance(error, RuntimeError):
        # A Linux that refuses memory to a GPU's driver says so of the host in the same words: the GPU is asked first.
        for place, words in (("gpu", _GPU_SAYS), ("host", _HOST_SAYS)):
            if words.search(str(error)):
                return "gpu" if place == "gpu" else "host"
    return None


def said_beside_others(memory: OutOfMemory) -> str:
    """What happens to a trial that ran out of memory beside others, and what keeps that from happening."""
    fewer = {
        "gpu": "a larger resources.gpus_per_trial packs fewer trials on a GPU",
        "host": "a larger resources.cpus_per_trial, or a smaller max_concurrent, keeps fewer trials on a node",
    }[memory.place]
    return (
        f"out of {TITLES[memory.place]} ({memory.cause}); it goes on from its last checkpoint once it can have "
        f"{ALONE[memory.place]}; {fewer}"
    )


def failed_alone(memory: OutOfMemory, config: TrialConfig) -> str:
    """Why a trial failed that had the memory to itself, and what would help."""
    size = f"hidden_dim (here {config.model.hidden_dim}) or budget"
    larger = {"gpu": "or a GPU with more memory", "host": "or a node with more memory"}[memory.place]
    return (
        f"out of {TITLES[memory.place]}, even with {ALONE[memory.place]} ({memory.cause}); what would help: a smaller "
        f"batch_size (here {config.train.batch_size}), a smaller {size}, fewer layers (here {config.model.layers}), "
        f"{larger}"
    )
