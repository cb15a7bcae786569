"""Published numbers, row by row, as typed values: the paper's tables, its benchmark's, and later ones.

They lie beside this module; ``sources.csv`` says where each comes from. Numbers are as printed: accuracies in
per cent; what is a fraction, as our records are, says so.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args

from reports.summary.summarise import Spread
from reports.words.units import scale_of

FOLDER = Path(__file__).parent
PAPER_TABLES = ("graph_level", "node_edge_level", "placement", "small")
"""Tables 2, 3, S1 and S3 of the paper, by the names of their files."""

Origin = Literal["own", "copied", "differs", "unlisted"]
"""Who ran a row of the paper: ``own`` its authors (every gated row). The vanilla rows were not run again: ``copied``
equals the benchmark's leaderboard to the last digit, ``differs`` does not, and ``unlisted`` has no like there."""

Row = TypeVar("Row")


class PublishedError(ValueError):
    """A file of published numbers that is broken: the file, the line and what is wrong."""


@dataclass(frozen=True, kw_only=True)
class PaperRow:
    """One model of the paper's tables: what was printed, and what was run.

    Attributes:
        table: one of :data:`PAPER_TABLES`. source: its name in the paper, such as ``Table 2``.
        dataset, row: as printed, such as ``ZINC`` and ``bi-GCN``.
        backbone, placement: as in a study file.
        budget: nominal number of parameters of this depth; most rows exceed it.
        hidden_dim: width of a layer, for gat of one head. out_dim: width of the last layer.
        num_clusters, sigma_m: K and the gate's sensitivity; None for a vanilla row.
        edge_features: whether edge inputs enter. pos_enc_dim: Laplacian eigenvectors added to the nodes; 0: none.
        metric: of our records. runs: seeds, or folds, behind mean and standard deviation.
        test_mean, test_std, train_mean, train_std: as printed; accuracies in per cent.
        epochs: mean 0-based index of the last epoch.
        params_printed, params_true: of the table, and of the model that was run.
        bold, red: as printed; what is red is bold too.
        origin: who ran it. note: what else there is to know; empty: nothing.
    """

    table: str
    dataset: str
    row: str
    backbone: str
    placement: str
    layers: int
    budget: int
    hidden_dim: int
    out_dim: int
    heads: int
    num_clusters: int | None
    sigma_m: float | None
    edge_features: bool
    pos_enc_dim: int
    batch_size: int
    learning_rate: float
    metric: str
    runs: int
    test_mean: float
    test_std: float
    train_mean: float
    train_std: float
    epochs: float
    params_printed: int
    params_true: int
    bold: bool
    red: bool
    origin: Origin
    source: str
    note: str

    @property
    def name(self) -> str:
        """Its name for people, such as ``ZINC bi-GCN L16``; a row that stands in two tables has it in both."""
        return f"{self.dataset} {self.row} L{self.layers}"

    @property
    def test(self) -> Spread:
        """Test metric as a fraction, as our records have it."""
        return _fraction(self.metric, self.test_mean, self.test_std)

    @property
    def train(self) -> Spread:
        """Train metric as a fraction, as our records have it."""
        return _fraction(self.metric, self.train_mean, self.train_std)


@dataclass(frozen=True, kw_only=True)
class OtherRow:
    """One result of the benchmark's leaderboard or of a later paper, on one of the datasets.

    ``params``, ``test_std``, ``positional_encoding`` and ``edge_features`` are None where the source at hand does not
    say. Accuracies in per cent; ``source`` is a key of ``sources.csv``.
    """

    dataset: str
    model: str
    backbone: str
    budget: int
    params: int | None
    metric: str
    test_mean: float
    test_std: float | None
    positional_encoding: bool | None
    edge_features: bool | None
    source: str


@dataclass(frozen=True, kw_only=True)
class PaperDataset:
    """One line of the paper's Tables 1 and S2.

    ``nodes`` and ``edges`` are means over graphs; ``edges_directed``: whether an undirected edge counts twice.
    ``graphs`` is exact where ``graphs_printed`` is rounded. Features are as printed; empty: none.
    """

    source: str
    task: str
    dataset: str
    graphs_printed: str
    graphs: int
    nodes: float
    edges: float
    edges_directed: bool
    node_features: str
    node_dim: int
    edge_features: str
    edge_dim: int | None


@dataclass(frozen=True, kw_only=True)
class PaperProtocol:
    """How the authors' code trains on a dataset, the same for all of its rows; names as in a study file.

    Readouts are of vanilla and of gated models, None where the task needs none; ``unsupervised_weight`` is of gated
    models. Batch sizes and learning rates differ by row: see :class:`PaperRow`.
    """

    dataset: str
    lr_factor: float
    lr_patience: int
    min_lr: float
    max_epochs: int
    time_limit_s: float
    readout: str | None
    gated_readout: str | None
    unsupervised_weight: float


@dataclass(frozen=True, kw_only=True)
class _Source:
    source: str
    description: str


@cache
def paper_rows() -> tuple[PaperRow, ...]:
    """All 80 rows, table by table in the order of the files; a depth's vanilla row stands before its gated one."""
    return tuple(row for table in PAPER_TABLES for row in _read(f"{table}.csv", PaperRow, table=table))


@cache
def benchmark_rows() -> tuple[OtherRow, ...]:
    """The four backbones on the leaderboard of the benchmark that the paper extends."""
    return _read("benchmark.csv", OtherRow)


@cache
def later_rows() -> tuple[OtherRow, ...]:
    """Later results on the same datasets under the same budgets: higher bars."""
    return _read("later.csv", OtherRow)


@cache
def paper_datasets() -> tuple[PaperDataset, ...]:
    """The datasets of Tables 1 and S2, in their order."""
    return _read("datasets.csv", PaperDataset)


@cache
def paper_protocols() -> Mapping[str, PaperProtocol]:
    """The training of each of the paper's datasets, by its name as printed."""
    return {row.dataset: row for row in _read("protocol.csv", PaperProtocol)}


@cache
def sources() -> Mapping[str, str]:
    """What each ``source`` is, in words."""
    return {row.source: row.description for row in _read("sources.csv", _Source)}


def _read(file: str, kind: type[Row], **given: str) -> tuple[Row, ...]:
    path = FOLDER / file
    rows = []
    with path.open(encoding="utf-8", newline="") as stream:
        for line, cells in enumerate(csv.DictReader(stream), start=2):
            try:
                rows.append(_typed(kind, {**cells, **given}))
            except (KeyError, ValueError, TypeError) as error:
                raise PublishedError(f"{path}, line {line}: not a row of published numbers ({error!r})") from error
    return tuple(rows)


def _typed(kind: type[Row], cells: Mapping[str, str]) -> Row:
    """The cells as the fields of ``kind``, each read as its type says; empty is None where a field may be None."""
    values: dict[str, Any] = {}
    for entry in fields(cast("Any", kind)):
        name, _, optional = str(entry.type).partition(" | ")
        cell = cells[entry.name]
        values[entry.name] = None if optional and not cell else _READERS[name](cell)
    return kind(**values)


def _fraction(metric: str, mean: float, std: float) -> Spread:
    scale = scale_of(metric)
    return Spread(mean=mean / scale, std=std / scale)


def _flag(text: str) -> bool:
    return {"yes": True, "no": False}[text]


def _origin(text: str) -> str:
    if text not in get_args(Origin):
        raise ValueError(f"origin {text!r}")
    return text


_READERS: Mapping[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": _flag,
    "Origin": _origin,
}
