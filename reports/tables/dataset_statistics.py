"""The paper's tables of datasets (1 and S2), from the manifests of prepared data, beside the printed values."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.grid import Column, Grid, Section, write_grid
from reports.published.rows import PaperDataset, paper_datasets
from reports.records.plan import ResultsError
from reports.words.prose import Note, Text

MANIFEST = "manifest.json"
CAPTION = (
    "Datasets as they were prepared here, each value beside the paper's (Tables 1 and S2). Nodes and edges: means over "
    "all graphs. Edges are directed, an undirected one counts twice, but for DD, ENZYMES and PROTEINS, where the paper "
    "counts it once and so does this table."
)
HEADS = ("Task", "Dataset", "Graphs", "paper", "Nodes", "paper", "Edges", "paper")
FEATURE_HEADS = ("Node inputs (dim)", "paper", "Edge inputs (dim)", "paper")
COLUMNS = (
    *(Column(head=head) for head in HEADS[:2]),
    *(Column(head=head, align="right") for head in HEADS[2:]),
    *(Column(head=head) for head in FEATURE_HEADS),
)
NOTHING = "–"  # noqa: RUF001
"""Where there is no value: an input that does not exist, a dataset that is not prepared or not in the paper."""


@dataclass(frozen=True, kw_only=True)
class PreparedStatistics:
    """What a manifest says of a dataset; ``edges`` is counted as the paper does for it."""

    dataset: str
    title: str
    task: str
    graphs: int
    nodes: float
    edges: float
    node_features: str
    node_dim: int
    edge_features: str | None
    edge_dim: int | None
    origin: str
    fingerprint: str


@dataclass(frozen=True, kw_only=True)
class DatasetRow:
    """One line of the table; a side is None where the dataset is not prepared, or not in the paper."""

    title: str
    section: str
    ours: PreparedStatistics | None
    paper: PaperDataset | None

    @property
    def cells(self) -> tuple[str, ...]:
        """The line as text under :data:`HEADS` and :data:`FEATURE_HEADS`."""
        ours, paper = self.ours, self.paper
        task = paper.task if paper else ours.task.replace("_", " ").capitalize() if ours else NOTHING
        return (
            task,
            self.title,
            f"{ours.graphs:,}" if ours else NOTHING,
            paper.graphs_printed if paper else NOTHING,
            f"{ours.nodes:,.2f}" if ours else NOTHING,
            f"{paper.nodes:,.2f}" if paper else NOTHING,
            f"{ours.edges:,.2f}" if ours else NOTHING,
            f"{paper.edges:,.2f}" if paper else NOTHING,
            _feature(ours.node_features, ours.node_dim) if ours else NOTHING,
            _feature(paper.node_features, paper.node_dim) if paper else NOTHING,
            _feature(ours.edge_features, ours.edge_dim) if ours else NOTHING,
            _feature(paper.edge_features, paper.edge_dim) if paper else NOTHING,
        )

    @property
    def departures(self) -> tuple[str, ...]:
        """Where ours, rounded as printed, is not the paper's value."""
        if self.ours is None or self.paper is None:
            return ()
        pairs: tuple[tuple[str, float, float, str], ...] = (
            ("graphs", self.ours.graphs, self.paper.graphs, ",d"),
            ("nodes", self.ours.nodes, self.paper.nodes, ",.2f"),
            ("edges", self.ours.edges, self.paper.edges, ",.2f"),
            ("dimension of the node inputs", self.ours.node_dim, self.paper.node_dim, "d"),
            ("dimension of the edge inputs", self.ours.edge_dim or 0, self.paper.edge_dim or 0, "d"),
        )
        return tuple(
            f"{what} {format(ours, form)}, not {format(paper, form)}"
            for what, ours, paper, form in pairs
            if format(ours, form) != format(paper, form)
        )


def write_statistics(data: Path, out: Path) -> tuple[Path, ...]:
    """Write the table ``statistics`` into the folder ``out``, in every format, from the datasets prepared in ``data``.

    Raises:
        ResultsError: ``data`` holds no prepared dataset, or one without readable statistics.
        OSError: ``out`` cannot be written.
    """
    return write_grid(statistics_grid(dataset_rows(read_prepared(data))), out)


def read_prepared(data: Path) -> tuple[PreparedStatistics, ...]:
    """The datasets prepared in the folder ``data``, by name; what is not prepared to its end is not there.

    Raises:
        ResultsError: as :func:`write_statistics`.
    """
    manifests = sorted(data.glob(f"*/{MANIFEST}"))
    prepared = tuple(_read(path) for path in manifests if not path.parent.name.startswith("."))
    if not prepared:
        command = f"run_study.py prepare NAME --data {shlex.quote(str(data))}"
        raise ResultsError(f"{data}: found no prepared dataset; run `{command}` first")
    return prepared


def dataset_rows(prepared: Sequence[PreparedStatistics]) -> tuple[DatasetRow, ...]:
    """The paper's datasets in its order, prepared or not, then the prepared ones that it does not have."""
    left = {statistics.title.casefold(): statistics for statistics in prepared}
    in_paper = tuple(
        DatasetRow(title=one.dataset, section=one.source, ours=left.pop(one.dataset.casefold(), None), paper=one)
        for one in paper_datasets()
    )
    others = tuple(DatasetRow(title=own.title, section="other", ours=own, paper=None) for own in left.values())
    return in_paper + others


def statistics_grid(rows: Sequence[DatasetRow]) -> Grid:
    """The table of ``rows``, a rule between the paper's two tables and before what it does not have."""
    sections: dict[str, list[tuple[Text, ...]]] = {}
    for row in rows:
        sections.setdefault(row.section, []).append(tuple((cell,) for cell in row.cells))
    return Grid(
        name="statistics",
        title="Datasets",
        caption=(CAPTION,),
        columns=COLUMNS,
        sections=tuple(Section(title=None, rows=tuple(found)) for found in sections.values()),
        notes=tuple(Note(heading=note) for note in _notes(rows)),
        nothing="No dataset is prepared.",
        wide=False,
        record_fields=RECORD_FIELDS,
        records=tuple(_record(row) for row in rows),
    )


_VALUES = ("graphs", "nodes", "edges", "node_features", "node_dim", "edge_features", "edge_dim")
RECORD_FIELDS = (
    *("dataset", "section"),
    *_VALUES,
    *("origin", "fingerprint"),
    *(f"paper_{name}" for name in _VALUES),
    "paper_graphs_printed",
)
"""Columns of the CSV: values as they were counted, and as the paper prints them; a side that is not there is empty."""


def _record(row: DatasetRow) -> dict[str, object]:
    ours, paper = row.ours, row.paper
    return {
        "dataset": row.title,
        "section": row.section,
        **({name: getattr(ours, name) for name in (*_VALUES, "origin", "fingerprint")} if ours else {}),
        **({f"paper_{name}": getattr(paper, name) for name in (*_VALUES, "graphs_printed")} if paper else {}),
    }


def _notes(rows: Iterable[DatasetRow]) -> Iterable[str]:
    for row in rows:
        if row.ours is not None:
            parts = "; ".join(row.departures)
            differs = f" Where it parts from the paper: {parts}." if parts else ""
            yield f"{row.title}: {row.ours.origin}; fingerprint {row.ours.fingerprint}.{differs}"
    missing = [row.title for row in rows if row.ours is None]
    if missing:
        yield f"Not prepared here: {', '.join(missing)}."


def _feature(name: str | None, dim: int | None) -> str:
    return f"{name} ({dim})" if name else NOTHING


def _read(path: Path) -> PreparedStatistics:
    command = f"run_study.py prepare {path.parent.name} --data {shlex.quote(str(path.parents[1]))} --force"
    mend = f"run `{command}` with the options that it was made with"  # others make other data
    try:
        manifest: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        statistics = manifest["statistics"]
        return PreparedStatistics(
            dataset=manifest["dataset"],
            title=statistics["title"],
            task=statistics["task"],
            graphs=statistics["graphs"],
            nodes=statistics["mean_nodes"],
            edges=statistics["mean_counted_edges"],
            node_features=statistics["node_features"],
            node_dim=statistics["node_dim"],
            edge_features=statistics["edge_features"],
            edge_dim=statistics["edge_dim"],
            origin=manifest["origin"],
            fingerprint=manifest["fingerprint"],
        )
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: not readable as JSON ({error}); {mend}") from error
    except (KeyError, TypeError) as error:
        raise ResultsError(f"{path}: holds no complete statistics ({error!r}); {mend}") from error
