"""TSP from tours: given in the benchmark's text format, or found by fast-tsp for points that are drawn.

A node is a point of the unit square, its inputs the two coordinates. Each node points to its 25 nearest; the edge
input is the distance, the label 1 where the tour joins the two, in either direction.

The benchmark's tours are optimal for whole-number distances, which often tie: on the same points they share 86 to
100 % of their edges with the shortest tour by Euclidean distance that is drawn here.
"""

from __future__ import annotations

import math
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bimp.data.errors import DataError
from bimp.data.extras import require_extra
from bimp.data.packed import PackedGraphs
from bimp.data.parallel import work_through
from bimp.data.point_graphs import PointGraph, distances, nearest_neighbours, pack_point_graphs
from bimp.data.raw import checksums
from bimp.data.source import (
    SPLIT_NAMES,
    Parameters,
    Source,
    SourceGraphs,
    SplitName,
    consecutive_splits,
    drawn_parameters,
    given_parameters,
    sizes_for,
)
from bimp.data.tour_text import Instance, read_tours

NEIGHBOURS = 25
FEWEST, MOST = 50, 500
DEFAULT_SIZE = 10_000
LENGTH_UNIT = 1 / 46_000
"""The solver takes whole distances of two bytes: the diagonal of the unit square, in this unit, just fits."""
SHARES = (10, 1, 1)
"""How a file of all instances is cut, in its order: as the benchmark's 10,000, 1,000 and 1,000."""


def tour_graph(instance: Instance) -> tuple[PointGraph, NDArray[np.uint8]]:
    """The graph of one instance, and for each edge whether it is on the tour."""
    points, tour = instance
    edge_index, distance = nearest_neighbours(points, NEIGHBOURS)
    place = np.empty(len(tour), dtype=np.int64)
    place[tour] = np.arange(len(tour))
    apart = np.abs(place[edge_index[0]] - place[edge_index[1]])
    joined = (apart == 1) | (apart == len(tour) - 1)
    return (points.astype(np.float32), edge_index, distance), joined.astype(np.uint8)


class TourFiles(Source):
    """TSP from text files: ``*_train.txt``, ``*_val.txt`` and ``*_test.txt``; or a single one.

    A single file is cut in its order into ten parts to train on, one to validate and one to test.
    """

    name = "tsp"
    maker = "tours"

    def parameters(self, seed: int | None, size: int | None) -> Parameters:
        """Size, where there are to be fewer instances to train on than there are in the files.

        Raises:
            DataError: a seed or a size below 1.
        """
        return given_parameters(self.name, seed, size, None)

    def recognises(self, raw: Path) -> bool:
        """Whether there is a text file."""
        return bool(_text_files(raw))

    def raw_files(self, raw: Path) -> tuple[Path, ...]:
        """The text files of ``raw``, ``raw/tsp`` or ``raw/raw``: train, val and test, or a single one.

        Raises:
            DataError: neither.
        """
        paths = _text_files(raw)
        if len(paths) == 1:
            return tuple(paths)
        by_split = [[path for path in paths if split in path.stem.split("_")] for split in SPLIT_NAMES]
        if [len(found) for found in by_split] != [1, 1, 1]:
            names = ", ".join(path.name for path in paths) or "no text file"
            raise DataError(
                f"{raw}: found {names}, expected a single file *.txt of tours, or *_train.txt, *_val.txt and "
                "*_test.txt; run `run_study.py prepare tsp --from PATH` with the folder that holds them"
            )
        return tuple(found[0] for found in by_split)

    def build(
        self, parameters: Parameters, *, raw: Path | None, trust: bool, workspace: Path, processes: int
    ) -> SourceGraphs:
        """Make the graphs; see :meth:`bimp.data.source.Source.build`."""
        if raw is None:
            raise DataError(
                "tsp: found no folder of tours, expected one; run `run_study.py prepare tsp --maker tours --from PATH`"
            )
        paths = self.raw_files(raw)
        instances = [read_tours(path) for path in paths]
        if len(paths) == 1:
            instances = _cut(instances[0], paths[0])
        available: dict[SplitName, int] = {name: len(part) for name, part in zip(SPLIT_NAMES, instances, strict=True)}
        sizes = sizes_for(parameters.get("size"), available)
        if parameters.get("size", 0) > available["train"]:
            raise DataError(
                f"{paths[0]}: found {available['train']} instances to train on, expected size={parameters['size']}"
            )
        chosen = [each for name, part in zip(SPLIT_NAMES, instances, strict=True) for each in part[: sizes[name]]]
        return SourceGraphs(
            graphs=_pack(chosen, processes),
            splits=consecutive_splits(sizes),
            origin=f"made from {', '.join(path.name for path in paths)}",
            raw_sha256=checksums(paths),
        )


class Tours(Source):
    """TSP by seed and size: 50 to 500 points drawn uniformly from the unit square, tours of fast-tsp.

    Every instance has a random stream of its own, so the points of a smaller dataset are the beginning of a larger one.
    The search for a tour is given a time that grows with the number of points; the tour is the shortest that was found
    in it, so that on another machine, or one with more to do, a few may differ.
    """

    name = "tsp"
    maker = "generated"
    drawn = True

    def parameters(self, seed: int | None, size: int | None) -> Parameters:
        """Seed (default 0) and size (default 10,000, as published).

        Raises:
            DataError: a negative seed or a size below 1.
        """
        return drawn_parameters(self.name, seed, size, DEFAULT_SIZE)

    def build(
        self, parameters: Parameters, *, raw: Path | None, trust: bool, workspace: Path, processes: int
    ) -> SourceGraphs:
        """Draw the points and find the tours; see :meth:`bimp.data.source.Source.build`."""
        require_extra(self.name, "fast_tsp", "fast-tsp", "tsp")
        seed, sizes = parameters["seed"], sizes_for(parameters["size"])
        streams = [(seed, split, number) for split, size in enumerate(sizes.values()) for number in range(size)]
        instances = work_through(drawn_instance, streams, processes, worth=2)
        return SourceGraphs(
            graphs=_pack(instances, processes),
            splits=consecutive_splits(sizes),
            origin=f"points drawn uniformly, seed {seed}; tours of fast-tsp {version('fast-tsp')}",
        )


def drawn_instance(stream: tuple[int, int, int]) -> Instance:
    """The instance of one random stream: (seed, number of the split, number in it)."""
    rng = np.random.default_rng(stream)
    points = rng.random((rng.integers(FEWEST, MOST + 1), 2))
    return points, near_optimal_tour(points)


def near_optimal_tour(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """The shortest tour by Euclidean distance that fast-tsp finds in its time.

    Args:
        points: ``[nodes, 2]`` in the unit square.
    """
    import fast_tsp  # an optional extra

    lengths = np.rint(distances(points) / LENGTH_UNIT).astype(np.int64)
    # 0.2 s for 200 nodes, 1 s for 350, 3 s for 500: enough to come within 0.001 % of the best that is known.
    seconds = max(0.02, 0.2 * (len(points) / 200) ** 3)
    return np.array(fast_tsp.find_tour(lengths, seconds), dtype=np.int64)


def _pack(instances: list[Instance], processes: int) -> PackedGraphs:
    made = work_through(tour_graph, instances, processes)
    return pack_point_graphs([graph for graph, _ in made], np.concatenate([labels for _, labels in made]), "edge")


def _cut(instances: list[Instance], path: Path) -> list[list[Instance]]:
    held_out = math.floor(len(instances) * SHARES[-1] / sum(SHARES))
    if held_out < 1:
        raise DataError(f"{path}: found {len(instances)} instances, expected {sum(SHARES)} or more to cut into splits")
    train = len(instances) - 2 * held_out
    return [instances[:train], instances[train:-held_out], instances[-held_out:]]


def _text_files(raw: Path) -> list[Path]:
    for folder in (raw, raw / "tsp", raw / "raw"):
        paths = sorted(folder.glob("*.txt"))
        if paths:
            return paths
    return []
