"""Everything about results but their tables: ``figures``, ``page``, ``explain``, ``check`` and ``fidelity``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from reports.commands.parameters import OneResults, Results, place_option, refusing
from reports.commands.telling import fail, one_line_errors, show, tell
from study.given_place import local_path


def figures(
    results: OneResults,
    out: Annotated[
        Path | None,
        place_option("Folder to write to, or its URL. [default: RESULTS/figures]"),
    ] = None,
    measure: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Measure of over-smoothing to draw by layer: information_gain_kde, information_gain_gaussian, "
            "group_distance_ratio, dirichlet_energy or mean_average_distance.",
        ),
    ] = "information_gain_kde",
) -> None:
    """Draw every picture that the records allow, as PDF, SVG and PNG, and say why the others are not there."""
    from reports.pictures import write_pictures

    with one_line_errors():
        paths, skipped = write_pictures(results, out or results / "figures", measure)
    show(paths)
    tell("skipped:", skipped)
    if not paths:
        fail(f"{results}: found nothing to draw; run the study first")


def page(
    results: Results,
    out: Annotated[
        Path | None,
        place_option("File to write, or its URL. [default: page.html in the first RESULTS]"),
    ] = None,
) -> None:
    """Write one HTML file that works offline.

    It has the tables, what stands behind each number, the check, the pictures and the plan.
    """
    if out is not None and out.is_dir():
        fail(f"{out}: found a folder, expected the name of a file, such as {out / 'page.html'}")
    with one_line_errors():
        from reports.page import write_page

        show([write_page(results, out)])


def explain(
    results: OneResults,
    cell: Annotated[
        str,
        typer.Argument(
            metavar="CELL", help='Id of a cell, or words of its name, as "ZINC bi-GCN 500k".', show_default=False
        ),
    ],
) -> None:
    """Show what lies behind one number of a table.

    Its trials, configuration, code, data and files, and how it was chosen.
    """
    from reports.evidence.explain import explain

    with one_line_errors():
        text = explain(results, cell)
    sys.stdout.write(text)


def check(
    results: Results,
) -> None:
    """Look for what makes a table untrustworthy.

    Exit code: 0, or 1 where something forbids publishing it, or 2 on wrong input.
    """
    from reports.check import check_together
    from reports.check.rendering import finding_lines, finding_table, summary_line

    with one_line_errors():
        findings = check_together(results)
    if findings and sys.stdout.isatty():
        from rich.console import Console

        Console(highlight=False).print(finding_table(findings))
    else:
        sys.stdout.writelines(f"{line}\n" for line in finding_lines(findings))
    sys.stdout.write(f"{summary_line(findings, len(results))}\n")
    if any(finding.severity == "forbids" for finding in findings):
        raise typer.Exit(1)


def fidelity(
    folder: Annotated[
        Path,
        typer.Argument(
            parser=refusing(local_path("FOLDER")), metavar="FOLDER", help="Folder that holds results folders."
        ),
    ] = Path("reports/reproduction"),
    out: Annotated[
        Path, typer.Option(parser=refusing(local_path("--out")), metavar="PATH", help="File to write.")
    ] = Path("docs/fidelity.md"),
) -> None:
    """Write the page that says what of the paper holds here.

    It sets the studies in FOLDER beside the paper's printed numbers and shows what their gates do.
    """
    from reports.fidelity.page import write_fidelity

    with one_line_errors():
        show([write_fidelity(folder, out)])
