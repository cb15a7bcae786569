"""Prepared datasets: made once from their source, then opened by every trial."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from filelock import FileLock

from bimp.data import storage
from bimp.data.cluster import Cluster
from bimp.data.digits import Digits
from bimp.data.enzymes import Enzymes
from bimp.data.errors import DataError
from bimp.data.manifest import Manifest, read_manifest, write_manifest
from bimp.data.packed import GraphSplit, LabelLevel, PackedGraphs
from bimp.data.raw import checksums
from bimp.data.source import SPLIT_NAMES, Parameters, Source, SourceGraphs, SplitName, Splits
from bimp.data.zinc import Zinc

SOURCES: Mapping[str, Source] = {source.name: source for source in (Digits(), Zinc(), Cluster(), Enzymes())}
"""The source of each dataset, by the dataset's name."""


@dataclass(frozen=True, kw_only=True)
class DatasetStatistics:
    """Number of graphs, and means over all of them."""

    graphs: int
    mean_nodes: float
    mean_edges: float
    """Directed edges: an undirected edge counts twice."""


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
        return (
            f"{self.name}: {statistics.graphs:,} graphs, {statistics.mean_nodes:.2f} nodes and "
            f"{statistics.mean_edges:.2f} directed edges on average; {self.origin}; fingerprint {self.fingerprint}"
        )

    @property
    def max_nodes(self) -> int:
        """Nodes of the largest graph."""
        return int(self.graphs.node_counts.max())

    @property
    def statistics(self) -> DatasetStatistics:
        """Statistics over all graphs of all splits."""
        count = len(self.graphs)
        return DatasetStatistics(
            graphs=count,
            mean_nodes=self.graphs.x.shape[0] / count,
            mean_edges=self.graphs.edge_index.shape[1] / count,
        )


def prepare(
    name: str,
    root: Path,
    *,
    raw: Path | None = None,
    trust: bool = False,
    seed: int | None = None,
    size: int | None = None,
    force: bool = False,
) -> PreparedDataset:
    """Make ``root/name`` once, under a lock, and open it; what is already there, made alike, is only opened.

    Args:
        name: a key of :data:`SOURCES`.
        root: folder of all prepared datasets; created where missing.
        raw: folder with raw files placed by hand; None: zinc and enzymes are downloaded, the others need none.
        trust: read pickles whose checksum is not known.
        seed: of a drawn dataset; None: its default.
        size: of a drawn dataset; None: as published.
        force: make it anew; the old one is kept until the new one is whole.

    Raises:
        DataError: no such dataset, a parameter that it does not take, raw files that are missing, cut, foreign or not
            trusted, no network, or a dataset of that name made from other parameters or files.
    """
    source = _source(name)
    parameters = source.parameters(seed, size)
    raw_sha256 = None if raw is None else checksums(source.raw_files(raw))
    root.mkdir(parents=True, exist_ok=True)
    with FileLock(root / f".{name}.lock"):
        if (root / name).exists() and not force:
            _require_same(root / name, parameters, raw_sha256)
            return open_prepared(name, root)
        _make(source, parameters, root, raw=raw, trust=trust)
        return open_prepared(name, root, verify=True)


def open_prepared(name: str, root: Path, *, verify: bool = False, fingerprint: str | None = None) -> PreparedDataset:
    """Open ``root/name`` by memory-mapping.

    Sizes are always checked, and the checksum of every file that changed since it was last found right.

    Args:
        name: a key of :data:`SOURCES`.
        root: folder of all prepared datasets.
        verify: check every checksum.
        fingerprint: the data that is expected, where a record names it.

    Raises:
        DataError: no such dataset, not prepared, of another fingerprint, or a file that is missing, cut or altered.
    """
    _source(name)
    folder = root / name
    if not folder.is_dir():
        raise DataError(f"{folder}: found no folder, expected a prepared dataset; run `run_study.py prepare {name}`")
    manifest = read_manifest(folder)
    if fingerprint is not None and manifest.fingerprint != fingerprint:
        raise DataError(
            f"{folder}: found data of fingerprint {manifest.fingerprint}, expected {fingerprint}; prepare it as it was "
            "when the study began"
        )
    storage.verify(folder, manifest, all_files=verify)
    tensors = storage.map_tensors(folder, manifest)
    return PreparedDataset(
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
        ),
        splits={
            split: tuple(tensors[_split_tensor(split, fold)] for fold in range(manifest.folds or 1))
            for split in SPLIT_NAMES
        },
        folds=manifest.folds,
        origin=manifest.origin,
        parameters=manifest.parameters,
    )


def load_or_prepare(name: str, root: Path) -> PreparedDataset:
    """Open ``root/name`` whatever its parameters, or make it with its defaults: what a study does for what it lacks.

    Raises:
        DataError: as :func:`open_prepared` and :func:`prepare`.
    """
    return open_prepared(name, root) if (root / name).exists() else prepare(name, root)


def _source(name: str) -> Source:
    if name not in SOURCES:
        raise DataError(f"dataset: found {name!r}, expected one of {', '.join(SOURCES)}")
    return SOURCES[name]


def _require_same(folder: Path, parameters: Parameters, raw_sha256: Mapping[str, str] | None) -> None:
    manifest = read_manifest(folder)
    mend = f"run `run_study.py prepare {folder.name} --force` with the same options to make it anew"
    for key, value in parameters.items():
        if manifest.parameters.get(key) != value:
            raise DataError(f"{folder}: found {key}={manifest.parameters.get(key)}, expected {key}={value}; {mend}")
    if raw_sha256 is not None and raw_sha256 != manifest.raw_sha256:
        file = min(name for name, _ in raw_sha256.items() ^ manifest.raw_sha256.items())
        raise DataError(f"{folder}: found data of another {file}, expected of the one given; {mend}")


def _make(source: Source, parameters: Parameters, root: Path, *, raw: Path | None, trust: bool) -> None:
    """Build beside the target and rename; what a killed process left behind is cleared, the lock being ours."""
    unfinished, replaced = root / f".{source.name}.unfinished", root / f".{source.name}.replaced"
    for leftover in (unfinished, replaced):
        shutil.rmtree(leftover, ignore_errors=True)
    folder = unfinished / source.name
    workspace = unfinished / "workspace"
    folder.mkdir(parents=True)
    workspace.mkdir()
    try:
        built = source.build(parameters, raw=raw, trust=trust, workspace=workspace)
        _write(folder, source.name, parameters, built)
        target = root / source.name
        if target.exists():
            target.replace(replaced)
        folder.replace(target)
        storage.sync_folder(root)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)


def _write(folder: Path, name: str, parameters: Parameters, built: SourceGraphs) -> None:
    graphs = built.graphs
    tensors = {
        "node_offsets": graphs.node_offsets,
        "edge_offsets": graphs.edge_offsets,
        "x": graphs.x,
        "edge_index": graphs.edge_index,
        "y": graphs.y,
    }
    if graphs.edge_attr is not None:
        tensors["edge_attr"] = graphs.edge_attr
    folds = len(built.splits["train"])
    for split in SPLIT_NAMES:
        for fold, indices in enumerate(built.splits[split]):
            tensors[_split_tensor(split, fold)] = indices
    manifest = Manifest(
        dataset=name,
        origin=built.origin,
        parameters=parameters,
        raw_sha256=built.raw_sha256,
        labels=graphs.labels,
        folds=folds if folds > 1 else None,
        tensors={key: storage.write_tensor(folder, key, tensor) for key, tensor in tensors.items()},
    )
    write_manifest(folder, manifest)
    storage.sync_folder(folder)


def _split_tensor(split: SplitName, fold: int) -> str:
    return f"{split}_{fold}"
