"""Graphs for training: prepared once, memory-mapped by every trial, gathered into batches by index."""

from bimp.data.batch import GraphBatch
from bimp.data.errors import DataError
from bimp.data.graph_split import GraphSplit
from bimp.data.packed import PackedGraphs
from bimp.data.positional import flip_signs
from bimp.data.preparation import load_or_prepare, prepare
from bimp.data.prepared import PreparedDataset, open_prepared
from bimp.data.sources import SOURCES
from bimp.data.statistics import DatasetStatistics

__all__ = [
    "SOURCES",
    "DataError",
    "DatasetStatistics",
    "GraphBatch",
    "GraphSplit",
    "PackedGraphs",
    "PreparedDataset",
    "flip_signs",
    "load_or_prepare",
    "open_prepared",
    "prepare",
]
