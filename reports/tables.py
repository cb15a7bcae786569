"""From a results folder to the files of its table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reports.latex import render_fragment, render_standalone
from reports.layout import ResultTable, build_table
from reports.load import load_results
from reports.markdown import render_markdown
from reports.tidy import render_csv


@dataclass(frozen=True, kw_only=True)
class TableFiles:
    """The table of a study and where it lies in each format."""

    table: ResultTable
    fragment: Path
    standalone: Path
    markdown: Path
    csv: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file written."""
        return (self.fragment, self.standalone, self.markdown, self.csv)


def write_tables(results: Path, out: Path) -> TableFiles:
    """Write the table of the study in ``results`` into the folder ``out``: LaTeX, Markdown and CSV.

    The same records give the same bytes.

    Raises:
        ResultsError: ``results`` is not the results folder of a study.
        study.records.RecordError: a record is cut, foreign, or of another schema version.
        OSError: ``out`` cannot be written.
    """
    table = build_table(load_results(results))
    files = TableFiles(
        table=table,
        fragment=out / "results.tex",
        standalone=out / "results_standalone.tex",
        markdown=out / "results.md",
        csv=out / "results.csv",
    )
    contents = (render_fragment(table), render_standalone(table), render_markdown(table), render_csv(table))
    out.mkdir(parents=True, exist_ok=True)
    for path, content in zip(files.paths, contents, strict=True):
        # A name read from JSON may hold half a surrogate pair, which no encoding has.
        path.write_text(content, encoding="utf-8", errors="replace", newline="\n")
    return files
