"""What a study says at its end: what failed, the table, and where everything lies."""

from __future__ import annotations

import shlex
from pathlib import Path

from rich.console import Console

from reports import TableFiles
from reports.tables.terminal import print_terminal
from study.counted import counted
from study.location import absolute
from study.results import ResultsFolder
from study.tracking import default_tracking_uri, masked, own_database, to_fill_in, ui_command, ui_page


def failures_line(failed: int, folder: ResultsFolder) -> str:
    """What is told of ``failed`` trials, one at least: where their causes are, and what comes next."""
    status = f"python run_study.py status {shlex.quote(str(folder.root))}"
    return (
        f"{counted(failed, 'trial')} failed ({status} names the causes, {folder.errors} has the tracebacks); "
        "the same command tries again"
    )


def print_outcome(files: TableFiles, results: Path, mlflow: str | None, console: Console) -> None:
    """Show the table and every path; ``mlflow`` is the tracking URI that the study was given, if any."""
    folder = ResultsFolder(absolute(results))
    print_terminal(files.table, console.file)
    for title, place in (
        ("tables", ", ".join(map(str, files.paths))),
        ("records", f"{folder.records}/*.parquet"),
        ("weights", f"{folder.weights}/*.pt"),
        *_mlflow(folder, mlflow),
    ):
        if place:
            console.print(f"{title + ':' if title else '':10} {place}", highlight=False, markup=False, soft_wrap=True)


def _mlflow(folder: ResultsFolder, mlflow: str | None) -> tuple[tuple[str, str], ...]:
    """Where MLflow lies and how its pages open; of a study that has no database of its own, what makes one."""
    if mlflow is None and not own_database(folder.root).exists():
        # A run that finds all done makes none: the study may be mirrored to a server.
        rebuild = f"python run_study.py rebuild-mlflow {shlex.quote(str(folder.root))}"
        return (("MLflow", f"no database of its own; {rebuild} makes it"),)
    tracking_uri = mlflow or default_tracking_uri(folder.root)
    return (
        ("MLflow", masked(tracking_uri)),
        ("its pages", ui_command(tracking_uri)),
        ("", to_fill_in(tracking_uri)),
        ("", f"then open {ui_page()}" if mlflow is None else ""),
    )
