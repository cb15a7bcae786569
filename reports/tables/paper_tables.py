"""The paper's own tables printed back from reports/published alone: ``aggregate.py tables --published``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reports.grid import Grid, write_grid
from reports.layout.laid_out import fill, lay_out
from reports.layout.layout_file import AnyLayout, DatasetLayout, Layout
from reports.layout.layout_reader import find_layouts, shipped_layouts
from reports.layout.placed import placed_rows
from reports.published.rows import PaperRow, paper_rows
from reports.records.plan import ResultsError
from reports.summary.marks import Bold, Mark
from reports.tables.dataset_tables import paper_dataset_grid
from reports.words.prose import METRIC_MEANINGS, METRIC_NAMES, Marked, Note, Text, meanings_of


def write_paper_tables(
    out: Path, layouts: Sequence[AnyLayout] = (), bold: Bold = "paper"
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Write the tables of ``layouts`` (none: all that are shipped) into the folder ``out``, in every format.

    Gives the files, and a line for each layout that was left out, as :func:`paper_tables`.

    Raises:
        ResultsError: none of the layouts has printed numbers with a place in it.
        OSError: ``out`` cannot be written.
    """
    grids, unfit = paper_tables(layouts or find_layouts(list(shipped_layouts())), bold)
    return tuple(path for grid in grids for path in write_grid(grid, out)), unfit


def paper_tables(layouts: Sequence[AnyLayout], bold: Bold = "paper") -> tuple[tuple[Grid, ...], tuple[str, ...]]:
    """The paper's numbers in each of ``layouts`` that fits, and a line for each other one, which says why.

    A layout fits if it says which of the paper's tables it prints and a row of that has a place in it. Holm's
    correction is over the pairs of the tables that are printed together.

    Raises:
        ResultsError: none of the layouts fits.
    """
    unfit = {layout.name: why for layout in layouts if isinstance(layout, Layout) and (why := _misfit(layout))}
    fitting = [layout for layout in layouts if layout.name not in unfit]
    if not fitting:
        raise ResultsError("; ".join(unfit.values()))
    tables = tuple(dict.fromkeys(str(layout.published) for layout in fitting if isinstance(layout, Layout)))
    better, rule = None, "as printed, a better mean than the vanilla model's"
    if bold == "significant":
        better, tests = significant_rows(tables)
        rule = (
            "better than the vanilla model by Welch's t-test, two-sided, from the printed means and standard "
            f"deviations, below 0.05 after Holm's correction over the {tests} comparisons printed together"
        )
    grids = tuple(
        paper_dataset_grid(layout) if isinstance(layout, DatasetLayout) else _grid(layout, better, rule)
        for layout in fitting
    )
    return grids, tuple(unfit.values())


def _misfit(layout: Layout) -> str | None:
    """Why the paper's numbers have no place in ``layout``; None where they have."""
    if layout.published is None:
        return f"layout {layout.name}: published: found nothing, expected the table whose printed numbers stand in it"
    try:
        fill(layout, placed_rows(_rows(layout)))
    except ResultsError as error:
        return str(error)
    return None


def _rows(layout: Layout) -> list[PaperRow]:
    return [row for row in paper_rows() if row.table == layout.published]


def significant_rows(tables: Sequence[str]) -> tuple[frozenset[PaperRow], int]:
    """The gated rows of ``tables`` that are better than their vanilla rows after Holm's correction, and of how many."""
    # Only here: the tests load scipy and statsmodels.
    from reports.compare.against_vanilla import compare_published, published_pairs

    compared = compare_published(published_pairs(tables))
    return frozenset(found.gated for found in compared if found.significant and found.favours_gated), len(compared)


def _grid(layout: Layout, better: frozenset[PaperRow] | None, rule: str) -> Grid:
    rows = _rows(layout)
    filled = fill(layout, placed_rows(rows, better))
    names = {cell.name for cell in filled.cells}
    shown = [row for row in rows if row.name in names]
    # Marks as printed depend on no other row; Holm's correction does.
    return lay_out(filled, _caption(layout, shown, rule), _remarks(shown), are_counted=better is not None)


def _remarks(rows: Sequence[PaperRow]) -> tuple[Note, ...]:
    """What else is known of rows; one of several rows names their dataset alone."""
    noted: dict[tuple[str, str], list[PaperRow]] = {}
    for row in rows:
        if row.note:
            noted.setdefault((row.dataset, row.note.replace("+-", "±")), []).append(row)
    items: tuple[Text, ...] = tuple(
        (f"{found[0].name if len(found) == 1 else dataset}: {note}",) for (dataset, note), found in noted.items()
    )
    return (Note(heading="Of the printed rows:", items=items),) if items else ()


def _caption(layout: Layout, rows: Sequence[PaperRow], rule: str) -> Text:
    metrics = dict.fromkeys(row.metric for row in rows)
    meanings = "; ".join(f"{METRIC_NAMES[metric]}: {METRIC_MEANINGS[metric]}" for metric in metrics)
    runs = " or ".join(map(str, dict.fromkeys(row.runs for row in rows)))
    measured = f"{meanings}. Mean ± standard deviation, taken as ddof 0, over {runs} runs. "
    marked = (
        Marked(words="Bold", mark=Mark.BETTER),
        f": {rule}. ",
        Marked(words="Red", mark=Mark.BEST),
        ": as printed, the best mean of the dataset, where a bilateral model has it and is bold.",
    )
    return (
        f"{layout.title}, as printed in {rows[0].source} of the paper. ",
        *((measured,) if {"test", "train"} & set(layout.columns) else ()),
        *meanings_of(layout.columns),
        *(marked if "test" in layout.columns else ()),
    )
