"""What a source of graphs is: it makes the packed graphs and the splits of one dataset."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from torch import Tensor

from bimp.data.errors import DataError
from bimp.data.packed import PackedGraphs

SplitName = Literal["train", "val", "test"]
SPLIT_NAMES: tuple[SplitName, ...] = get_args(SplitName)
Parameters = Mapping[str, int]
Splits = Mapping[SplitName, tuple[Tensor, ...]]
"""Graph numbers of each split: one tensor for each fold, a single one where the dataset has one split."""


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
    """One dataset's source. ``name`` is the dataset's name in a study file and of its folder."""

    name: str

    def parameters(self, seed: int | None, size: int | None) -> Parameters:
        """What is made, defaults filled in; two preparations with equal parameters make the same graphs.

        Raises:
            DataError: a parameter that this source does not take.
        """
        for key, value in (("seed", seed), ("size", size)):
            if value is not None:
                raise DataError(f"{self.name}: found {key}={value}, expected none: its graphs are given, not drawn")
        return {}

    def raw_files(self, raw: Path) -> tuple[Path, ...]:
        """The raw files of a folder of files placed by hand, each known to exist.

        Raises:
            DataError: a file is missing, or this source reads no files.
        """
        raise DataError(f"{self.name}: found files from {raw}, expected none: this dataset is made without files")

    @abstractmethod
    def build(self, parameters: Parameters, *, raw: Path | None, trust: bool, workspace: Path) -> SourceGraphs:
        """Make the graphs.

        Args:
            parameters: from :meth:`parameters`.
            raw: folder of files placed by hand, never written to; None: download what is needed.
            trust: whether the user vouches for pickles whose checksum is not known.
            workspace: an empty folder for files on the way; removed afterwards.

        Raises:
            DataError: files that are missing, cut, foreign or not trusted, or that cannot be downloaded.
        """
