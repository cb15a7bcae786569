"""Handwritten digits, which scikit-learn ships, as graphs of pixels in the manner of SMNIST.

A node is a pixel with ink; its inputs are ink (0 to 1), row and column (0 to 1 from edge to edge). Two pixels at
distance d weigh exp(-(d / s_i)^2) as seen from i, where s_i is the mean distance from i to its 8 nearest, and the mean
of the two views together. Each node points to its 8 heaviest neighbours: the node is the source u, the neighbour the
destination v, so that every node has 8 edges out (fewer in an image of fewer than 9 inked pixels) and any number in.
The edge input is the weight.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from bimp.data.point_graphs import PointGraph, heaviest_neighbours, pack_point_graphs
from bimp.data.source import Parameters, Source, SourceGraphs
from bimp.data.splits import stratified_order

NEIGHBOURS = 8
FULL_INK = 16.0
HELD_OUT = 250
"""Graphs of the validation split, and of the test split."""
SPLIT_SEED = 0


def pixel_graph(image: NDArray[np.float64]) -> PointGraph:
    """The graph of one image.

    Args:
        image: ``[height, width]``, ink from 0 to 16; height and width 2 or more.

    Returns:
        x ``[nodes, 3]`` (ink, row, column), nodes in reading order; edge_index ``[2, edges]``; weight ``[edges, 1]``.
        Between equal weights the neighbour that comes first in reading order is taken.
    """
    pixels = np.argwhere(image > 0)
    ink = image[pixels[:, 0], pixels[:, 1]] / FULL_INK
    x = np.column_stack([ink, pixels / (np.array(image.shape) - 1)]).astype(np.float32)
    # In units of pixels: squared distances are whole numbers.
    return x, *heaviest_neighbours(pixels, NEIGHBOURS)


class Digits(Source):
    """The 1,797 images of 8 by 8 pixels: 1,297 to train on, 250 to validate, 250 to test, stratified by digit."""

    name = "digits"
    maker = "library"

    def build(
        self, parameters: Parameters, *, raw: Path | None, trust: bool, workspace: Path, processes: int
    ) -> SourceGraphs:
        """Make the graphs from scikit-learn's copy; see :meth:`bimp.data.source.Source.build`."""
        # Here and not above: a worker that opens prepared data need not load scikit-learn.
        from sklearn.datasets import load_digits

        digits = load_digits()
        graphs = [pixel_graph(image) for image in digits.images]
        y = torch.from_numpy(digits.target).to(torch.int64)
        packed = pack_point_graphs(graphs, y.numpy(), "graph")
        order = stratified_order(y, SPLIT_SEED)
        test, val, train = order[:HELD_OUT], order[HELD_OUT : 2 * HELD_OUT], order[2 * HELD_OUT :]
        return SourceGraphs(
            graphs=packed,
            splits={"train": (train.sort().values,), "val": (val.sort().values,), "test": (test.sort().values,)},
            origin="sklearn.datasets.load_digits as pixel graphs; split stratified by digit, of our own",
        )
