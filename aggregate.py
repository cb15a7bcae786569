"""Turn the records of a study into the tables of a paper: ``aggregate.py tables RESULTS``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def main() -> None:
    """Tables from the records of a study, on any machine: needs neither torch nor Ray nor MLflow."""


@app.command()
def tables(
    results: Annotated[Path, typer.Argument(help="Results folder of a study.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to; RESULTS/tables if not given.", show_default=False)
    ] = None,
) -> None:
    """Write the study's table as LaTeX, Markdown and CSV, and show it."""
    from rich.console import Console

    from reports import ResultsError, render_terminal, write_tables
    from reports.terminal import WIDTH
    from study.records import RecordError

    folder = out or results / "tables"
    if folder.exists() and not folder.is_dir():
        print(f"error: {folder}: found a file, expected a folder; name another with --out", file=sys.stderr)
        raise typer.Exit(2)
    try:
        files = write_tables(results, folder)
    except (ResultsError, RecordError, OSError) as error:
        print("error:", " ".join(str(error).split()), file=sys.stderr)
        raise typer.Exit(2) from error
    console = Console(width=WIDTH, highlight=False)
    console.print(render_terminal(files.table))
    for path in files.paths:
        console.print(str(path), markup=False, soft_wrap=True)


if __name__ == "__main__":
    app()
