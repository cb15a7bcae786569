"""How alike the rows of a study's networks become: measured on the test graphs from the weights that it kept."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from bimp.config import ConfigError, TrialConfig
from bimp.data import GraphBatch, GraphSplit, open_prepared
from bimp.layers.own import import_layer
from bimp.network import Network
from bimp.smoothing import dirichlet_energy, group_distance_ratio, instance_information_gain, mean_average_distance
from bimp.tasks import TaskSpec, task_of
from study.found_study import require_study
from study.recorded_configuration import recorded_configuration
from study.records import TrialRecord, read_records
from study.results import ResultsFolder
from study.smoothing_records import SmoothingRow, read_smoothing, write_smoothing
from study.tensor_files import DamagedFileError, from_bytes

MOST_PAIRS = 4_000_000
"""Pairs of nodes that are measured at once: about 32 MB for each of a few matrices."""


class SmoothingError(ValueError):
    """Nothing to measure, or weights that do not belong to their record: what, where, how to mend."""


@dataclass(frozen=True, kw_only=True)
class MeasuredTrial:
    """One confirm trial and its file; ``path`` is None where its weights were not kept, ``new`` if measured now."""

    record: TrialRecord
    path: Path | None
    new: bool


def measure_study(results: Path, data: Path, *, force: bool = False, trust: bool = False) -> Iterator[MeasuredTrial]:
    """Measure every finished confirm trial of the study in ``results`` and write ``smoothing/KEY.parquet`` for each.

    A trial that has its file already is only checked, unless ``force``.

    Args:
        results: results folder of a study.
        data: folder of the prepared datasets.
        force: measure anew.
        trust: import the layers of a user's own that the records name.

    Raises:
        NoStudyError, StoreAccessError: there is no study in ``results``.
        SmoothingError: no finished confirm trial, weights that cannot be read or are another configuration's, or a
            layer of a user's own that may not be imported.
        ConfigError: with ``trust``, a layer that cannot be imported.
        DataError: the test graphs are not prepared, not those that the trial saw, or without its encodings.
        RecordError: a file of the folder cannot be read.
    """
    folder = ResultsFolder(results)
    require_study(results, folder.records.name)
    records = [r for r in read_records(folder.records, phase="confirm") if r.status == "finished"]
    if not records:
        raise SmoothingError(
            f"{results}: found no finished confirm trial, whose weights would be kept; go on with the study first"
        )
    for record in records:
        path = folder.smoothing(record.key)
        if path.exists() and not force:
            read_smoothing(path)
            yield MeasuredTrial(record=record, path=path, new=False)
        elif not folder.final_weights(record.key).exists():
            yield MeasuredTrial(record=record, path=None, new=False)
        else:
            if trust:
                import_layer(record.backbone)
            write_smoothing(measure_trial(record, folder.final_weights(record.key), data), path)
            yield MeasuredTrial(record=record, path=path, new=True)


def measure_trial(record: TrialRecord, weights: Path, data: Path) -> list[SmoothingRow]:
    """The values of one trial on its test graphs, layer by layer within each graph.

    Raises:
        SmoothingError, DataError, RecordError: as :func:`measure_study`.
    """
    config = recorded_configuration(record)
    network = _load(config, record, weights)
    wanted = config.model.pos_enc_dim or 0
    dataset = open_prepared(config.dataset, data, fingerprint=record.data_fingerprint, positional_encodings=wanted)
    test = dataset.split("test", config.fold)
    rows: list[SmoothingRow] = []
    for numbers in _chunks(test):
        values = measure_batch(network, test.graphs.gather(numbers))
        for place, graph in enumerate(numbers.tolist()):
            for layer, measured in enumerate(values):
                ratio = measured["group_distance_ratio"][place]
                rows.append(
                    SmoothingRow(
                        key=record.key,
                        cell=record.cell,
                        seed=record.seed,
                        fold=record.fold,
                        layer=layer,
                        graph=graph,
                        information_gain_kde=measured["information_gain_kde"][place],
                        information_gain_gaussian=measured["information_gain_gaussian"][place],
                        group_distance_ratio=None if math.isnan(ratio) else ratio,
                        dirichlet_energy=measured["dirichlet_energy"][place],
                        mean_average_distance=measured["mean_average_distance"][place],
                    )
                )
    return rows


def measure_batch(network: Network, batch: GraphBatch) -> list[dict[str, list[float]]]:
    """The measures of every graph of ``batch``: a list over layers (0: the embedded inputs), then by name, by graph.

    The information gain is that of the raw inputs (classes one-hot), the same for every network; groups are the nodes'
    labels, and the ratio is NaN where a task labels something else.
    """
    network.eval()
    with torch.no_grad():
        rows = network(batch, keep_rows=True).rows
        inputs = _inputs(network.task, batch)
        return [{name: values.tolist() for name, values in _measures(inputs, h, network.task, batch)} for h in rows]


def _measures(inputs: Tensor, h: Tensor, task: TaskSpec, batch: GraphBatch) -> Iterator[tuple[str, Tensor]]:
    yield "information_gain_kde", instance_information_gain(inputs, h, batch.ptr, "kde")
    yield "information_gain_gaussian", instance_information_gain(inputs, h, batch.ptr, "gaussian")
    has_groups = task.kind == "node_classification"
    unknown = torch.full((batch.num_graphs,), math.nan)
    yield "group_distance_ratio", group_distance_ratio(h, batch.y, batch.ptr) if has_groups else unknown
    yield "dirichlet_energy", dirichlet_energy(h, batch.edge_index, batch.ptr)
    yield "mean_average_distance", mean_average_distance(h, batch.ptr)


def _inputs(task: TaskSpec, batch: GraphBatch) -> Tensor:
    return F.one_hot(batch.x.long(), task.node_dim).double() if task.node_input == "embedding" else batch.x.double()


def _chunks(split: GraphSplit) -> Iterator[Tensor]:
    """The graphs of ``split`` in its order, as many at once as :data:`MOST_PAIRS` allows, one at least."""
    counts = split.graphs.node_counts[split.indices].tolist()
    start, most = 0, 0
    for place, nodes in enumerate(counts):
        if place > start and (place - start + 1) * max(most, nodes) ** 2 > MOST_PAIRS:
            yield split.indices[start:place]
            start, most = place, 0
        most = max(most, nodes)
    yield split.indices[start:]


def _load(config: TrialConfig, record: TrialRecord, weights: Path) -> Network:
    try:
        kept = from_bytes(weights.read_bytes())
    except (OSError, DamagedFileError) as error:
        raise SmoothingError(f"{weights}: not readable as weights ({error}); remove the file") from error
    if not isinstance(kept, dict) or kept.get("config") != json.loads(record.config_json):
        raise SmoothingError(
            f"{weights}: found weights of another configuration than the record of trial {record.key}; remove the file"
        )
    try:
        network = Network(config.model, task_of(config.dataset))
    except ConfigError as error:
        raise SmoothingError(f"{weights}: {error}; --trust imports it") from error
    try:
        network.load_state_dict(kept["network"])
    except (KeyError, RuntimeError) as error:
        message = " ".join(str(error).split())
        raise SmoothingError(f"{weights}: not the weights of this version's network ({message})") from error
    return network
