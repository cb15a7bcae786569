"""As many threads as a trial was given cores: set in a worker's environment before a library starts its pool."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""What PyTorch, NumPy and SciPy read, once, when they are loaded."""


def thread_variables(cores: int) -> dict[str, str]:
    """The environment of a process whose libraries are to use so many threads.

    What the user has set for the driver does not stand here: a study file says how many cores a trial has.
    """
    return dict.fromkeys(THREAD_VARIABLES, str(cores))


@contextmanager
def variables_set(variables: Mapping[str, str]) -> Iterator[None]:
    """Set ``variables`` in this process's environment, which what it starts meanwhile takes over; then as before."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
