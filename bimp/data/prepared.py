"""Prepared datasets: made once from their source (:mod:`bimp.data.preparation`), then opened by every trial."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from bimp.data import storage
from bimp.data.errors import DataError
from bimp.data.graph_split import GraphSplit
from bimp.data.manifest import POSITIONAL_ENCODINGS, how_to_mend, prepare_command, read_manifest
from bimp.data.packed import LabelLevel, PackedGraphs
from bimp.data.source import SPLIT_NAMES, Parameters, SplitName, Splits, require_graphs
from bimp.data.sources import require_dataset
from bimp.data.statistics import DatasetStatistics, statistics_of
from bimp.tasks import task_of


@dataclass(frozen=True, eq=False, kw_only=True)
class PreparedDataset:
    """A dataset as a trial uses it.

    Attributes:
        name: the dataset's name.
        fingerprint: names graphs and splits; equal data has equal fingerprints on every machine.
        graphs: all graphs, of every split.
        splits: graph numbers of each split, one tensor for each fold.
        folds: number of cross-validation folds; None: one split.
        origin: one line: where graphs and splits come from.
        parameters: what the source was asked for, such as seed and size.
    """

    name: str
    fingerprint: str
    graphs: PackedGraphs
    splits: Splits
    folds: int | None
    origin: str
    parameters: Parameters

    def split(self, name: SplitName, fold: int | None = None) -> GraphSplit:
        """One split; of a dataset with folds, that of ``fold``, counted from 0.

        Raises:
            DataError: no such split or fold, or a fold of a dataset that has none.
        """
        if name not in SPLIT_NAMES:
            raise DataError(f"{self.name}: found split {name!r}, expected one of {', '.join(SPLIT_NAMES)}")
        if self.folds is None and fold is not None:
            raise DataError(f"{self.name}: found fold {fold}, expected none: it has one split")
        if self.folds is not None and (fold is None or not 0 <= fold < self.folds):
            raise DataError(f"{self.name}: found fold {fold}, expected one from 0 to {self.folds - 1}")
        return GraphSplit(self.graphs, self.splits[name][fold or 0])

    def describe(self) -> str:
        """One line for people: what it holds, where it comes from, its fingerprint."""
        statistics = self.statistics
        encodings = f"{self.positional_encodings} Laplacian positional encodings; " if self.positional_encodings else ""
        return (
            f"{self.name}: {statistics.graphs:,} graphs, {statistics.mean_nodes:.2f} nodes and "
            f"{statistics.mean_edges:.2f} directed edges on average; {self.origin}; {encodings}"
            f"fingerprint {self.fingerprint}"
        )

    @property
    def positional_encodings(self) -> int:
        """How many Laplacian positional encodings each node has; 0: the dataset was prepared without."""
        return 0 if self.graphs.pos_enc is None else self.graphs.pos_enc.shape[1]

    @property
    def statistics(self) -> DatasetStatistics:
        """Statistics over all graphs of all splits."""
        return statistics_of(self.graphs, self.splits, task_of(self.name))


def open_prepared(
    name: str, root: Path, *, verify: bool = False, fingerprint: str | None = None, positional_encodings: int = 0
) -> PreparedDataset:
    """Open ``root/name`` by memory-mapping.

    Sizes are always checked, and the checksum of every file that changed since it was last found right.

    Args:
        name: a key of :data:`bimp.data.sources.SOURCES`.
        root: folder of all prepared datasets.
        verify: check every checksum.
        fingerprint: the data that is expected, where a record names it.
        positional_encodings: how many are needed, which a fingerprint does not tell.

    Raises:
        DataError: no such dataset, not prepared, of another fingerprint, of fewer positional encodings, a split without
            graphs, or a file that is missing, cut or altered.
    """
    require_dataset(name)
    folder = root / name
    if not folder.is_dir():
        raise DataError(f"{folder}: found no folder, expected a prepared dataset; run {prepare_command(folder)}")
    manifest = read_manifest(folder)
    if fingerprint is not None and manifest.fingerprint != fingerprint:
        raise DataError(
            f"{folder}: found data of fingerprint {manifest.fingerprint}, expected {fingerprint}; prepare it as it was "
            "when the study began"
        )
    storage.verify(folder, manifest, all_files=verify)
    tensors = storage.map_tensors(folder, manifest)
    splits = {
        split: tuple(tensors[split_tensor(split, fold)] for fold in range(manifest.folds or 1)) for split in SPLIT_NAMES
    }
    require_graphs(folder, splits, f"; {how_to_mend(folder, manifest)} to make it anew")
    dataset = PreparedDataset(
        name=name,
        fingerprint=manifest.fingerprint,
        graphs=PackedGraphs(
            node_offsets=tensors["node_offsets"],
            edge_offsets=tensors["edge_offsets"],
            x=tensors["x"],
            edge_index=tensors["edge_index"],
            edge_attr=tensors.get("edge_attr"),
            y=tensors["y"],
            labels=cast(LabelLevel, manifest.labels),
            pos_enc=tensors.get(POSITIONAL_ENCODINGS),
        ),
        splits=splits,
        folds=manifest.folds,
        origin=manifest.origin,
        parameters=manifest.parameters,
    )
    if dataset.positional_encodings < positional_encodings:
        raise DataError(
            f"{folder}: found {dataset.positional_encodings} positional encodings, expected {positional_encodings}; "
            f"run {prepare_command(folder, '--pos-enc', str(positional_encodings))}"
        )
    return dataset


def split_tensor(split: SplitName, fold: int) -> str:
    """Name of the tensor that holds a split's graph numbers."""
    return f"{split}_{fold}"
