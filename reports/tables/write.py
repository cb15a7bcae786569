"""From results folders to the files of their tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reports.layout.result_table import ResultTable, build_table
from reports.layout.table_notes import DIFFERENT_DATA, OTHER_CHOICES, OTHER_SIZES, UNDECIDED
from reports.records.load import StudyResults, given_once, load_results
from reports.records.plan import ResultsError
from reports.summary.marks import Bold
from reports.tables.html import render_html
from reports.tables.latex import render_fragment, render_standalone
from reports.tables.markdown import render_markdown
from reports.tables.merge import GIVEN_WAY, merge_studies
from reports.tables.tidy import render_csv
from reports.words.prose import caption, notes

if TYPE_CHECKING:  # read only where a layout is asked for
    from reports.grid import Grid
    from reports.layout.layout_file import Layout

_KEPT = (OTHER_SIZES, DIFFERENT_DATA, UNDECIDED, OTHER_CHOICES, GIVEN_WAY)
"""Headings of notes that a table in the shape of a layout has too, of what it shows."""


@dataclass(frozen=True, kw_only=True)
class TableFiles:
    """The table of one or more studies, what it was made of, and where it lies in each format.

    ``others`` are the files of further tables that were written beside it, ``unfit`` a line for each layout in which
    none of the cells has a place.
    """

    results: StudyResults
    table: ResultTable
    fragment: Path
    standalone: Path
    markdown: Path
    csv: Path
    html: Path
    others: tuple[Path, ...] = ()
    unfit: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file written."""
        return (self.fragment, self.standalone, self.markdown, self.csv, self.html, *self.others)


def write_tables(
    results: Path | Sequence[Path], out: Path, bold: Bold = "paper", layouts: Sequence[Layout] = ()
) -> TableFiles:
    """Write the table of the studies in the folders ``results`` into the folder ``out``: LaTeX, Markdown, CSV, HTML.

    Several studies become one table; of a cell that two of them hold, that of the study named last. Each of ``layouts``
    is a further table of the same cells, with the same marks. The same records give the same bytes.

    Raises:
        ResultsError: one is not the results folder of a study, or none of the layouts fits the cells.
        study.records.RecordError: a record is cut, foreign, or of another schema version.
        OSError: ``out`` cannot be written.
    """
    study, table = table_of(results if isinstance(results, Sequence) else [results], bold)
    grids, unfit = _fitting(table, layouts, bold)
    files = TableFiles(
        results=study,
        table=table,
        fragment=out / "results.tex",
        standalone=out / "results_standalone.tex",
        markdown=out / "results.md",
        csv=out / "results.csv",
        html=out / "results.html",
    )
    renderers = (render_fragment, render_standalone, render_markdown, render_csv, render_html)
    out.mkdir(parents=True, exist_ok=True)
    for path, render in zip(files.paths, renderers, strict=True):
        # A name read from JSON may hold half a surrogate pair, which no encoding has.
        path.write_text(render(table), encoding="utf-8", errors="replace", newline="\n")
    return replace(files, others=tuple(path for grid in grids for path in _write_grid(grid, out)), unfit=unfit)


def table_of(results: Sequence[Path], bold: Bold = "paper") -> tuple[StudyResults, ResultTable]:
    """The studies as one, and its table.

    Raises:
        ResultsError, study.records.RecordError: as :func:`write_tables`.
    """
    given_once(results)
    study, given_way = merge_studies([load_results(folder) for folder in results], [str(folder) for folder in results])
    table = build_table(study)
    if bold == "significant":
        # Only here: the tests load scipy and statsmodels.
        from reports.compare.bold import mark_significant

        (table,) = mark_significant([table])
    return study, replace(table, notes=(*table.notes, *given_way))


def write_compared(files: TableFiles, out: Path) -> TableFiles:
    """Write what compares the table's cells with each other and with published numbers into the folder ``out``.

    Raises:
        OSError: ``out`` cannot be written.
    """
    from reports.compare.published_table import write_comparisons

    written = write_comparisons([files.results], out, [files.table])
    return replace(files, others=(*files.others, *written))


def _fitting(table: ResultTable, layouts: Sequence[Layout], bold: Bold) -> tuple[list[Grid], tuple[str, ...]]:
    """The tables of the layouts that fit, and why the others do not; an error where none of several does."""
    grids, unfit = [], []
    for layout in layouts:
        try:
            grids.append(_laid_out(table, layout, bold))
        except ResultsError as error:
            unfit.append(str(error))
    if unfit and not grids:
        raise ResultsError("; ".join(unfit))
    return grids, tuple(unfit)


def _laid_out(table: ResultTable, layout: Layout, bold: Bold) -> Grid:
    from reports.layout.laid_out import fill, lay_out
    from reports.layout.neighbours import other_neighbours
    from reports.layout.placed import placed_entries

    filled = fill(layout, placed_entries(table))
    labelled = [(cell.summary, cell.label) for cell in filled.cells if cell.summary]
    words = caption(layout.title, [summary for summary, _ in labelled], bold, layout.columns)
    shown = {name for summary, _ in labelled for name in (summary.cell.id, summary.cell.dataset)}
    kept = [note.only(shown) for note in table.notes if note.heading in _KEPT]
    # Trials of no cell are told below the table of all cells: they are of no row here.
    below = (*notes(labelled, 0, layout.columns), *(note for note in kept if note.items), *other_neighbours(filled))
    return lay_out(filled, words, below)


def _write_grid(grid: Grid, out: Path) -> tuple[Path, ...]:
    from reports.grid import write_grid

    return write_grid(grid, out)
