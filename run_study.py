"""Plan, run and watch a study: ``python run_study.py --help``."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from study.exit_codes import CLUSTER_LOST, INTERRUPTED, TRIALS_FAILED, WRONG_INPUT
from study.given_place import given_text, local_path, place_or_url
from study.interruption import Interruption
from study.one_line import one_line
from study.signals import ProcessSignals

app = typer.Typer(
    rich_markup_mode="markdown",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help=(
        "Plan, run and watch a study: search each cell of a study file for its best configuration, and train that "
        "again from every seed.\n\n"
        "The study files in search_spaces/ are there to begin with; aggregate.py makes tables and figures of "
        "the results. COMMAND --help says more of each."
    ),
    epilog=(
        "Examples:\n\n"
        "- `python run_study.py plan search_spaces/quickstart.yaml`\n\n"
        "- `python run_study.py run search_spaces/quickstart.yaml`"
    ),
)
_STUDY, _AFTER, _DATA = "A study", "With its results", "Data and checkpoints"
"""Groups of commands."""
_PLACES, _CLUSTER = "Where things lie", "Where it runs"
"""Groups of the options of ``run``."""


StudyFile = Annotated[
    Path,
    typer.Argument(
        parser=place_or_url("FILE", "a study file"),
        metavar="FILE",
        help="The study file, YAML as in search_spaces/, or its URL.",
    ),
]
DataFolder = Annotated[
    Path,
    typer.Option(
        "--data",
        envvar="BIMP_DATA",
        parser=local_path("--data"),
        metavar="PATH",
        help="Folder of the prepared datasets.",
        rich_help_panel=_PLACES,
    ),
]
ResultsOption = Annotated[
    Path | None,
    typer.Option(
        "--results",
        parser=place_or_url("--results"),
        metavar="DIR",
        rich_help_panel=_PLACES,
        help="Results folder, or its URL (s3://BUCKET/FOLDER, gs://...). [default: results/NAME, by the study's name]",
    ),
]
Results = Annotated[
    Path,
    typer.Argument(
        parser=place_or_url("RESULTS"),
        metavar="RESULTS",
        help="Results folder of the study, or its URL (s3://BUCKET/FOLDER, gs://...).",
    ),
]
MlflowOption = Annotated[
    str | None,
    typer.Option(
        "--mlflow",
        parser=given_text("--mlflow", "a tracking URI"),
        metavar="URI",
        rich_help_panel=_PLACES,
        help="Tracking URI of MLflow. [default: mlflow.db in the results folder]",
    ),
]

WIDTH_OF_FILES = 120
MOST_NAMED_TRIALS = 20
NETWORK_PATIENCE_S = 20.0
"""After so long without a byte a download has failed; the libraries that download would wait for ever."""


@app.command(
    rich_help_panel=_STUDY,
    epilog=(
        "Examples:\n\n"
        "- `python run_study.py plan search_spaces/quickstart.yaml`\n\n"
        "- `python run_study.py plan search_spaces/zinc_100k.yaml --measure --slots 8`"
    ),
)
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
            help="Trials that run side by side, for the estimate. [default: as many as this machine would run]",
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
        _console().print(planning.render_plan(planned), "", render_estimate(told))


@app.command(
    rich_help_panel=_STUDY,
    epilog=(
        "Examples:\n\n"
        "- `python run_study.py run search_spaces/quickstart.yaml`\n\n"
        "- `python run_study.py run search_spaces/zinc_100k.yaml --address auto`\n\n"
        "- `python run_study.py run search_spaces/tiny.yaml --as second_try`"
    ),
)
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
            rich_help_panel=_CLUSTER,
            help="HOST:PORT of a running Ray cluster, or auto for the one of this machine. [default: a Ray of its own]",
        ),
    ] = None,
    mlflow: MlflowOption = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="NAME",
            rich_help_panel=_PLACES,
            help="Run the study under another name, in a folder NAME beside its results.",
        ),
    ] = None,
    allow_version_differences: Annotated[
        bool,
        typer.Option(
            "--allow-version-differences",
            rich_help_panel=_CLUSTER,
            help="Let nodes have other versions of the libraries than this machine.",
        ),
    ] = False,
    on_cpu: Annotated[
        bool,
        typer.Option("--on-cpu", rich_help_panel=_CLUSTER, help="Use no GPU, even if the study file gives trials one."),
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
    console = _console()
    options = RunOptions(
        results=folder,
        data=data,
        address=address,
        mlflow=mlflow,
        name=name,
        allow_version_differences=allow_version_differences,
        on_cpu=on_cpu,
    )
    end = run_study(file, options, console, context.find_object(Interruption))
    print_outcome(end.tables, folder, mlflow, console)
    if end.failed:
        raise typer.Exit(TRIALS_FAILED)


@app.command(rich_help_panel=_STUDY, epilog=("Example:\n\n- `python run_study.py status results/quickstart`"))
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
    console = _console()
    console.print(render_view(found.view, console.width))
    named = found.troubles if every else found.troubles[:MOST_NAMED_TRIALS]
    more = len(found.troubles) - len(named)
    hidden = [f"and {more} more, which --all names"] if more else []
    for line in (*named, *hidden, *found.left_out, *how_to_go_on(found, results)):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


@app.command(
    rich_help_panel=_STUDY,
    epilog=(
        "Examples:\n\n"
        "- `python run_study.py best results/quickstart`\n\n"
        '- `python run_study.py best results/quickstart "Digits bi-GCN" --out best.yaml`'
    ),
)
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
            _console().print(str(path), markup=False, highlight=False, soft_wrap=True)
    for name in found.without:
        sys.stderr.write(f"{name}: left out, no search trial of it has gone all the way yet\n")


@app.command(
    "rebuild-mlflow",
    rich_help_panel=_AFTER,
    epilog=(
        "Examples:\n\n"
        "- `python run_study.py rebuild-mlflow results/zinc_100k`\n\n"
        "- `python run_study.py rebuild-mlflow results/zinc_100k --mlflow http://HOST:5000`"
    ),
)
def rebuild_mlflow(
    results: Results,
    mlflow: MlflowOption = None,
) -> None:
    """Send to MLflow what RESULTS holds and MLflow does not.

    That is records, and the tables, figures and page.html that aggregate.py wrote there. What MLflow holds already
    stays; a second time changes nothing.
    """
    from study.tracking import (
        MirrorError,
        MlflowMirror,
        default_tracking_uri,
        masked,
        mirror_errors,
        require_tracking_uri,
        told_error,
    )

    if mlflow is not None:
        require_tracking_uri(mlflow)
    mirror = MlflowMirror(mlflow or default_tracking_uri(results), results)
    try:
        read = mirror.sync_folder()
        sent = mirror.sync_files()
        mirror.mark_as_it_stands()
    except mirror_errors() as error:
        cause = told_error(error, mirror.tracking_uri)
        raise MirrorError(
            f"{masked(mirror.tracking_uri)}: MLflow cannot be written ({cause}); mend it, or name another with --mlflow"
        ) from error
    files = f", and {sent} files with them" if sent else ""
    _console().print(f"{read} records mirrored to {masked(mirror.tracking_uri)}{files}", markup=False, soft_wrap=True)


@app.command(rich_help_panel=_AFTER, epilog=("Example:\n\n- `python run_study.py compact results/zinc_100k`"))
def compact(results: Results) -> None:
    """Move the records in RESULTS into one file, which is faster to read for large studies.

    Nothing of their content changes. No run may work in RESULTS meanwhile.
    """
    from study.compaction import compact as compact_records

    _console().print(compact_records(results).describe(), markup=False, highlight=False, soft_wrap=True)


@app.command(rich_help_panel=_AFTER, epilog=("Example:\n\n- `python run_study.py smoothing results/zinc_100k`"))
def smoothing(
    results: Results,
    data: DataFolder = Path("data"),
    force: Annotated[bool, typer.Option("--force", help="Measure again what was measured already.")] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Import the users' own layers that records name: runs their code.")
    ] = False,
) -> None:
    """Measure over-smoothing on the test graphs, layer by layer.

    It takes the weights of the confirm trials that the study in RESULTS kept; aggregate.py figures draws the outcome.
    """
    from study.smoothing import measure_study

    console = _console()
    for trial in measure_study(results, data, force=force, trust=trust):
        name = f"{trial.record.cell}, seed {trial.record.seed}"
        name += "" if trial.record.fold is None else f", fold {trial.record.fold}"
        kept = f"{trial.path}" if trial.new else f"{trial.path} (was there)"
        line = "no weights were kept, left out" if trial.path is None else kept
        console.print(f"{name}: {line}", markup=False, highlight=False, soft_wrap=True)


@app.command(
    rich_help_panel=_DATA, epilog=("Example:\n\n- `python run_study.py evaluate model.pkl config.json --fold 0`")
)
def evaluate(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            parser=local_path("CHECKPOINT"), metavar="CHECKPOINT", help="File with a state dict of the released code."
        ),
    ],
    config: Annotated[
        Path, typer.Argument(parser=local_path("CONFIG"), metavar="CONFIG", help="Its configuration, a JSON file.")
    ],
    data: DataFolder = Path("data"),
    fold: Annotated[
        int | None, typer.Option(metavar="N", help="Fold, from 0; needed where the dataset has folds.")
    ] = None,
) -> None:
    """Measure a checkpoint of the authors' released code on a prepared dataset."""
    from study.released_checkpoint import evaluate_checkpoint, render_report

    _console().print(render_report(evaluate_checkpoint(checkpoint, config, data, fold=fold)))


@app.command(
    rich_help_panel=_DATA,
    epilog=(
        "Examples:\n\n"
        "- `python run_study.py prepare digits`\n\n"
        "- `python run_study.py prepare cluster --seed 0 --size 500`\n\n"
        "- `python run_study.py prepare zinc --from FOLDER --trust`"
    ),
)
def prepare(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET", help="digits, zinc, smnist, cifar10, tsp, cluster, pattern, dd, enzymes or proteins."
        ),
    ],
    data: DataFolder = Path("data"),
    raw: Annotated[
        Path | None,
        typer.Option(
            "--from",
            parser=local_path("--from"),
            metavar="PATH",
            help="Folder of raw files placed by hand. [default: download or make them]",
        ),
    ] = None,
    maker: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Way to the graphs: benchmark, generated, images or tours. [default: what --from or --seed fits]",
        ),
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Unpickle raw files of unknown checksum: this may run code in them.")
    ] = False,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of a generated dataset. [default: 0]")] = None,
    size: Annotated[
        int | None, typer.Option(metavar="N", help="Training graphs, for a smaller dataset. [default: as published]")
    ] = None,
    pos_enc: Annotated[
        int, typer.Option(metavar="N", help="Laplacian positional encodings of each node; added where missing.")
    ] = 0,
    processes: Annotated[
        int | None, typer.Option(metavar="N", help="Processes that make graphs. [default: one for each core]")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Prepare again, over what is there.")] = False,
) -> None:
    """Prepare DATASET for all trials: make or download its graphs, pack them, show their statistics.

    The command run does this by itself where a dataset is missing. More of each dataset: docs/data.md.
    """
    from bimp.data import prepare as prepare_dataset
    from bimp.data.parallel import available_processes
    from study.faults import require_folder

    require_folder(data, "--data")
    prepared = prepare_dataset(
        dataset,
        data,
        maker=maker,
        raw=raw,
        trust=trust,
        seed=seed,
        size=size,
        positional_encodings=pos_enc,
        processes=processes or available_processes(),
        force=force,
    )
    _console().print(prepared.describe(), markup=False, highlight=False, soft_wrap=True)


def _console() -> Console:
    """The terminal at its width; files and pipes get one that cuts nothing."""
    return Console() if sys.stdout.isatty() else Console(width=WIDTH_OF_FILES, force_terminal=False)


def program() -> None:
    """The whole program: :func:`main` in a process of its own, which a signal ends with one line and exit code 130."""
    interruption = Interruption()
    signals = ProcessSignals(interruption, INTERRUPTED)
    try:
        try:
            signals.take()
            main(interruption)
        finally:
            signals.settle()
    except KeyboardInterrupt:
        signals.end_now()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            signals.leave()
        raise


def main(interruption: Interruption | None = None) -> None:
    """Run the command line; wrong input ends in one line and exit code 2."""
    socket.setdefaulttimeout(NETWORK_PATIENCE_S)
    try:
        app(obj=interruption)
    except Exception as error:
        from study.cluster_watch import ClusterLostError
        from study.faults import INTERRUPTIONS, in_one_line

        if isinstance(error, INTERRUPTIONS):
            sys.stderr.write(f"{error}\n")
            sys.exit(INTERRUPTED)
        if isinstance(error, ClusterLostError):
            sys.stderr.write(f"{error}\n")
            sys.exit(CLUSTER_LOST)
        told = in_one_line(error)
        if told is None:
            raise
        sys.stderr.write(f"error: {one_line(told)}\n")
        sys.exit(WRONG_INPUT)


if __name__ == "__main__":
    program()
