"""Turn the records of a study into the tables of a paper: ``aggregate.py tables RESULTS``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def main() -> None:
    """Tables and figures from the records of a study, on any machine: needs neither torch nor Ray nor MLflow."""


@app.command()
def tables(
    results: Annotated[Path | None, typer.Argument(help="Results folder of a study.", show_default=False)] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to; RESULTS/tables if not given.", show_default=False)
    ] = None,
    statistics: Annotated[
        Path | None,
        typer.Option(help="Folder of prepared datasets, to be set beside the paper's.", show_default=False),
    ] = None,
) -> None:
    """Write the study's table as LaTeX, Markdown and CSV, and show it; with --statistics that of the datasets."""
    if results is None and statistics is None:
        _fail("found neither RESULTS nor --statistics DATA, expected one of them or both")
    if out is not None and out.exists() and not out.is_dir():
        _fail(f"{out}: found a file, expected a folder; name another with --out")
    if results is not None:
        _write_study_tables(results, out or results / "tables")
    if statistics is not None:
        from reports.statistics import write_statistics

        folder = out or (results / "tables" if results is not None else Path("tables"))
        with _one_line_errors():
            _show(write_statistics(statistics, folder))


@app.command()
def figures(
    results: Annotated[Path, typer.Argument(help="Results folder of a study.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to; RESULTS/figures if not given.", show_default=False)
    ] = None,
    measure: Annotated[str, typer.Option(help="What to draw by layer.")] = "information_gain_kde",
) -> None:
    """Draw over-smoothing by layer, gated beside vanilla, once `run_study.py smoothing RESULTS` has measured it."""
    from reports.figures import write_figures

    with _one_line_errors():
        for files in write_figures(results, out or results / "figures", measure):
            _show(files.paths)


def _write_study_tables(results: Path, out: Path) -> None:
    from rich.console import Console

    from reports import render_terminal, write_tables
    from reports.terminal import WIDTH

    with _one_line_errors():
        files = write_tables(results, out)
    Console(width=WIDTH, highlight=False).print(render_terminal(files.table))
    _show(files.paths)


def _show(paths: Iterable[Path]) -> None:
    for path in paths:
        sys.stdout.write(f"{path}\n")


@contextmanager
def _one_line_errors() -> Iterator[None]:
    from reports import ResultsError
    from study.records import RecordError

    try:
        yield
    except (ResultsError, RecordError, OSError) as error:
        _fail(str(error))


def _fail(message: str) -> NoReturn:
    print("error:", " ".join(message.split()), file=sys.stderr)
    raise typer.Exit(2)


if __name__ == "__main__":
    app()
