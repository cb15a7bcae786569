"""A study before, while and after it runs: ``plan``, ``run``, ``status`` and ``best``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from study.commands.parameters import (
    CLUSTER,
    PLACES,
    DataFolder,
    MlflowOption,
    Results,
    ResultsOption,
    StudyFile,
    console,
)
from study.exit_codes import TRIALS_FAILED
from study.given_place import given_text, place_or_url
from study.interruption import Interruption

MOST_NAMED_TRIALS = 20


def plan(
    file: StudyFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print the cells as a list in JSON.")] = False,
    measure: Annotated[
        bool, typer.Option("--measure", help="Estimate hours: train a few batches of the heaviest model of each cell.")
    ] = False,
    earlier: Annotated[
        Path | None,
        typer.Option(
            "--from",
            parser=place_or_url("--from"),
            metavar="RESULTS",
            help="Estimate hours from the records in the results folder of an earlier study.",
        ),
    ] = None,
    slots: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Trials that fit side by side, for the estimate. [default: as many as this machine would run]",
        ),
    ] = None,
    data: DataFolder = Path("data"),
) -> None:
    """Show what FILE would run, without running it.

    Of each cell: widths, parameters, trials, seeds, rungs and epochs. With --measure or --from also the hours.
    """
    from study import plan as planning
    from study.plan.hours import render_estimate
    from study.planned_hours import planned_hours
    from study.spec import load_study

    spec = load_study(file)
    planned = planning.plan(spec)
    told = planned_hours(
        planned,
        spec,
        earlier=earlier,
        data=data if measure else None,
        slots=slots,
    )
    if as_json:
        sys.stdout.write(json.dumps(planning.plan_json(planned, told), indent=2) + "\n")
    else:
        console().print(planning.render_plan(planned), "", render_estimate(told))


def run(
    context: typer.Context,
    file: StudyFile,
    results: ResultsOption = None,
    data: DataFolder = Path("data"),
    address: Annotated[
        str | None,
        typer.Option(
            parser=given_text("--address", "HOST:PORT or auto"),
            metavar="ADDRESS",
            rich_help_panel=CLUSTER,
            help="HOST:PORT of a running Ray cluster, or auto for the one of this machine. [default: a Ray of its own]",
        ),
    ] = None,
    mlflow: MlflowOption = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="NAME",
            rich_help_panel=PLACES,
            help="Run the study under another name, in a folder NAME beside its results.",
        ),
    ] = None,
    allow_version_differences: Annotated[
        bool,
        typer.Option(
            "--allow-version-differences",
            rich_help_panel=CLUSTER,
            help="Let nodes have other versions of the libraries than this machine.",
        ),
    ] = False,
    on_cpu: Annotated[
        bool,
        typer.Option("--on-cpu", rich_help_panel=CLUSTER, help="Use no GPU, even if the study file gives trials one."),
    ] = False,
) -> None:
    """Run the study in FILE, or go on with it: the same command resumes it.

    Trials that have ended are not run twice. Ctrl-C stops the study without losing what was recorded.

    Exit code: 0 when all is done, 1 if trials failed, 2 on wrong input, 75 if its Ray is gone, 130 if it was stopped.
    """
    from study.cluster import prepare_environment

    prepare_environment(joins=address is not None)
    from study.driver import run_study
    from study.outcome import print_outcome
    from study.run_options import RunOptions
    from study.spec import load_study

    folder = Path("results") / load_study(file).name if results is None else results
    if name is not None:
        folder = folder.parent / name if folder.name else folder.resolve().parent / name
    screen = console()
    options = RunOptions(
        results=folder,
        data=data,
        address=address,
        mlflow=mlflow,
        name=name,
        allow_version_differences=allow_version_differences,
        on_cpu=on_cpu,
    )
    end = run_study(file, options, screen, context.find_object(Interruption))
    print_outcome(end.tables, folder, mlflow, screen)
    if end.failed:
        raise typer.Exit(TRIALS_FAILED)


def status(
    results: Results,
    every: Annotated[
        bool, typer.Option("--all", help="Name every trial that failed or diverged, not only the first 20.")
    ] = False,
) -> None:
    """Show how the study in RESULTS stands: cells, trials, best values, faults.

    It reads the records alone, so it works while the study runs, from another machine, and after it died.
    """
    from study.live_view import render_view
    from study.status import how_to_go_on, study_status

    found = study_status(results)
    screen = console()
    screen.print(render_view(found.view, screen.width))
    named = found.troubles if every else found.troubles[:MOST_NAMED_TRIALS]
    more = len(found.troubles) - len(named)
    hidden = [f"and {more} more, which --all names"] if more else []
    for line in (*named, *hidden, *found.left_out, *how_to_go_on(found, results)):
        screen.print(line, highlight=False, markup=False, soft_wrap=True)


def best(
    results: Results,
    cell: Annotated[
        str | None, typer.Argument(metavar="CELL", help="Id of a cell, or words of its name. [default: every cell]")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=place_or_url("--out"),
            metavar="PATH",
            help="A .yaml file, or a folder that gets one for each cell, or the URL of either. [default: the screen]",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over what is there.")] = False,
) -> None:
    """Write the best configuration of each cell, or of CELL, as a study file that runs as it is."""
    from study.best import NoSuchCellError, best_of_study
    from study.best_file import best_study_text, write_best

    try:
        found = best_of_study(results, cell)
    except NoSuchCellError:
        from reports.evidence.cell_evidence import evidence
        from reports.evidence.find_cell import find_cell
        from study.results import ResultsFolder

        if cell is None or not ResultsFolder(results).plan_file.exists():
            raise

        found = best_of_study(results, find_cell(evidence(results), cell).cell)
    if out is None:
        sys.stdout.write(best_study_text(found.cells, found.spec))
    else:
        for path in write_best(found, out, force=force):
            console().print(str(path), markup=False, highlight=False, soft_wrap=True)
    for name in found.without:
        sys.stderr.write(f"{name}: left out, no search trial of it has gone all the way yet\n")
