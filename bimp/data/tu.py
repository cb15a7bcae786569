"""DD, ENZYMES and PROTEINS: graphs of proteins through PyTorch Geometric's TUDataset."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bimp.data.errors import DataError
from bimp.data.folds import FOLD_SEED, FOLDS, fold_names, own_folds, stored_folds
from bimp.data.packed import PackedGraphs
from bimp.data.raw import (
    UNREADABLE,
    Published,
    any_file,
    checksums,
    download_errors,
    find_files,
    link_files,
    not_downloaded,
    require_statistics,
)
from bimp.data.reader_lines import readers_logged
from bimp.data.source import Parameters, Source, SourceGraphs


@dataclass(frozen=True, kw_only=True)
class TUGraphs(Source):
    """One dataset of proteins, and ten folds.

    The folds are those of ``folds/NAME_{train,val,test}.index`` where such a folder lies in, beside or above the raw
    files placed by hand; else ten stratified folds of our own. The manifest's origin says which.

    Attributes:
        name: the dataset's name.
        raw_name: what its raw files begin with.
        graphs: their number.
        nodes: of all graphs.
        edges: directed, of all graphs.
        attributes: columns of the node attributes, which alone are x (the class appends the node labels); None where
            there are none, and x is the node labels one-hot.
        labels: different node labels; looked at where they are x.
    """

    name: str
    raw_name: str
    graphs: int
    nodes: int
    edges: int
    attributes: int | None
    labels: int = 0

    @property
    def lines(self) -> dict[str, int]:
        """The raw files and how many lines each has."""
        lines = {
            "A": self.edges,
            "graph_indicator": self.nodes,
            "graph_labels": self.graphs,
            "node_labels": self.nodes,
        }
        if self.attributes is not None:
            lines["node_attributes"] = self.nodes
        return {f"{self.raw_name}_{name}.txt": count for name, count in lines.items()}

    def recognises(self, raw: Path) -> bool:
        """Whether one of the text files lies there."""
        return any_file(self._folders(raw), tuple(self.lines))

    def raw_files(self, raw: Path) -> tuple[Path, ...]:
        """The text files, and three of folds where there are any.

        They lie in ``raw``, ``raw/raw``, ``raw/NAME/raw`` or ``raw/tu/NAME/raw``.

        Raises:
            DataError: one is missing.
        """
        paths = find_files(self.name, self._folders(raw), tuple(self.lines))
        folder = paths[0].parent.absolute()
        candidates = [parent / "folds" for parent in (folder, folder.parent, folder.parent.parent)]
        if any_file(candidates, fold_names(self.raw_name)):
            paths += find_files(self.name, candidates, fold_names(self.raw_name))
        return paths

    def build(
        self, parameters: Parameters, *, raw: Path | None, trust: bool, workspace: Path, processes: int
    ) -> SourceGraphs:
        """Read the graphs from ``raw``, or download them; see :meth:`bimp.data.source.Source.build`."""
        fold_paths: tuple[Path, ...] = ()
        folder = None
        if raw is not None:
            paths = self.raw_files(raw)
            text_paths, fold_paths = paths[: len(self.lines)], paths[len(self.lines) :]
            for path in text_paths:
                _require_lines(path, self.lines[path.name])
            folder = paths[0].parent
            link_files(text_paths, workspace / self.raw_name / "raw")
        else:
            paths = tuple(workspace / self.raw_name / "raw" / name for name in self.lines)
        graphs = self._read(workspace, folder)
        published = Published(
            graphs=self.graphs,
            mean_nodes=round(self.nodes / self.graphs, 2),
            mean_edges=round(self.edges / self.graphs, 2),
        )
        require_statistics(
            folder or f"{self.name}, as downloaded",
            published,
            graphs=len(graphs),
            nodes=graphs.x.shape[0],
            edges=graphs.edge_index.shape[1],
        )
        got = "downloaded" if raw is None else "files by hand"
        folds = f"{FOLDS} stored folds" if fold_paths else f"{FOLDS} stratified folds of our own, seed {FOLD_SEED}"
        return SourceGraphs(
            graphs=graphs,
            splits=stored_folds(fold_paths, self.graphs) if fold_paths else own_folds(graphs.y),
            origin=f"torch_geometric.datasets.TUDataset, {self.raw_name}, {got}; {folds}",
            raw_sha256=checksums(paths),
        )

    def _folders(self, raw: Path) -> tuple[Path, ...]:
        return (raw, raw / "raw", raw / self.raw_name / "raw", raw / "tu" / self.raw_name / "raw")

    def _read(self, workspace: Path, raw: Path | None) -> PackedGraphs:
        from torch_geometric.datasets import TUDataset

        place = raw or f"{self.name}, as downloaded"
        network = download_errors() if raw is None else ()
        try:
            with readers_logged():
                dataset = TUDataset(str(workspace), self.raw_name, use_node_attr=True)
                graphs = list(dataset)
        except network as error:
            raise not_downloaded(self.name, error) from error
        except UNREADABLE as error:
            raise DataError(
                f"{place}: found files that are cut or not of {self.raw_name} ({type(error).__name__}: {error}), "
                f"expected {', '.join(self.lines)} as published; get them again"
            ) from error
        found, expected = dataset.num_node_attributes, self.attributes or 0
        file = f"{self.raw_name}_node_attributes.txt"
        if found == expected == 0:
            found, expected, file = dataset.num_node_labels, self.labels, f"{self.raw_name}_node_labels.txt, one-hot"
        if found != expected:
            raise DataError(f"{place}: found {found} columns in {file}, expected {expected}; get the file again")
        for graph in graphs:
            graph.x = graph.x[:, :expected]
        return PackedGraphs.pack(graphs, labels="graph")


def _require_lines(path: Path, expected: int) -> None:
    found = len(path.read_bytes().splitlines())
    if found != expected:
        raise DataError(f"{path}: found {found} lines, expected {expected}; get the file again")
