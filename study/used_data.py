"""What the datasets of a study hold: kept in its results folder for those who read records, but no dataset."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from bimp.data import PreparedDataset
from study.results import ResultsFolder
from study.whole_files import write_whole

DATA_FORMAT = 1
"""Version of the file."""


def keep_used_data(folder: ResultsFolder, datasets: Iterable[PreparedDataset]) -> None:
    """Add ``datasets`` to the folder's ``data.json``, each under the fingerprint by which records name it.

    What earlier runs added stays: trials that were run on other data are still on record.
    """
    kept = _kept(folder)
    now = {**kept, **{dataset.fingerprint: _described(dataset) for dataset in datasets}}
    if now != kept:
        content = {"format": DATA_FORMAT, "datasets": now}
        write_whole(folder.data_file, f"{json.dumps(content, indent=2)}\n".encode())


def training_graphs(folder: ResultsFolder) -> dict[str, int]:
    """Graphs of the training split by fingerprint, of the data that the folder names; no folds have a number."""
    found = {}
    for fingerprint, described in _kept(folder).items():
        splits = described.get("split_graphs") if isinstance(described, dict) else None
        graphs = splits.get("train") if isinstance(splits, dict) else None
        if isinstance(graphs, int):
            found[fingerprint] = graphs
    return found


def _described(dataset: PreparedDataset) -> dict[str, Any]:
    statistics = dataset.statistics
    return {
        "dataset": dataset.name,
        "title": statistics.title,
        "origin": dataset.origin,
        "graphs": statistics.graphs,
        "split_graphs": dict(statistics.split_graphs),
    }


def _kept(folder: ResultsFolder) -> dict[str, Any]:
    try:
        content = json.loads(folder.data_file.read_bytes())
    except (OSError, ValueError):  # not written yet, or cut: the datasets at hand are added again
        return {}
    found = content.get("datasets") if isinstance(content, dict) else None
    return found if isinstance(found, dict) else {}
