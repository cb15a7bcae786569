"""The paper's tables of datasets in the shape of a layout: from its printed numbers, or from prepared datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.grid import Column, Grid, Section, write_grid
from reports.layout.laid_out import EM_DASH
from reports.layout.layout_file import DatasetColumn, DatasetLayout
from reports.published.rows import PaperDataset, paper_datasets
from reports.tables.dataset_statistics import PreparedStatistics, read_prepared
from reports.words.prose import Note, Text

_COLUMNS: Mapping[DatasetColumn, Column] = {
    "task": Column(head="Task"),
    "dataset": Column(head="Dataset"),
    "graphs": Column(head="Graphs", align="right"),
    "nodes": Column(head="Nodes", align="right"),
    "edges": Column(head="Edges", align="right"),
    "node_features": Column(head="Node features (dim)"),
    "edge_features": Column(head="Edge features (dim)"),
}
_NONE = "-"
"""In the place of features that a dataset does not have."""

RECORD_FIELDS = (
    *("dataset", "task", "graphs", "nodes", "edges"),
    *("node_features", "node_dim", "edge_features", "edge_dim", "fingerprint"),
)


@dataclass(frozen=True, kw_only=True)
class _Line:
    """A dataset as the table says it; ``record`` has its values unrounded."""

    cells: Mapping[str, str]
    record: Mapping[str, object]


def paper_dataset_grid(layout: DatasetLayout) -> Grid:
    """The datasets of ``layout`` with the values that the paper prints."""
    caption = f"{layout.title}, as printed in {layout.datasets} of the paper. {_meaning(layout)}"
    return _grid(layout, (caption,), [_printed(row) for row in _rows(layout)], ())


def write_prepared_datasets(data: Path, layouts: Sequence[DatasetLayout], out: Path) -> tuple[Path, ...]:
    """Write the datasets of each of ``layouts``, as they are prepared in the folder ``data``, into the folder ``out``.

    A dataset that is not prepared has em dashes, and prepared ones without a place are listed in a note.

    Raises:
        ResultsError: ``data`` holds no prepared dataset, or one without readable statistics.
        OSError: ``out`` cannot be written.
    """
    prepared = {dataset.title.casefold(): dataset for dataset in read_prepared(data)} if layouts else {}
    return tuple(path for layout in layouts for path in write_grid(prepared_dataset_grid(layout, prepared), out))


def prepared_dataset_grid(layout: DatasetLayout, prepared: Mapping[str, PreparedStatistics]) -> Grid:
    """The datasets of ``layout`` with the values of ``prepared``, which are named by their titles in lower case."""
    rows = _rows(layout)
    lines = [_counted(row, prepared.get(row.dataset.casefold())) for row in rows]
    left = sorted(prepared.keys() - {row.dataset.casefold() for row in rows})
    items: tuple[Text, ...] = tuple((prepared[name].title,) for name in left)
    notes = (Note(heading="Prepared, but without a place in this table:", items=items),) if items else ()
    return _grid(layout, (f"{layout.title}, as they are prepared. {_meaning(layout)}",), lines, notes)


def _rows(layout: DatasetLayout) -> list[PaperDataset]:
    return [row for row in paper_datasets() if row.source == layout.datasets]


def _meaning(layout: DatasetLayout) -> str:
    counted = "twice" if _rows(layout)[0].edges_directed else "once"
    return f"Nodes and edges: means over all graphs; an undirected edge counts {counted}."


def _grid(layout: DatasetLayout, caption: Text, lines: Sequence[_Line], notes: tuple[Note, ...]) -> Grid:
    rows = tuple(tuple((line.cells.get(name, EM_DASH),) for name in layout.columns) for line in lines)
    return Grid(
        name=layout.name,
        title=layout.title,
        caption=caption,
        columns=tuple(_COLUMNS[name] for name in layout.columns),
        sections=(Section(title=None, rows=rows),),
        notes=notes,
        nothing="No dataset.",
        wide=False,
        record_fields=RECORD_FIELDS,
        records=tuple(line.record for line in lines),
    )


def _printed(row: PaperDataset) -> _Line:
    cells = {
        "task": row.task,
        "dataset": row.dataset,
        "graphs": row.graphs_printed,
        "nodes": f"{row.nodes:.2f}",
        "edges": f"{row.edges:.2f}",
        "node_features": f"{row.node_features} ({row.node_dim})",
        "edge_features": _feature(row.edge_features, row.edge_dim),
    }
    return _Line(cells=cells, record={name: getattr(row, name, None) for name in RECORD_FIELDS})


def _counted(row: PaperDataset, found: PreparedStatistics | None) -> _Line:
    named = {"task": row.task, "dataset": row.dataset}
    if found is None:
        return _Line(cells=named, record=named)
    cells = {
        **named,
        "graphs": str(found.graphs),
        "nodes": f"{found.nodes:.2f}",
        "edges": f"{found.edges:.2f}",
        "node_features": f"{found.node_features} ({found.node_dim})",
        "edge_features": _feature(found.edge_features, found.edge_dim),
    }
    return _Line(cells=cells, record={**{name: getattr(found, name) for name in RECORD_FIELDS}, **named})


def _feature(name: str | None, dim: int | None) -> str:
    return f"{name} ({dim})" if name else _NONE
