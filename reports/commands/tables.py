"""``aggregate.py tables``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from reports.commands.parameters import RESULTS, place_option, refusing
from reports.commands.telling import fail, one_line_errors, show, tell
from study.given_place import local_path

if TYPE_CHECKING:
    from reports.layout.layout_file import DatasetLayout, Layout


def tables(
    results: Annotated[list[Path] | None, RESULTS] = None,
    out: Annotated[
        Path | None,
        place_option("Folder to write to, or its URL. [default: tables, in the first RESULTS if there is one]"),
    ] = None,
    layout: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Add a table in the shape of a file, or of one of the paper's by its name (docs/tables.md); several "
            "may be given.",
            show_default=False,
        ),
    ] = None,
    bold: Annotated[
        Literal["paper", "significant"],
        typer.Option(
            metavar="paper|significant",
            help="Bold is a mean better than the vanilla model's, or only one that stays so under Holm's correction.",
        ),
    ] = "paper",
    published: Annotated[
        bool, typer.Option("--published", help="Write the paper's own tables, from its printed numbers.")
    ] = False,
    statistics: Annotated[
        Path | None,
        typer.Option(
            parser=refusing(local_path("--statistics")),
            metavar="PATH",
            help="Write the table of the datasets prepared in this folder, beside the paper's.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write tables as LaTeX, Markdown, CSV and HTML, and show that of the studies.

    Name RESULTS, for the table of one or more studies with its comparisons, or --published, or --statistics, or
    several of them.
    """
    if not results and statistics is None and not published:
        fail("found neither RESULTS nor --published nor --statistics DATA, expected one of them or more")
    if out is not None and out.exists() and not out.is_dir():
        fail(f"{out}: found a file, expected a folder; name another with --out")
    folder = out or (results[0] / "tables" if results else Path("tables"))
    with one_line_errors():
        of_results, of_datasets = _layouts(
            layout or [], bool(results) or published, published or statistics is not None
        )
        if results:
            _write_study_tables(results, folder, of_results, bold)
        if published:
            from reports.tables.paper_tables import write_paper_tables

            paper = folder / "paper" if results or statistics is not None else folder
            files, unfit = write_paper_tables(paper, (*of_results, *of_datasets), bold)
            show(files)
            tell("left out of the paper's own tables:", unfit)
        if statistics is not None:
            from reports.tables.dataset_statistics import write_statistics

            show(write_statistics(statistics, folder))
            if of_datasets:
                from reports.tables.dataset_tables import write_prepared_datasets

                show(write_prepared_datasets(statistics, of_datasets, folder))


def _layouts(
    names: Sequence[str], of_results: bool, of_datasets: bool
) -> tuple[tuple[Layout, ...], tuple[DatasetLayout, ...]]:
    if not names:  # most calls name none, and need not import how they are read
        return (), ()
    from reports.layout.layout_reader import find_layouts, part_layouts

    return part_layouts(find_layouts(names), of_results, of_datasets)


def _write_study_tables(
    results: Sequence[Path], out: Path, layouts: Sequence[Layout], bold: Literal["paper", "significant"]
) -> None:
    from reports import write_tables
    from reports.tables.terminal import print_terminal
    from reports.tables.write import write_compared

    files = write_compared(write_tables(results, out, bold, layouts), out)
    print_terminal(files.table, sys.stdout)
    show(files.paths)
    tell("left out:", files.unfit)
