"""Raw files placed by hand, in PyTorch Geometric's own layout, and what can go wrong with them."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from zipfile import BadZipFile

from bimp.data.errors import DataError

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


def any_file(folders: Sequence[Path], names: Sequence[str]) -> bool:
    """Whether a file of one of the ``names`` lies in one of the ``folders``."""
    return any((folder / name).is_file() for folder in folders for name in names)


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


@dataclass(frozen=True, kw_only=True)
class Published:
    """Statistics of a dataset as its authors printed them.

    Attributes:
        graphs: number of graphs.
        mean_nodes: nodes of a graph.
        mean_edges: directed edges of a graph.
        nodes_within, edges_within: how far the true mean may lie from the printed one; by default as far as two
            printed decimals allow.
    """

    graphs: int
    mean_nodes: float
    mean_edges: float
    nodes_within: float = 0.0051
    edges_within: float = 0.0051


def require_statistics(place: object, published: Published, *, graphs: int, nodes: int, edges: int) -> None:
    """Compare what was read with the published statistics.

    Args:
        place: the files or the dataset, for the error.
        published: what is expected.
        graphs: number of graphs that were read, 1 or more.
        nodes: all nodes of these.
        edges: all directed edges of these.

    Raises:
        DataError: one of the three differs.
    """
    for name, found, expected, within in (
        ("graphs", float(graphs), published.graphs, 0),
        ("mean nodes", nodes / graphs, published.mean_nodes, published.nodes_within),
        ("mean directed edges", edges / graphs, published.mean_edges, published.edges_within),
    ):
        if abs(found - expected) > within:
            raise DataError(
                f"{place}: found {found:.10g} {name}, expected {expected}: not the benchmark's graphs; get the files "
                "of the benchmark's own version"
            )


def require_trust(dataset: str, path: Path, trust: bool) -> None:
    """Refuse a pickle unless the user vouches for it.

    Raises:
        DataError: without trust.
    """
    if not trust:
        raise DataError(
            f"{path}: found a pickle, and reading it runs what is in it; if you know where "
            f"it comes from, run `run_study.py prepare {dataset} --from PATH --trust`"
        )


def download_errors() -> tuple[type[Exception], ...]:
    """What PyTorch Geometric raises where there is no network, or where it breaks off."""
    from aiohttp import ClientError  # some of its classes download through it; loaded only when one does

    return (OSError, HTTPException, BadZipFile, ImportError, ClientError)
