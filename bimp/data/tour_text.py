"""The benchmark's text format of travelling salesman instances and their tours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bimp.data.errors import DataError

Instance = tuple[NDArray[np.float64], NDArray[np.int64]]
"""Points ``[nodes, 2]``, and the tour: each node once, in the order of the visit."""


def read_tours(path: Path) -> list[Instance]:
    """Instances of a text file, one a line: ``x y x y ... output i j ... i``, nodes counted from 1.

    Raises:
        DataError: no instance, or a line that is cut or of another format, by its number.
    """
    instances = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            instances.append(_parse(line))
        except ValueError as error:
            raise DataError(
                f"{path}:{number}: found {error}, expected `x y x y ... output i j ... i` with every node once and the "
                "first again at the end; get the file again"
            ) from error
    if not instances:
        raise DataError(f"{path}: found no instance, expected one a line: `x y x y ... output i j ... i`")
    return instances


def _parse(line: str) -> Instance:
    coordinates, word, visits = line.partition("output")
    if not word:
        raise ValueError("no word `output`")
    numbers = np.array([float(entry) for entry in coordinates.split()])
    tour = np.array([int(entry) - 1 for entry in visits.split()], dtype=np.int64)
    if numbers.size % 2 or numbers.size < 4 or not np.isfinite(numbers).all():
        raise ValueError(f"{numbers.size} coordinates")
    nodes = numbers.size // 2
    if tour.size != nodes + 1 or tour[0] != tour[-1] or not np.array_equal(np.sort(tour[:-1]), np.arange(nodes)):
        raise ValueError(f"a tour of {tour.size} entries over {nodes} nodes")
    return numbers.reshape(-1, 2), tour[:-1]
