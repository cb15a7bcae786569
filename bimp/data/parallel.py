"""The same work for many things, in one process or in several."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

Thing = TypeVar("Thing")
Result = TypeVar("Result")

WORTH_A_PROCESS = 64
"""Fewer things than this for each process are not worth its start, which takes seconds."""


def available_processes() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def work_through(
    function: Callable[[Thing], Result], things: Sequence[Thing], processes: int, worth: int = WORTH_A_PROCESS
) -> list[Result]:
    """``function`` of every thing, in their order.

    Args:
        function: of a module, so that other processes find it.
        things: what is worked through.
        processes: how many processes at most.
        worth: things below which a process is not worth its start.
    """
    processes = min(processes, len(things) // worth)
    if processes < 2:
        return [function(thing) for thing in things]
    # Not forked: a fork of a process with torch's threads can hang.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        chunk = max(1, len(things) // (processes * 16))
        return list(pool.map(function, things, chunksize=chunk))
