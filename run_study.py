"""Plan, run and watch a study: ``python run_study.py --help``."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)

StudyFile = Annotated[Path, typer.Argument(metavar="FILE", help="The study, a YAML file as in search_spaces/.")]
DataFolder = Annotated[
    Path, typer.Option("--data", envvar="BIMP_DATA", help="Folder of the prepared datasets.", show_default=True)
]
ResultsOption = Annotated[Path | None, typer.Option("--results", help="Results folder.  [default: results/NAME]")]

WIDTH_OF_FILES = 120
NETWORK_PATIENCE_S = 20.0
"""After so long without a byte a download has failed; the libraries that download would wait for ever."""

TRIALS_FAILED = 1
WRONG_INPUT = 2
INTERRUPTED = 130


@app.command()
def plan(file: StudyFile, as_json: Annotated[bool, typer.Option("--json", help="A list of cells.")] = False) -> None:
    """Show what FILE would run, without spending anything: cells, widths, parameters, trials, seeds, rungs."""
    from study import plan as planning
    from study.spec import load_study

    planned = planning.plan(load_study(file))
    if as_json:
        sys.stdout.write(json.dumps(planning.plan_json(planned), indent=2) + "\n")
    else:
        _console().print(planning.render_plan(planned))


@app.command()
def run(
    file: StudyFile,
    results: ResultsOption = None,
    data: DataFolder = Path("data"),
    address: Annotated[str | None, typer.Option(help="Address of a running Ray cluster; else a local one.")] = None,
    mlflow: Annotated[str | None, typer.Option(help="MLflow tracking URI; else RESULTS/mlflow.db.")] = None,
) -> None:
    """Run the study in FILE, or go on with it: the same command resumes, and finished trials are not run twice.

    Ends with 0; with 1 if trials failed, with 2 on wrong input, with 130 if it was stopped.
    """
    from study.cluster import prepare_environment

    prepare_environment(joins=address is not None)
    from study.driver import RunOptions, run_study
    from study.outcome import print_outcome
    from study.spec import load_study

    folder = results or Path("results") / load_study(file).name
    console = _console()
    options = RunOptions(results=folder, data=data, address=address, mlflow=mlflow)
    end = run_study(file, options, console)
    print_outcome(end.tables, folder, mlflow, console)
    if end.failed:
        raise typer.Exit(TRIALS_FAILED)


@app.command()
def status(results: Annotated[Path, typer.Argument(metavar="DIR", help="The results folder.")]) -> None:
    """Show how the study in DIR stands, from its records alone; works while it runs and after it stopped."""
    from study.live_view import render_view
    from study.status import study_status

    view, troubles = study_status(results)
    console = _console()
    console.print(render_view(view))
    if view.running:
        console.print("running: under way, or begun by a run that stopped and waiting for the next", soft_wrap=True)
    for line in troubles:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


@app.command("rebuild-mlflow")
def rebuild_mlflow(
    results: Annotated[Path, typer.Argument(metavar="DIR", help="The results folder.")],
    mlflow: Annotated[str | None, typer.Option(help="MLflow tracking URI; else DIR/mlflow.db.")] = None,
) -> None:
    """Bring MLflow up to the records in DIR: what it holds already stays, and a second time changes nothing."""
    from study.tracking import MirrorError, MlflowMirror, default_tracking_uri, masked, mirror_errors

    mirror = MlflowMirror(mlflow or default_tracking_uri(results), results)
    try:
        read = mirror.sync_folder()
        mirror.finish()
    except mirror_errors() as error:
        uri = masked(mirror.tracking_uri)
        raise MirrorError(f"{uri}: MLflow cannot be written ({type(error).__name__}); is it running?") from error
    _console().print(f"{read} records mirrored to {masked(mirror.tracking_uri)}", markup=False, soft_wrap=True)


@app.command()
def prepare(
    dataset: Annotated[str, typer.Argument(help="digits, cluster, zinc or enzymes.")],
    data: DataFolder = Path("data"),
    raw: Annotated[Path | None, typer.Option("--from", help="Folder of raw files placed by hand.")] = None,
    trust: Annotated[bool, typer.Option(help="Unpickle raw files of unknown checksum.")] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of a generated dataset.")] = None,
    size: Annotated[int | None, typer.Option(help="Training graphs of a generated dataset.")] = None,
    force: Annotated[bool, typer.Option(help="Prepare anew over what is there.")] = False,
) -> None:
    """Prepare DATASET once for all trials: pack it, checksum it, and show its statistics."""
    from bimp.data import prepare as prepare_dataset
    from study.faults import require_folder

    require_folder(data, "--data")
    prepared = prepare_dataset(dataset, data, raw=raw, trust=trust, seed=seed, size=size, force=force)
    _console().print(prepared.describe(), markup=False, highlight=False, soft_wrap=True)


def _console() -> Console:
    """The terminal at its width; files and pipes get one that cuts nothing."""
    return Console() if sys.stdout.isatty() else Console(width=WIDTH_OF_FILES)


def main() -> None:
    """Run the command line; wrong input ends in one line and exit code 2."""
    socket.setdefaulttimeout(NETWORK_PATIENCE_S)
    try:
        app()
    except Exception as error:
        from study.faults import INTERRUPTIONS, in_one_line

        if isinstance(error, INTERRUPTIONS):
            sys.stderr.write(f"{error}\n")
            sys.exit(INTERRUPTED)
        told = in_one_line(error)
        if told is None:
            raise
        sys.stderr.write(f"error: {told}\n")
        sys.exit(WRONG_INPUT)


if __name__ == "__main__":
    main()
