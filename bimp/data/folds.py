"""Cross-validation folds of a dataset: stored in index files, or ten of our own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from bimp.data.errors import DataError
from bimp.data.source import SPLIT_NAMES, SplitName, Splits
from bimp.data.splits import stratified_folds

FOLDS = 10
FOLD_SEED = 0


def fold_names(name: str) -> tuple[str, ...]:
    """The three index files of the dataset whose raw files begin with ``name``, in the order of the splits."""
    return tuple(f"{name}_{split}.index" for split in SPLIT_NAMES)


def own_folds(y: Tensor) -> Splits:
    """Ten stratified folds that are the same on every machine: 80 % to train, 10 % to validate, 10 % to test."""
    folds = stratified_folds(y, FOLDS, FOLD_SEED)
    return {name: tuple(fold[part] for fold in folds) for part, name in enumerate(SPLIT_NAMES)}


def stored_folds(paths: Sequence[Path], graphs: int) -> Splits:
    """The folds of three index files: a line for each fold, graph numbers from 0 separated by commas.

    Args:
        paths: the files of train, val and test.
        graphs: graphs of the dataset; each must stand once in every fold.

    Raises:
        DataError: a file that is no such list, or folds that miss or repeat a graph.
    """
    splits: dict[SplitName, tuple[Tensor, ...]] = {}
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
        if not torch.equal(together.sort().values, torch.arange(graphs)):
            raise DataError(
                f"{paths[0]}: found in line {fold + 1} of it and of its two companions {len(together)} graph numbers, "
                f"expected each from 0 to {graphs - 1} once; get the three files again"
            )
    return splits
