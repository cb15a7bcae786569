"""ZINC, the benchmark's subset of 12,000 molecules, through PyTorch Geometric's class."""

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
from bimp.data.source import SPLIT_NAMES, Parameters, Source, SourceGraphs, SplitName

SIZES: dict[SplitName, int] = {"train": 10_000, "val": 1_000, "test": 1_000}
MEAN_NODES, MEAN_EDGES = 23.16, 49.83
NAMES = tuple(f"{split}.{kind}" for kind in ("pickle", "index") for split in SPLIT_NAMES)


class Zinc(Source):
    """Atom numbers (28) as x, bond numbers (1 to 3) as edge_attr, constrained solubility as y, float."""

    name = "zinc"

    def raw_files(self, raw: Path) -> tuple[Path, ...]:
        """Three pickles and three indices, in ``raw``, ``raw/raw`` or ``raw/zinc/raw``.

        Raises:
            DataError: one is missing.
        """
        return find_files(self.name, (raw, raw / "raw", raw / self.name / "raw"), NAMES)

    def build(self, parameters: Parameters, *, raw: Path | None, trust: bool, workspace: Path) -> SourceGraphs:
        """Read the molecules from ``raw``, or download them; see :meth:`bimp.data.source.Source.build`."""
        folder = None if raw is None else self.raw_files(raw)[0].parent
        if folder is not None:
            if not trust:
                raise DataError(
                    f"{folder / NAMES[0]}: found a pickle of unknown checksum, and reading a pickle runs what is in "
                    "it; if you know where it comes from, run `run_study.py prepare zinc --from PATH --trust`"
                )
            _place(folder, workspace / "raw")
        graphs = _read(workspace, folder)
        place = folder or "zinc, as downloaded"
        require_statistics(place, graphs, count=sum(SIZES.values()), mean_nodes=MEAN_NODES, mean_edges=MEAN_EDGES)
        parts = torch.split(torch.arange(len(graphs)), list(SIZES.values()))
        return SourceGraphs(
            graphs=graphs,
            splits={name: (part,) for name, part in zip(SIZES, parts, strict=True)},
            origin=f"torch_geometric.datasets.ZINC(subset=True), {'downloaded' if folder is None else 'files by hand'}",
            raw_sha256=checksums((folder or workspace / "raw") / name for name in NAMES),
        )


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


def _read(workspace: Path, raw: Path | None) -> PackedGraphs:
    from torch_geometric.datasets import ZINC

    network: tuple[type[Exception], ...] = DOWNLOAD_ERRORS if raw is None else ()
    graphs = []
    for split in SPLIT_NAMES:
        try:
            graphs.extend(ZINC(str(workspace), subset=True, split=split))
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
    for graph in graphs:
        graph.x = graph.x.squeeze(-1)
    return PackedGraphs.pack(graphs, labels="graph")
