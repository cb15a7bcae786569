"""Seconds an epoch of cells to come, from the records of an earlier study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from study.counted import counted
from study.found_study import require_study
from study.plan import Cell
from study.plan.hours import Speed
from study.records import read_columns
from study.results import ResultsFolder
from study.used_data import training_graphs

AS_LARGE = 1.5
"""A model of up to so many times the parameters, or so many times fewer, is as large as another."""

_COLUMNS = (
    *("dataset", "backbone", "layers", "placement", "params", "batch_size"),
    *("seconds", "device", "threads", "data_fingerprint", "epochs.list.element.epoch"),
)


def past_speeds(results: Path, cells: Iterable[Cell]) -> dict[str, Speed]:
    """By cell, the mean over the epochs of all trials in ``results`` that are like the cell's; others have none.

    Like them are trials on the same dataset of the same backbone, with a gate or without, of as many layers where the
    cell has them fixed, whose model is as large. What else an epoch's time hangs on is told, not compared: the
    graphs of the training split and of a batch, the device and its threads.

    Raises:
        NoStudyError, StoreAccessError: there is no study in ``results``. RecordError: a record cannot be read.
    """
    folder = ResultsFolder(results)
    require_study(results, folder.records.name)
    trials = [row for row in read_columns(folder.records, _COLUMNS).to_pylist() if row["epochs"]]
    graphs = training_graphs(folder)
    speeds = {}
    for cell in cells:
        alike = [row for row in trials if _is_alike(row, cell)]
        epochs = sum(len(row["epochs"]) for row in alike)
        if epochs:
            seconds = sum(row["seconds"] for row in alike) / epochs
            speeds[cell.id] = Speed(seconds_an_epoch=seconds, known_from=_known_from(results, alike, graphs))
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


def _known_from(results: Path, alike: Sequence[Mapping[str, Any]], graphs: Mapping[str, int]) -> str:
    sizes = {graphs[row["data_fingerprint"]] for row in alike if row["data_fingerprint"] in graphs}
    batches = {row["batch_size"] for row in alike}
    devices = {f"{row['device']} with {counted(row['threads'], 'thread')}" for row in alike}
    trained = f"{_either(sizes)} training graphs in batches" if sizes else "batches"
    return (
        f"an epoch takes as long as in {results} for the same dataset and backbone, up to {AS_LARGE:g} times the size: "
        f"{trained} of {_either(batches)}, on {', '.join(sorted(devices))}"
    )


def _either(numbers: Iterable[int]) -> str:
    return " or ".join(f"{number:,}" for number in sorted(numbers))
