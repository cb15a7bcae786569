"""Raw files placed by hand, in PyTorch Geometric's own layout, and what can go wrong with them."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Sequence
from http.client import HTTPException
from pathlib import Path
from zipfile import BadZipFile

from bimp.data.errors import DataError
from bimp.data.packed import PackedGraphs

DOWNLOAD_ERRORS: tuple[type[Exception], ...] = (OSError, HTTPException, BadZipFile, ImportError)
"""What PyTorch Geometric raises where there is no network, or where it breaks off."""

UNREADABLE: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
)
"""What reading a cut or foreign file can raise: PyTorch Geometric's readers check nothing themselves."""


def find_files(dataset: str, folders: Sequence[Path], names: Sequence[str]) -> tuple[Path, ...]:
    """The files ``names`` in the first of ``folders`` that has any of them.

    Raises:
        DataError: no folder has any, or the folder that has some lacks one; names the first that is missing.
    """
    for folder in folders:
        paths = tuple(folder / name for name in names)
        missing = [path for path in paths if not path.is_file()]
        if len(missing) < len(paths):
            if missing:
                raise DataError(
                    f"{missing[0]}: found no file, expected {', '.join(names)} together; "
                    f"copy it there and run `run_study.py prepare {dataset} --from PATH` again"
                )
            return paths
    raise DataError(
        f"{folders[0] / names[0]}: found no file, expected {', '.join(names)} in {folders[0]} or its folder raw; "
        f"run `run_study.py prepare {dataset} --from PATH` with the folder that holds them"
    )


def checksums(paths: Iterable[Path]) -> dict[str, str]:
    """Name and SHA-256 of each file."""
    result = {}
    for path in paths:
        with path.open("rb") as file:
            result[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return result


def link_files(paths: Iterable[Path], folder: Path) -> None:
    """Make the files appear in ``folder``, which is created, without touching the folder that they lie in."""
    folder.mkdir(parents=True)
    for path in paths:
        (folder / path.name).symlink_to(path.resolve())


def not_downloaded(dataset: str, error: Exception) -> DataError:
    """The error of a machine without a network, or of an address that died."""
    return DataError(
        f"{dataset}: not prepared yet, and its download failed ({type(error).__name__}: {error}); get the raw files "
        f"elsewhere and run `run_study.py prepare {dataset} --from PATH`"
    )


def require_statistics(
    place: object, graphs: PackedGraphs, *, count: int, mean_nodes: float, mean_edges: float
) -> None:
    """Compare with the published statistics, which are rounded to two decimals.

    Args:
        place: the files or the dataset, for the error.
        graphs: what was read.
        count: number of graphs.
        mean_nodes: nodes of a graph.
        mean_edges: directed edges of a graph.

    Raises:
        DataError: one of the three differs.
    """
    found = (len(graphs), graphs.x.shape[0] / len(graphs), graphs.edge_index.shape[1] / len(graphs))
    expected = (count, mean_nodes, mean_edges)
    for name, is_, should_be in zip(("graphs", "mean nodes", "mean directed edges"), found, expected, strict=True):
        if abs(is_ - should_be) > 0.0051:
            raise DataError(f"{place}: found {is_:.10g} {name}, expected {should_be}: not the benchmark's graphs")
