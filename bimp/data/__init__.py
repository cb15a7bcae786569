"""Graphs for training: prepared once, memory-mapped by every trial, gathered into batches by index."""

from bimp.data.batch import GraphBatch
from bimp.data.errors import DataError
from bimp.data.packed import GraphSplit, PackedGraphs
from bimp.data.prepared import (
    SOURCES,
    DatasetStatistics,
    PreparedDataset,
    load_or_prepare,
    open_prepared,
    prepare,
)

__all__ = [
    "SOURCES",
    "DataError",
    "DatasetStatistics",
    "GraphBatch",
    "GraphSplit",
    "PackedGraphs",
    "PreparedDataset",
    "load_or_prepare",
    "open_prepared",
    "prepare",
]
