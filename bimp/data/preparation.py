"""Preparing a dataset: made beside its place, under a lock, and moved there when it is whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from filelock import FileLock

from bimp.data import storage
from bimp.data.errors import DataError
from bimp.data.manifest import POSITIONAL_ENCODINGS, Manifest, how_to_mend, read_manifest, write_manifest
from bimp.data.positional import positional_encodings as encodings_of
from bimp.data.prepared import PreparedDataset, open_prepared, split_tensor
from bimp.data.raw import checksums
from bimp.data.source import SPLIT_NAMES, Parameters, Source, SourceGraphs, require_graphs
from bimp.data.sources import choose_source, require_dataset
from bimp.data.statistics import require_fit, statistics_of
from bimp.tasks import task_of


def prepare(
    name: str,
    root: Path,
    *,
    maker: str | None = None,
    raw: Path | None = None,
    trust: bool = False,
    seed: int | None = None,
    size: int | None = None,
    positional_encodings: int = 0,
    processes: int = 1,
    force: bool = False,
) -> PreparedDataset:
    """Make ``root/name`` once, under a lock, and open it; what is already there, made alike, is only opened.

    Positional encodings that what is there lacks are added to it; its fingerprint stays, since they follow from the
    graphs. Where nothing else is asked for, they are added however it was made.

    Args:
        name: a key of :data:`bimp.data.sources.SOURCES`.
        root: folder of all prepared datasets; created where missing.
        maker: which of the dataset's sources; None: the one that made what is there, else see
            :func:`bimp.data.sources.choose_source`.
        raw: folder with raw files placed by hand; None: a benchmark's graphs are downloaded, the others need none.
        trust: read pickles placed by hand, which runs what is in them.
        seed: of a drawn dataset; None: its default.
        size: graphs to train on, of a dataset without folds; None: as published.
        positional_encodings: Laplacian positional encodings a node.
        processes: how many processes may make graphs at once. The new ones import the main module of the program:
            a script of yours then needs ``if __name__ == "__main__":``.
        force: make it anew; the old one is kept until the new one is whole.

    Raises:
        DataError: no such dataset, a parameter that it does not take, raw files that are missing, cut, foreign or not
            trusted, no network, a split without graphs, or a dataset of that name made from other parameters or files.
    """
    require_dataset(name)
    if (root / name).exists() and not force and maker is None and raw is None and seed is None:
        if positional_encodings > 0 and size is None:
            return load_or_prepare(name, root, positional_encodings=positional_encodings)
        maker = read_manifest(root / name).maker or None
    source = choose_source(name, maker=maker, raw=raw, seed=seed)
    parameters = source.parameters(seed, size)
    if positional_encodings < 0:
        raise DataError(f"{name}: found {positional_encodings} positional encodings, expected 0 or more")
    raw_sha256 = None if raw is None else checksums(source.raw_files(raw))
    if (root / name).exists() and not force:
        _require_same(root / name, source.maker, parameters, raw_sha256)
        dataset = open_prepared(name, root)
        if dataset.positional_encodings >= positional_encodings:
            return dataset  # without the lock, which a folder that may only be read does not take
    _require_no_lost_link(root / name)
    root.mkdir(parents=True, exist_ok=True)
    with FileLock(root / f".{name}.lock"):
        if (root / name).exists() and not force:
            _require_same(root / name, source.maker, parameters, raw_sha256)
            return _with_encodings(open_prepared(name, root), root, positional_encodings)
        with storage.taking_the_place_of(root / name) as (folder, workspace):
            built = source.build(parameters, raw=raw, trust=trust, workspace=workspace, processes=processes)
            require_fit(built.graphs, task_of(name), raw or name)
            require_graphs(raw or name, built.splits)
            _write(folder, source, parameters, built, positional_encodings)
        return open_prepared(name, root, verify=True)


def load_or_prepare(name: str, root: Path, *, positional_encodings: int = 0) -> PreparedDataset:
    """Open ``root/name`` however it was made, or make it with its defaults: what a study does for what it lacks.

    Args:
        name: a key of :data:`bimp.data.sources.SOURCES`.
        root: folder of all prepared datasets.
        positional_encodings: how many the study needs; where there are fewer, they are added.

    Raises:
        DataError: as :func:`bimp.data.open_prepared` and :func:`prepare`.
    """
    if not (root / name).exists():
        return prepare(name, root, positional_encodings=positional_encodings)
    dataset = open_prepared(name, root)
    if dataset.positional_encodings >= positional_encodings:
        return dataset
    with FileLock(root / f".{name}.lock"):
        return _with_encodings(open_prepared(name, root), root, positional_encodings)


def _require_no_lost_link(folder: Path) -> None:
    if folder.is_symlink() and not folder.exists():
        raise DataError(
            f"{folder}: found a link that leads nowhere, expected a prepared dataset or nothing; bring back what it "
            "led to, or remove it"
        )


def _require_same(folder: Path, maker: str, parameters: Parameters, raw_sha256: Mapping[str, str] | None) -> None:
    manifest = read_manifest(folder)
    mend = f"{how_to_mend(folder)} with the same options to make it anew"
    if manifest.maker not in ("", maker):
        raise DataError(f"{folder}: found data of maker {manifest.maker!r}, expected {maker!r}; {mend}")
    for key in sorted({*parameters, *manifest.parameters}):
        found, expected = manifest.parameters.get(key), parameters.get(key)
        if found != expected:
            raise DataError(f"{folder}: found {_asked(key, found)}, expected {_asked(key, expected)}; {mend}")
    if raw_sha256 is not None and raw_sha256 != manifest.raw_sha256:
        file = min(name for name, _ in raw_sha256.items() ^ manifest.raw_sha256.items())
        raise DataError(f"{folder}: found data of another {file}, expected of the one given; {mend}")


def _asked(key: str, value: int | None) -> str:
    return f"no {key}" if value is None else f"{key}={value}"


def _write(folder: Path, source: Source, parameters: Parameters, built: SourceGraphs, encodings: int) -> None:
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
    if encodings:
        tensors[POSITIONAL_ENCODINGS] = encodings_of(graphs, encodings)
    folds = len(built.splits["train"])
    for split in SPLIT_NAMES:
        for fold, indices in enumerate(built.splits[split]):
            tensors[split_tensor(split, fold)] = indices
    manifest = Manifest(
        dataset=source.name,
        origin=built.origin,
        maker=source.maker,
        parameters=parameters,
        raw_sha256=built.raw_sha256,
        labels=graphs.labels,
        folds=folds if folds > 1 else None,
        tensors={key: storage.write_tensor(folder, key, tensor) for key, tensor in tensors.items()},
        statistics=asdict(statistics_of(graphs, built.splits, task_of(source.name))),
    )
    write_manifest(folder, manifest)


def _with_encodings(dataset: PreparedDataset, root: Path, count: int) -> PreparedDataset:
    """``dataset`` with ``count`` positional encodings or more, added to its folder where it has fewer."""
    if dataset.positional_encodings >= count:
        return dataset
    old = root / dataset.name
    manifest = read_manifest(old)
    kept = {name: stored for name, stored in manifest.tensors.items() if name != POSITIONAL_ENCODINGS}
    with storage.taking_the_place_of(old) as (folder, _):
        for name in kept:
            storage.link_or_copy(storage.tensor_path(old, name), storage.tensor_path(folder, name))
        encodings = storage.write_tensor(folder, POSITIONAL_ENCODINGS, encodings_of(dataset.graphs, count))
        statistics = asdict(dataset.statistics)
        write_manifest(
            folder, replace(manifest, tensors={**kept, POSITIONAL_ENCODINGS: encodings}, statistics=statistics)
        )
    return open_prepared(dataset.name, root, verify=True)
