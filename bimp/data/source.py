"""What a source of graphs is: it makes the packed graphs and the splits of one dataset in one way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import Tensor

from bimp.data.errors import DataError
from bimp.data.packed import PackedGraphs

SplitName = Literal["train", "val", "test"]
SPLIT_NAMES: tuple[SplitName, ...] = get_args(SplitName)
Parameters = Mapping[str, int]
Splits = Mapping[SplitName, tuple[Tensor, ...]]
"""Graph numbers of each split: one tensor for each fold, a single one where the dataset has one split."""
Sizes = Mapping[SplitName, int]
"""Graphs in each split of a dataset that has one split."""

DEFAULT_SEED = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class SourceGraphs:
    """What a source yields.

    Attributes:
        graphs: every graph of the dataset.
        splits: see :data:`Splits`.
        origin: one line for people: where graphs and splits come from.
        raw_sha256: name and checksum of each raw file that was read.
    """

    graphs: PackedGraphs
    splits: Splits
    origin: str
    raw_sha256: Mapping[str, str] = field(default_factory=dict)


class Source(ABC):
    """One way to one dataset.

    Attributes:
        name: the dataset's name in a study file, and of its folder.
        maker: name of the way: ``benchmark`` (the benchmark's own graphs, downloaded or from files placed by hand),
            ``generated``, ``images``, ``tours`` or ``library``.
        drawn: whether it draws its graphs from a seed.
    """

    name: str
    maker: str = "benchmark"
    drawn: bool = False

    def parameters(self, seed: int | None, size: int | None) -> Parameters:
        """What is made, defaults filled in; two preparations with equal parameters make the same graphs.

        Raises:
            DataError: a parameter that this source does not take.
        """
        for key, value in (("seed", seed), ("size", size)):
            if value is not None:
                raise DataError(f"{self.name}: found {key}={value}, expected none: its graphs are given, not drawn")
        return {}

    def recognises(self, raw: Path) -> bool:
        """Whether any of this source's raw files lies in ``raw``; a source that reads none recognises nothing."""
        del raw
        return False

    def raw_files(self, raw: Path) -> tuple[Path, ...]:
        """The raw files of a folder of files placed by hand, each known to exist.

        Raises:
            DataError: a file is missing, or this source reads no files.
        """
        raise DataError(f"{self.name}: found files from {raw}, expected none: this dataset is made without files")

    @abstractmethod
    def build(
        self, parameters: Parameters, *, raw: Path | None, trust: bool, workspace: Path, processes: int
    ) -> SourceGraphs:
        """Make the graphs.

        Args:
            parameters: from :meth:`parameters`.
            raw: folder of files placed by hand, never written to; None: download what is needed.
            trust: whether the user vouches for the pickles in ``raw``.
            workspace: an empty folder for files on the way; removed afterwards.
            processes: how many processes may work at once; the graphs do not depend on it, but for a search that is
                given a time.

        Raises:
            DataError: files that are missing, cut, foreign or not trusted, or that cannot be downloaded.
        """


def drawn_parameters(name: str, seed: int | None, size: int | None, default_size: int) -> Parameters:
    """Parameters of a source that draws its graphs.

    Raises:
        DataError: a negative seed or a size below 1.
    """
    seed = DEFAULT_SEED if seed is None else seed
    size = default_size if size is None else size
    if seed < 0:
        raise DataError(f"{name}: found seed={seed}, expected 0 or more")
    if size < 1:
        raise DataError(f"{name}: found size={size}, expected 1 or more graphs to train on")
    return {"seed": seed, "size": size}


def given_parameters(name: str, seed: int | None, size: int | None, largest: int | None) -> Parameters:
    """Parameters of a source whose graphs are given and can be cut short for a trial; no size: all of them.

    Args:
        name: the dataset.
        seed: must be None.
        size: graphs to train on.
        largest: all graphs to train on; None where only the files know.

    Raises:
        DataError: a seed, or a size below 1 or above ``largest``.
    """
    if seed is not None:
        raise DataError(f"{name}: found seed={seed}, expected none: its graphs are given, not drawn")
    if size is None:
        return {}
    if size < 1 or (largest is not None and size > largest):
        most = "1 or more" if largest is None else f"1 to {largest}"
        raise DataError(f"{name}: found size={size}, expected {most} graphs to train on")
    return {"size": size}


def sizes_for(size: int | None, available: Sizes | None = None) -> Sizes:
    """Sizes of the splits: ``size`` graphs to train on, and to validate and to test a tenth of that, at least one.

    Args:
        size: graphs to train on; None: all that are available.
        available: what there is of each; None: any number.
    """
    if size is None:
        assert available is not None, "a size or what is available"
        return available
    wanted: dict[SplitName, int] = {name: size if name == "train" else max(1, size // 10) for name in SPLIT_NAMES}
    return wanted if available is None else {name: min(wanted[name], available[name]) for name in SPLIT_NAMES}


def require_graphs(place: object, splits: Splits, mend: str = "") -> None:
    """See that something can be measured on each split and fold.

    Args:
        place: the dataset or its folder, for the error.
        splits: graph numbers.
        mend: how to mend it, the end of the error.

    Raises:
        DataError: one is empty.
    """
    for name, folds in splits.items():
        for fold, indices in enumerate(folds):
            if indices.numel() == 0:
                of_fold = f" of fold {fold}" if len(folds) > 1 else ""
                raise DataError(f"{place}: found no graphs in split {name!r}{of_fold}, expected at least one{mend}")


def consecutive_splits(sizes: Sizes) -> Splits:
    """One split of graphs that lie one behind the other: train, then validation, then test."""
    parts = torch.split(torch.arange(sum(sizes.values())), [sizes[name] for name in SPLIT_NAMES])
    return {name: (part,) for name, part in zip(SPLIT_NAMES, parts, strict=True)}
