"""ENZYMES, 600 proteins in six classes, through PyTorch Geometric's TUDataset."""

from __future__ import annotations

from pathlib import Path

import torch

from bimp.data.errors import DataError
from bimp.data.packed import PackedGraphs
from bimp.data.raw import (
    DOWNLOAD_ERRORS,
    UNREADABLE,
    checksums,
    find_files,
    link_files,
    not_downloaded,
    require_statistics,
)
from bimp.data.source import SPLIT_NAMES, Parameters, Source, SourceGraphs, SplitName, Splits
from bimp.data.splits import stratified_folds

GRAPHS, NODES, EDGES = 600, 19_580, 74_564
ATTRIBUTES = 18
FOLDS = 10
FOLD_SEED = 0
LINES = {
    "ENZYMES_A.txt": EDGES,
    "ENZYMES_graph_indicator.txt": NODES,
    "ENZYMES_graph_labels.txt": GRAPHS,
    "ENZYMES_node_attributes.txt": NODES,
    "ENZYMES_node_labels.txt": NODES,
}
FOLD_NAMES = tuple(f"ENZYMES_{split}.index" for split in SPLIT_NAMES)


class Enzymes(Source):
    """The 18 node attributes alone as x (the class appends the node labels), and ten folds of 480/60/60 graphs.

    The folds are those of ``folds/ENZYMES_{train,val,test}.index`` where such a folder lies in, beside or above the
    raw files placed by hand; else ten stratified folds of our own. The manifest's origin says which.
    """

    name = "enzymes"

    def raw_files(self, raw: Path) -> tuple[Path, ...]:
        """Five text files, in ``raw``, ``raw/raw`` or ``raw/ENZYMES/raw``, and three of folds where there are any.

        Raises:
            DataError: one is missing.
        """
        folders = (raw, raw / "raw", raw / "ENZYMES/raw", raw / "tu/ENZYMES/raw")
        paths = find_files(self.name, folders, tuple(LINES))
        folder = paths[0].parent.absolute()
        candidates = [parent / "folds" for parent in (folder, folder.parent, folder.parent.parent)]
        if any((candidate / name).exists() for candidate in candidates for name in FOLD_NAMES):
            paths += find_files(self.name, candidates, FOLD_NAMES)
        return paths

    def build(self, parameters: Parameters, *, raw: Path | None, trust: bool, workspace: Path) -> SourceGraphs:
        """Read the graphs from ``raw``, or download them; see :meth:`bimp.data.source.Source.build`."""
        fold_paths: tuple[Path, ...] = ()
        folder = None
        if raw is not None:
            paths = self.raw_files(raw)
            text_paths, fold_paths = paths[: len(LINES)], paths[len(LINES) :]
            for path in text_paths:
                _require_lines(path, LINES[path.name])
            folder = paths[0].parent
            link_files(text_paths, workspace / "ENZYMES/raw")
        else:
            paths = tuple(workspace / "ENZYMES/raw" / name for name in LINES)
        graphs = _read(workspace, folder)
        require_statistics(
            folder or "enzymes, as downloaded",
            graphs,
            count=GRAPHS,
            mean_nodes=round(NODES / GRAPHS, 2),
            mean_edges=round(EDGES / GRAPHS, 2),
        )
        got = "downloaded" if raw is None else "files by hand"
        folds = f"{FOLDS} stored folds" if fold_paths else f"{FOLDS} stratified folds of our own, seed {FOLD_SEED}"
        return SourceGraphs(
            graphs=graphs,
            splits=_stored_folds(fold_paths) if fold_paths else _own_folds(graphs.y),
            origin=f"torch_geometric.datasets.TUDataset, ENZYMES, {got}; {folds}",
            raw_sha256=checksums(paths),
        )


def _require_lines(path: Path, expected: int) -> None:
    found = len(path.read_bytes().splitlines())
    if found != expected:
        raise DataError(f"{path}: found {found} lines, expected {expected}; get the file again")


def _read(workspace: Path, raw: Path | None) -> PackedGraphs:
    from aiohttp import ClientError  # the class downloads through it
    from torch_geometric.datasets import TUDataset

    place = raw or "enzymes, as downloaded"
    network: tuple[type[Exception], ...] = (*DOWNLOAD_ERRORS, ClientError) if raw is None else ()
    try:
        dataset = TUDataset(str(workspace), "ENZYMES", use_node_attr=True)
        graphs = list(dataset)
    except network as error:
        raise not_downloaded("enzymes", error) from error
    except UNREADABLE as error:
        raise DataError(
            f"{place}: found files that are cut or not of ENZYMES ({type(error).__name__}: {error}), "
            f"expected {', '.join(LINES)} as published; get them again"
        ) from error
    if dataset.num_node_attributes != ATTRIBUTES:
        raise DataError(
            f"{place}: found {dataset.num_node_attributes} columns in ENZYMES_node_attributes.txt, "
            f"expected {ATTRIBUTES}; get the file again"
        )
    for graph in graphs:
        graph.x = graph.x[:, :ATTRIBUTES]
    return PackedGraphs.pack(graphs, labels="graph")


def _own_folds(y: torch.Tensor) -> Splits:
    folds = stratified_folds(y, FOLDS, FOLD_SEED)
    return {name: tuple(fold[part] for fold in folds) for part, name in enumerate(SPLIT_NAMES)}


def _stored_folds(paths: tuple[Path, ...]) -> Splits:
    splits: dict[SplitName, tuple[torch.Tensor, ...]] = {}
    for name, path in zip(SPLIT_NAMES, paths, strict=True):
        try:
            lines = path.read_text(encoding="utf-8").split()
            splits[name] = tuple(torch.tensor([int(entry) for entry in line.split(",")]) for line in lines)
        except ValueError as error:
            raise DataError(f"{path}: found {error}, expected graph numbers separated by commas") from error
        if len(splits[name]) != FOLDS:
            raise DataError(f"{path}: found {len(splits[name])} lines, expected {FOLDS}, one for each fold")
    for fold in range(FOLDS):
        together = torch.cat([splits[name][fold] for name in SPLIT_NAMES])
        if not torch.equal(together.sort().values, torch.arange(GRAPHS)):
            raise DataError(
                f"{paths[0]}: found in line {fold + 1} of it and of its two companions {len(together)} graph numbers, "
                f"expected each from 0 to {GRAPHS - 1} once; get the three files again"
            )
    return splits
