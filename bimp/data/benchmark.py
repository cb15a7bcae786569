"""SMNIST, CIFAR10, TSP, CLUSTER and PATTERN: the benchmark's own graphs, in PyTorch Geometric's file NAME_v2.pt.

The file holds three splits, each a list of graphs, each a dict of tensors. It is read here rather than by
``torch_geometric.datasets.GNNBenchmarkDataset``, whose address it is downloaded from: the class unpickles a file that
``torch.load`` refuses, and writes all graphs to the disk a second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bimp.data.benchmark_forms import edge_ends, edge_rows, graph_labels, node_rows
from bimp.data.errors import DataError
from bimp.data.packed import LabelLevel, PackedGraphs, smallest_integer_type
from bimp.data.raw import (
    UNREADABLE,
    Published,
    any_file,
    checksums,
    download_errors,
    find_files,
    not_downloaded,
    require_statistics,
)
from bimp.data.reader_lines import readers_logged
from bimp.data.source import (
    SPLIT_NAMES,
    Parameters,
    Sizes,
    Source,
    SourceGraphs,
    SplitName,
    consecutive_splits,
    given_parameters,
    sizes_for,
)
from bimp.data.statistics import LABELS_OF
from bimp.data.torch_files import CUT_OR_FOREIGN, load_tensors
from bimp.tasks import TaskSpec, task_of

Graph = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class BenchmarkFile(Source):
    """One dataset of the benchmark.

    Attributes:
        name: the dataset's name.
        raw_name: its name at PyTorch Geometric: the file is ``NAME_v2.pt``.
        sizes: graphs of each split.
        published: what the graphs are compared with.
    """

    name: str
    raw_name: str
    sizes: Sizes
    published: Published

    @property
    def file_name(self) -> str:
        """The raw file."""
        return f"{self.raw_name}_v2.pt"

    def parameters(self, seed: int | None, size: int | None) -> Parameters:
        """Size, where there are to be fewer graphs to train on than published.

        Raises:
            DataError: a seed, or a size that there is not.
        """
        return given_parameters(self.name, seed, size, self.sizes["train"])

    def recognises(self, raw: Path) -> bool:
        """Whether the file lies there."""
        return any_file(self._folders(raw), (self.file_name,))

    def raw_files(self, raw: Path) -> tuple[Path, ...]:
        """The file, in ``raw``, ``raw/raw`` or ``raw/NAME/raw``.

        Raises:
            DataError: it is missing.
        """
        return find_files(self.name, self._folders(raw), (self.file_name,))

    def build(
        self, parameters: Parameters, *, raw: Path | None, trust: bool, workspace: Path, processes: int
    ) -> SourceGraphs:
        """Read the graphs from ``raw``, or download them; see :meth:`bimp.data.source.Source.build`."""
        path = self._download(workspace) if raw is None else self.raw_files(raw)[0]
        place = path if raw is not None else f"{self.name}, as downloaded"
        splits = self._read(path, place)
        every = [graph for split in SPLIT_NAMES for graph in splits[split]]
        try:
            nodes = sum(len(node_rows(graph, task_of(self.name))) for graph in every)
            edges = sum(graph["edge_index"].shape[1] for graph in every)
        except UNREADABLE as error:
            raise self._foreign(place, f"{type(error).__name__}: {error}") from error
        require_statistics(place, self.published, graphs=len(every), nodes=nodes, edges=edges)
        sizes = sizes_for(parameters.get("size"), self.sizes)
        chosen = [graph for split in SPLIT_NAMES for graph in splits[split][: sizes[split]]]
        try:
            graphs = _pack(chosen, task_of(self.name))
        except UNREADABLE as error:
            raise self._foreign(place, f"{type(error).__name__}: {error}") from error
        return SourceGraphs(
            graphs=graphs,
            splits=consecutive_splits(sizes),
            origin=f"{self.file_name} of torch_geometric.datasets.GNNBenchmarkDataset, "
            f"{'downloaded' if raw is None else 'by hand'}",
            raw_sha256=checksums([path]),
        )

    def _folders(self, raw: Path) -> tuple[Path, ...]:
        return (raw, raw / "raw", raw / self.raw_name / "raw")

    def _download(self, workspace: Path) -> Path:
        from torch_geometric.data import download_url, extract_zip
        from torch_geometric.datasets import GNNBenchmarkDataset

        network = download_errors()
        folder = workspace / self.raw_name / "raw"
        try:
            with readers_logged():
                extract_zip(download_url(GNNBenchmarkDataset.urls[self.raw_name], str(folder)), str(folder))
        except network as error:
            raise not_downloaded(self.name, error) from error
        return find_files(self.name, (folder,), (self.file_name,))[0]

    def _read(self, path: Path, place: object) -> dict[SplitName, Sequence[Graph]]:
        try:
            content = load_tensors(path)
        except CUT_OR_FOREIGN as error:
            raise self._foreign(place, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}") from error
        if not isinstance(content, (list, tuple)) or len(content) != len(SPLIT_NAMES):
            raise self._foreign(place, f"a {type(content).__name__} that does not hold three splits")
        splits: dict[SplitName, Sequence[Graph]] = {}
        for name, graphs in zip(SPLIT_NAMES, content, strict=True):
            if not isinstance(graphs, (list, tuple)) or not all(isinstance(graph, Mapping) for graph in graphs):
                raise self._foreign(place, f"a split {name} that is no list of dicts")
            if len(graphs) != self.sizes[name]:
                raise self._foreign(place, f"{len(graphs)} graphs in split {name}, not {self.sizes[name]}")
            splits[name] = graphs
        return splits

    def _foreign(self, place: object, found: str) -> DataError:
        return DataError(
            f"{place}: found a file that is cut, of another version or not of {self.raw_name} ({found}), expected "
            f"{self.file_name} with {' / '.join(str(self.sizes[name]) for name in SPLIT_NAMES)} graphs; get it again "
            "from the address in torch_geometric.datasets.GNNBenchmarkDataset"
        )


def _pack(graphs: Sequence[Graph], task: TaskSpec) -> PackedGraphs:
    """The graphs in the one form in which networks take them."""
    x = [node_rows(graph, task) for graph in graphs]
    edge_attr: list[Tensor] | None = None if task.edge_input == "ones" else [edge_rows(graph) for graph in graphs]
    # Of 80 million edges: as few bytes an edge as the largest graph allows.
    small = smallest_integer_type(max(len(rows) for rows in x))
    labels: LabelLevel = "graph"
    if LABELS_OF[task.kind] != "graph":
        labels = "node" if task.kind == "node_classification" else "edge"
    return PackedGraphs.from_arrays(
        node_counts=torch.tensor([len(rows) for rows in x]),
        edge_counts=torch.tensor([graph["edge_index"].shape[1] for graph in graphs]),
        x=torch.cat(x),
        edge_index=torch.cat(
            [edge_ends(graph, len(rows), small) for graph, rows in zip(graphs, x, strict=True)], dim=1
        ),
        edge_attr=None if edge_attr is None else torch.cat(edge_attr),
        y=torch.cat([graph_labels(graph, task) for graph in graphs]),
        labels=labels,
    )
