"""The paper's own tables printed back from reports/published alone: ``aggregate.py tables --published``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reports.compare import compare_published, published_pairs
from reports.grid import Column, Grid, Section, write_grid
from reports.laid_out import lay_out, placed_rows
from reports.layout_file import DatasetLayout, Layout, find_layout, shipped_layouts
from reports.marks import Bold, Mark
from reports.plan import ResultsError
from reports.prose import METRIC_MEANINGS, METRIC_NAMES, Marked, Text
from reports.published import PaperDataset, PaperRow, paper_datasets, paper_rows

TESTED = "Welch's t-test, two-sided, from the printed means, standard deviations (ddof 0) and numbers of runs"
_DATASET_COLUMNS = (
    *(Column(head=head) for head in ("Task", "Dataset")),
    *(Column(head=head, align="right") for head in ("Graphs", "Nodes", "Edges")),
    *(Column(head=head) for head in ("Node features (dim)", "Edge features (dim)")),
)


def write_paper_tables(out: Path, layouts: Sequence[str] = (), bold: Bold = "paper") -> tuple[Path, ...]:
    """Write the tables of ``layouts`` (none: all that are shipped) into the folder ``out``, in every format.

    Raises:
        ResultsError: a layout is not found, is none, or has no printed numbers. OSError: ``out`` cannot be written.
    """
    grids = paper_tables([find_layout(name) for name in layouts or shipped_layouts()], bold)
    return tuple(path for grid in grids for path in write_grid(grid, out))


def paper_tables(layouts: Sequence[Layout | DatasetLayout], bold: Bold = "paper") -> tuple[Grid, ...]:
    """The paper's numbers in each of ``layouts``; Holm's correction is over all of their pairs together.

    Raises:
        ResultsError: a layout says of no table of the paper that it is its own.
    """
    results = [layout for layout in layouts if isinstance(layout, Layout)]
    for layout in results:
        if layout.published is None:
            raise ResultsError(
                f"layout {layout.name}: published: found nothing, expected the table whose numbers it prints"
            )
    tables = tuple(dict.fromkeys(str(layout.published) for layout in results))
    better = significant_rows(tables) if bold == "significant" else None
    return tuple(
        _dataset_grid(layout) if isinstance(layout, DatasetLayout) else _grid(layout, better) for layout in layouts
    )


def significant_rows(tables: Sequence[str]) -> frozenset[PaperRow]:
    """The gated rows of ``tables`` that are better than their vanilla rows, Holm's correction over all of them."""
    compared = compare_published(published_pairs(tables))
    return frozenset(found.gated for found in compared if found.significant and found.favours_gated)


def _grid(layout: Layout, better: frozenset[PaperRow] | None) -> Grid:
    rows = [row for row in paper_rows() if row.table == layout.published]
    names = None if better is None else {row.name for row in better if row.table == layout.published}
    return lay_out(layout, placed_rows(rows, names), _caption(layout, rows, better is not None))


def _caption(layout: Layout, rows: Sequence[PaperRow], tested: bool) -> Text:
    metrics = {row.metric: METRIC_MEANINGS[row.metric] for row in rows}
    meanings = "; ".join(f"{METRIC_NAMES[metric]}: {meaning}" for metric, meaning in metrics.items())
    rule = f": better than the vanilla model by {TESTED}, Holm's correction" if tested else ", red: as printed"
    return (
        f"{layout.title}, as printed in {rows[0].source} of the paper. {meanings}. ",
        "Mean ± standard deviation (ddof 0). ",
        Marked(words="Bold", mark=Mark.BETTER),
        f"{rule}.",
    )


def _dataset_grid(layout: DatasetLayout) -> Grid:
    datasets = [row for row in paper_datasets() if row.source == layout.datasets]
    return Grid(
        name=layout.name,
        title=layout.title,
        caption=(f"{layout.title}, as printed in {layout.datasets} of the paper: means over the graphs.",),
        columns=_DATASET_COLUMNS,
        sections=(Section(title=None, rows=tuple(_dataset_row(row) for row in datasets)),),
        notes=(),
        nothing="No dataset.",
        wide=False,
        record_fields=("dataset", "task", "graphs", "nodes", "edges"),
        records=tuple(
            {name: getattr(row, name) for name in ("dataset", "task", "graphs", "nodes", "edges")} for row in datasets
        ),
    )


def _dataset_row(row: PaperDataset) -> tuple[Text, ...]:
    edge = f"{row.edge_features} ({row.edge_dim})" if row.edge_dim is not None else "-"
    cells = (
        *(row.task, row.dataset, row.graphs_printed, f"{row.nodes:.2f}", f"{row.edges:.2f}"),
        *(f"{row.node_features} ({row.node_dim})", edge),
    )
    return tuple((cell,) for cell in cells)
