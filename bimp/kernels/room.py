"""Room behind the rows of a matrix, so that products of many numbers of rows are products of few.

oneDNN writes a kernel for each size that it meets, which takes as long as a small product, and keeps a thousand of
them, half a megabyte each. Batches of graphs are all of different sizes: products go over whole multiples of rows,
the last of which no one reads.
"""

from __future__ import annotations

import torch
from torch import Tensor

MULTIPLE = 64
"""Of rows: a hundredth more to compute at the sizes of a batch, and a handful of sizes in all."""


def empty_with_room(num_rows: int, width: int, like: Tensor) -> Tensor:
    """``[num_rows, width]`` of any content, type and place as ``like``, with room behind for a whole multiple."""
    return first_rows(like.new_empty(num_rows + _missing(num_rows), width), num_rows)


def empty_like_with_room(rows: Tensor) -> Tensor:
    """As ``rows``, of any content, with room behind."""
    return empty_with_room(rows.shape[0], rows.shape[1], rows)


def first_rows(matrix: Tensor, num_rows: int) -> Tensor:
    """The first rows of a contiguous matrix as a tensor of their own on the same memory.

    Not a view: autograd refuses to change views in place that a function has returned. A file that it is saved to
    holds the room as well; a clone does not.
    """
    width = matrix.shape[1]
    return matrix.new_empty(0).set_(matrix.untyped_storage(), 0, (num_rows, width), (width, 1))


def starts_with_room(starts: Tensor, runs_a_row: int = 1) -> Tensor:
    """Where runs begin and end, ``[runs + 1]``, followed by runs of nothing whose sums are the room.

    Args:
        starts: of the runs.
        runs_a_row: runs whose sums lie side by side in a row.
    """
    num_rows = (len(starts) - 1) // runs_a_row
    return torch.cat([starts, starts[-1:].expand(_missing(num_rows) * runs_a_row)])


def with_room(rows: Tensor) -> Tensor:
    """The rows and what stands behind them, a whole multiple in all; copied where the memory ends before."""
    num_rows, width = rows.shape
    missing = _missing(num_rows)
    if missing == 0:
        return rows
    end = rows.storage_offset() + (num_rows + missing) * width
    if rows.is_contiguous() and end * rows.element_size() <= rows.untyped_storage().nbytes():
        return rows.as_strided((num_rows + missing, width), (width, 1))
    copied = rows.new_empty(num_rows + missing, width)
    copied[:num_rows] = rows
    copied[num_rows:] = 0
    return copied


def _missing(num_rows: int) -> int:
    return -num_rows % MULTIPLE
