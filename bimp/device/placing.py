"""Which graphs lie on the device: the whole dataset, one split of it, or none."""

from __future__ import annotations

import gc
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from bimp.data import GraphSplit
from bimp.device.resident import ResidentGraphs, bytes_of

logger = logging.getLogger(__name__)

SHARE_OF_FREE_MEMORY = 0.25
"""Of a GPU's free memory the graphs may take as much; the rest is the steps' and that of other trials."""
MIB = 2**20


@dataclass(frozen=True, eq=False)
class Placed:
    """The splits of one or several runs, and where their graphs are.

    Attributes:
        splits: of each run; graph numbers are those of ``resident``.
        resident: the graphs of all of them on the device; None: they stay in main memory.
    """

    splits: tuple[GraphSplit, ...]
    resident: ResidentGraphs | None


def place(name: str, splits: Sequence[GraphSplit], device: torch.device, beside: Placed | None = None) -> Placed:
    """Put the dataset of ``splits`` on ``device``, or if that is too large their own graphs, or none, which is logged.

    Args:
        name: ``training`` or ``validation``, for the log.
        splits: of each run.
        device: where to.
        beside: what lies there already, and may hold these graphs too.
    """
    in_main_memory = Placed(tuple(splits), None)
    graphs = splits[0].graphs
    if any(split.graphs is not graphs for split in splits):
        logger.warning("%s: the runs' graphs are not of one dataset, so batches are sent one by one", name)
        return in_main_memory
    if beside is not None and beside.resident is not None and beside.splits[0].graphs is graphs:
        return Placed(tuple(splits), beside.resident)
    whole = GraphSplit(graphs, torch.arange(len(graphs)))
    if fits(bytes_of(whole), device):
        return Placed(tuple(splits), ResidentGraphs.of(graphs, device))
    is_one_split = all(torch.equal(split.indices, splits[0].indices) for split in splits)
    size = bytes_of(splits[0] if is_one_split else whole)
    if is_one_split and fits(size, device):
        alone = splits[0].alone()
        return Placed((alone,) * len(splits), ResidentGraphs.of(alone.graphs, device))
    free = free_memory(device)
    logger.warning(
        "%s: its graphs take %.1f MiB, more than %d%% of the %.1f MiB that are free on the device: "
        "batches are sent one by one, and steps are not captured",
        name,
        size / MIB,
        round(100 * SHARE_OF_FREE_MEMORY),
        math.nan if free is None else free / MIB,
    )
    return in_main_memory


def fits(size: int, device: torch.device) -> bool:
    """Whether graphs of so many bytes may lie on ``device``."""
    free = free_memory(device)
    return free is None or size <= SHARE_OF_FREE_MEMORY * free


def free_memory(device: torch.device) -> int | None:
    """Bytes that are free on a GPU, what ended runs of this process left being let go first; None elsewhere."""
    if device.type != "cuda":
        return None
    gc.collect()  # a run and its captured steps refer to each other
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info(device)[0]
