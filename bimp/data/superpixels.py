"""SMNIST and CIFAR10 made from image files: superpixels of scikit-image's SLIC, joined by distance.

SLIC is asked for somewhat more segments than a graph may have nodes, and for one fewer until there are few enough. A
node is a superpixel; its inputs are its mean colour (0 to 1) and its centre of mass by row and column, divided by the
image's height and width. Each node points to its 8 heaviest neighbours (:func:`heaviest_neighbours`, on the centres);
the edge input is the weight.

SLIC has changed since the benchmark's graphs were made: today's have somewhat fewer nodes. They are graphs of the same
kind, not the same graphs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bimp.data.errors import DataError
from bimp.data.extras import require_extra
from bimp.data.images import (
    LabelledImages,
    cifar_files,
    cifar_seen,
    mnist_files,
    mnist_seen,
    read_cifar,
    read_mnist,
)
from bimp.data.parallel import work_through
from bimp.data.point_graphs import PointGraph, heaviest_neighbours, pack_point_graphs
from bimp.data.raw import checksums, require_trust
from bimp.data.source import Parameters, Sizes, Source, SourceGraphs, consecutive_splits, given_parameters, sizes_for

NEIGHBOURS = 8
FULL = 255.0
HELD_OUT = 5_000
"""Images to validate on: the first of those to train on."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How images become superpixels.

    Attributes:
        most_nodes: superpixels of an image at most.
        more_at_first: how many more SLIC is asked for at first.
        compactness: SLIC's weight of distance against colour.
    """

    most_nodes: int
    more_at_first: int
    compactness: float


RECIPES = {
    "smnist": Recipe(most_nodes=75, more_at_first=20, compactness=0.25),
    "cifar10": Recipe(most_nodes=150, more_at_first=50, compactness=10.0),
}


def superpixel_graph(image: NDArray[np.uint8], recipe: Recipe) -> PointGraph:
    """The graph of one image.

    Args:
        image: ``[height, width, colours]`` from 0 to 255, of one or three colours.
        recipe: how it becomes superpixels.

    Returns:
        x ``[nodes, colours + 2]`` (mean colour, row, column), edge_index ``[2, edges]``, weight ``[edges, 1]``.
    """
    colours = image / FULL
    segments, nodes = _segments(colours, recipe)
    pixels = np.bincount(segments, minlength=nodes)
    flat = colours.reshape(-1, colours.shape[-1])
    places = np.indices(image.shape[:2]).reshape(2, -1).T / np.array(image.shape[:2])
    columns = np.concatenate([flat, places], axis=1).T
    x = np.stack([np.bincount(segments, weights=column, minlength=nodes) / pixels for column in columns], axis=1)
    return x.astype(np.float32), *heaviest_neighbours(x[:, -2:], NEIGHBOURS)


def _segments(colours: NDArray[np.float64], recipe: Recipe) -> tuple[NDArray[np.int64], int]:
    """The superpixel of each pixel in reading order, counted from 0 without gaps, and how many there are."""
    # Here and not above: a worker that opens prepared data need not load scikit-image.
    from skimage.segmentation import slic

    asked = recipe.most_nodes + recipe.more_at_first
    grey = colours.shape[-1] == 1
    while True:
        labels = slic(
            colours[..., 0] if grey else colours,
            n_segments=asked,
            compactness=recipe.compactness,
            channel_axis=None if grey else -1,
            start_label=0,
        )
        found, segments = np.unique(labels, return_inverse=True)
        if len(found) <= recipe.most_nodes:
            return segments.reshape(-1).astype(np.int64), len(found)
        asked -= 1


@dataclass(frozen=True)
class Superpixels(Source):
    """SMNIST from MNIST's files, or CIFAR10 from its Python pickles; the benchmark's split.

    Attributes:
        name: ``smnist`` or ``cifar10``.
    """

    name: Literal["smnist", "cifar10"]
    maker = "images"

    def parameters(self, seed: int | None, size: int | None) -> Parameters:
        """Size, where there are to be fewer images than published: the first ones of each split.

        Raises:
            DataError: a seed, or a size that there is not.
        """
        return given_parameters(self.name, seed, size, self._available["train"])

    def recognises(self, raw: Path) -> bool:
        """Whether one of the image files lies there."""
        return (mnist_seen if self.name == "smnist" else cifar_seen)(self._folders(raw))

    def raw_files(self, raw: Path) -> tuple[Path, ...]:
        """Four idx files, or six pickles, in ``raw`` or a folder below it.

        Raises:
            DataError: one is missing.
        """
        return (mnist_files if self.name == "smnist" else cifar_files)(self.name, self._folders(raw))

    def build(
        self, parameters: Parameters, *, raw: Path | None, trust: bool, workspace: Path, processes: int
    ) -> SourceGraphs:
        """Make the graphs; see :meth:`bimp.data.source.Source.build`."""
        if raw is None:
            raise DataError(
                f"{self.name}: found no folder of images, expected one; "
                f"run `run_study.py prepare {self.name} --maker images --from PATH`"
            )
        require_extra(self.name, "skimage", "scikit-image", "superpixels")
        paths = self.raw_files(raw)
        if self.name == "smnist":
            train, test = read_mnist(paths)
        else:
            require_trust(self.name, paths[0], trust)
            train, test = read_cifar(paths)
        sizes = sizes_for(parameters.get("size"), self._available)
        images = [
            *train.images[HELD_OUT : HELD_OUT + sizes["train"]],
            *train.images[: sizes["val"]],
            *test.images[: sizes["test"]],
        ]
        graphs = work_through(partial(superpixel_graph, recipe=RECIPES[self.name]), images, processes)
        return SourceGraphs(
            graphs=pack_point_graphs(graphs, _labels(train, test, sizes), "graph"),
            splits=consecutive_splits(sizes),
            origin=f"image files through SLIC of scikit-image {version('scikit-image')}, not the benchmark's graphs",
            raw_sha256=checksums(paths),
        )

    @property
    def _available(self) -> Sizes:
        return {"train": 55_000 if self.name == "smnist" else 45_000, "val": HELD_OUT, "test": 10_000}

    def _folders(self, raw: Path) -> tuple[Path, ...]:
        if self.name == "smnist":
            return (raw, raw / "raw", raw / "MNIST/raw", raw / "mnist/raw")
        return (raw, raw / "cifar-10-batches-py", raw / "raw")


def _labels(train: LabelledImages, test: LabelledImages, sizes: Sizes) -> NDArray[np.int64]:
    return np.concatenate(
        [
            train.labels[HELD_OUT : HELD_OUT + sizes["train"]],
            train.labels[: sizes["val"]],
            test.labels[: sizes["test"]],
        ]
    )
