"""ZINC, the benchmark's subset of 12,000 molecules, through PyTorch Geometric's class."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bimp.data.errors import DataError
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
    require_trust,
)
from bimp.data.reader_lines import readers_logged
from bimp.data.source import (
    SPLIT_NAMES,
    Parameters,
    Source,
    SourceGraphs,
    SplitName,
    consecutive_splits,
    given_parameters,
    sizes_for,
)

if TYPE_CHECKING:
    from torch_geometric.data import Data

SIZES: dict[SplitName, int] = {"train": 10_000, "val": 1_000, "test": 1_000}
PUBLISHED = Published(graphs=12_000, mean_nodes=23.16, mean_edges=49.83)
NAMES = tuple(f"{split}.{kind}" for kind in ("pickle", "index") for split in SPLIT_NAMES)


class Zinc(Source):
    """Atom numbers (28) as x, bond numbers (1 to 3) as edge_attr, constrained solubility as y, float."""

    name = "zinc"

    def parameters(self, seed: int | None, size: int | None) -> Parameters:
        """Size, where there are to be fewer molecules than the 10,000 to train on.

        Raises:
            DataError: a seed, or a size that there is not.
        """
        return given_parameters(self.name, seed, size, SIZES["train"])

    def recognises(self, raw: Path) -> bool:
        """Whether one of the six files lies there."""
        return any_file(_folders(raw), NAMES)

    def raw_files(self, raw: Path) -> tuple[Path, ...]:
        """Three pickles and three indices, in ``raw``, ``raw/raw`` or ``raw/zinc/raw``.

        Raises:
            DataError: one is missing.
        """
        return find_files(self.name, _folders(raw), NAMES)

    def build(
        self, parameters: Parameters, *, raw: Path | None, trust: bool, workspace: Path, processes: int
    ) -> SourceGraphs:
        """Read the molecules from ``raw``, or download them; see :meth:`bimp.data.source.Source.build`."""
        folder = None if raw is None else self.raw_files(raw)[0].parent
        if folder is not None:
            require_trust(self.name, folder / NAMES[0], trust)
            _place(folder, workspace / "raw")
        graphs = _read(workspace, folder)
        every = [graph for split in SPLIT_NAMES for graph in graphs[split]]
        require_statistics(
            folder or "zinc, as downloaded",
            PUBLISHED,
            graphs=len(every),
            nodes=sum(graph.num_nodes for graph in every),
            edges=sum(graph.num_edges for graph in every),
        )
        sizes = sizes_for(parameters.get("size"), SIZES)
        chosen = [graph for split in SPLIT_NAMES for graph in graphs[split][: sizes[split]]]
        return SourceGraphs(
            graphs=PackedGraphs.pack(chosen, labels="graph"),
            splits=consecutive_splits(sizes),
            origin=f"torch_geometric.datasets.ZINC(subset=True), {'downloaded' if folder is None else 'files by hand'}",
            raw_sha256=checksums((folder or workspace / "raw") / name for name in NAMES),
        )


def _folders(raw: Path) -> tuple[Path, ...]:
    return (raw, raw / "raw", raw / "zinc/raw")


def _place(raw: Path, folder: Path) -> None:
    """Link the pickles, and write the indices anew: the reader cuts an index's last character, whatever it is."""
    link_files((raw / f"{split}.pickle" for split in SPLIT_NAMES), folder)
    for split, size in SIZES.items():
        path = raw / f"{split}.index"
        entries = [entry.strip() for entry in path.read_text(encoding="utf-8", errors="replace").split(",")]
        if len(entries) != size or len(set(entries)) != size or not all(entry.isdecimal() for entry in entries):
            raise DataError(
                f"{path}: found {len(entries)} entries, {len(set(entries))} of them different, expected {size} "
                "different numbers separated by commas; get the file again"
            )
        (folder / path.name).write_text(",".join(entries) + "\n", encoding="utf-8")


def _read(workspace: Path, raw: Path | None) -> dict[SplitName, list[Data]]:
    from torch_geometric.datasets import ZINC

    network = download_errors() if raw is None else ()
    graphs: dict[SplitName, list[Data]] = {}
    for split in SPLIT_NAMES:
        try:
            with readers_logged():
                graphs[split] = list(ZINC(str(workspace), subset=True, split=split))
        except network as error:
            raise not_downloaded("zinc", error) from error
        except UNREADABLE as error:
            # The reader works through the splits in this order and saves each: the first unsaved one is the culprit.
            unsaved = (name for name in SPLIT_NAMES if not (workspace / f"subset/processed/{name}.pt").exists())
            path = (raw or workspace / "raw") / f"{next(unsaved, split)}.pickle"
            raise DataError(
                f"{path}: found a file that is cut or not of ZINC ({type(error).__name__}: {error}), expected a list "
                "of molecules with atom_type, bond_type and logP_SA_cycle_normalized; get the file again"
            ) from error
        for graph in graphs[split]:
            graph.x = graph.x.squeeze(-1)
    return graphs
