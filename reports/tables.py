"""From results folders to the files of their table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reports.html import render_html
from reports.latex import render_fragment, render_standalone
from reports.layout import ResultTable, build_table
from reports.load import StudyResults, load_results
from reports.markdown import render_markdown
from reports.marks import Bold
from reports.merge import merge_studies
from reports.plan import ResultsError
from reports.tidy import render_csv


@dataclass(frozen=True, kw_only=True)
class TableFiles:
    """The table of one or more studies, what it was made of, and where it lies in each format.

    ``others`` are the files of further tables that were written beside it.
    """

    results: StudyResults
    table: ResultTable
    fragment: Path
    standalone: Path
    markdown: Path
    csv: Path
    html: Path
    others: tuple[Path, ...] = ()

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file written."""
        return (self.fragment, self.standalone, self.markdown, self.csv, self.html, *self.others)


def write_tables(results: Path | Sequence[Path], out: Path, bold: Bold = "paper") -> TableFiles:
    """Write the table of the studies in the folders ``results`` into the folder ``out``: LaTeX, Markdown, CSV, HTML.

    Several studies become one table; of a cell that two of them hold, that of the study named last. The same records
    give the same bytes.

    Raises:
        ResultsError: one is not the results folder of a study. study.records.RecordError: a record is cut, foreign, or
            of another schema version. OSError: ``out`` cannot be written.
    """
    study, table = table_of([results] if isinstance(results, Path) else results, bold)
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
    return files


def table_of(results: Sequence[Path], bold: Bold) -> tuple[StudyResults, ResultTable]:
    """The studies as one, and its table.

    Raises:
        ResultsError, study.records.RecordError: as :func:`write_tables`.
    """
    study, notes = merge_studies([load_results(folder) for folder in results])
    table = build_table(study)
    if bold == "significant":
        # Only here: the tests load scipy and statsmodels.
        from reports.bold import mark_significant

        (table,) = mark_significant([table])
    return study, replace(table, notes=(*table.notes, *notes))


def write_laid_out(files: TableFiles, layouts: Sequence[str], out: Path) -> TableFiles:
    """Write the table of ``files`` once more in the shape of each of ``layouts`` into the folder ``out``.

    Raises:
        ResultsError: a layout is not found, is none, or none of the results has a place in it.
        OSError: ``out`` cannot be written.
    """
    from reports.grid import write_grid
    from reports.laid_out import lay_out, placed_entries
    from reports.layout_file import DatasetLayout, find_layout

    grids = []
    for name in layouts:
        layout = find_layout(name)
        if isinstance(layout, DatasetLayout):
            raise ResultsError(f"layout {name}: it is one of datasets; use it with --published or --statistics")
        grids.append(lay_out(layout, placed_entries(files.table), files.table.caption, files.table.notes))
    written = tuple(path for grid in grids for path in write_grid(grid, out))
    return replace(files, others=(*files.others, *written))


def write_compared(files: TableFiles, out: Path) -> TableFiles:
    """Write what compares the table's cells with each other and with published numbers into the folder ``out``.

    Raises:
        ResultsError: a confirm record holds no configuration. OSError: ``out`` cannot be written.
    """
    from reports.published_table import write_comparisons

    written = write_comparisons([files.results], out, [files.table])
    return replace(files, others=(*files.others, *written))
