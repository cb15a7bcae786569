"""Seconds an epoch of cells to come, from the records of an earlier study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from study.found_study import require_study
from study.plan import Cell
from study.plan.hours import Speed
from study.records import read_columns
from study.results import ResultsFolder

AS_LARGE = 1.5
"""A model of up to so many times the parameters, or so many times fewer, is as large as another."""

_COLUMNS = ("dataset", "backbone", "layers", "placement", "params", "seconds", "device", "epochs.list.element.epoch")


def past_speeds(results: Path, cells: Iterable[Cell]) -> dict[str, Speed]:
    """By cell, the mean over the epochs of all trials in ``results`` that are like the cell's; others have none.

    Like them are trials on the same dataset of the same backbone, with a gate or without, of as many layers where the
    cell has them fixed, whose model is as large.

    Raises:
        NoStudyError, StoreAccessError: there is no study in ``results``. RecordError: a record cannot be read.
    """
    folder = ResultsFolder(results)
    require_study(results, folder.records.name)
    trials = [row for row in read_columns(folder.records, _COLUMNS).to_pylist() if row["epochs"]]
    speeds = {}
    for cell in cells:
        alike = [row for row in trials if _is_alike(row, cell)]
        epochs = sum(len(row["epochs"]) for row in alike)
        if epochs:
            seconds = sum(row["seconds"] for row in alike) / epochs
            speeds[cell.id] = Speed(seconds_an_epoch=seconds, known_from=_known_from(results, alike))
    return speeds


def _is_alike(row: Mapping[str, Any], cell: Cell) -> bool:
    gated = cell.placement != "none"
    layers = cell.setting("layers")
    return (
        row["dataset"] == cell.dataset
        and row["backbone"] == cell.backbone
        and (row["placement"] != "none") == gated
        and layers in (None, row["layers"])
        and cell.params.low / AS_LARGE <= row["params"] <= cell.params.high * AS_LARGE
    )


def _known_from(results: Path, alike: list[dict[str, Any]]) -> str:
    devices = ", ".join(sorted({row["device"] for row in alike}))
    return (
        f"an epoch takes as long as in {results} for the same dataset and backbone, up to {AS_LARGE:g} times the size, "
        f"on {devices}"
    )
