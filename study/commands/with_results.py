"""What is done with the results of a study: ``rebuild-mlflow``, ``compact`` and ``smoothing``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from study.commands.parameters import DataFolder, MlflowOption, Results, console
from study.counted import counted


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
    files = f"; sent to it: {counted(sent, 'file')}" if sent else ""
    line = f"{masked(mirror.tracking_uri)}: holds {counted(read, 'record')} of {results}{files}"
    console().print(line, markup=False, highlight=False, soft_wrap=True)


def compact(results: Results) -> None:
    """Move the records in RESULTS into one file, which is faster to read for large studies.

    Nothing of their content changes. No run may work in RESULTS meanwhile.
    """
    from study.compaction import compact as compact_records

    console().print(compact_records(results).describe(), markup=False, highlight=False, soft_wrap=True)


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

    screen = console()
    for trial in measure_study(results, data, force=force, trust=trust):
        name = f"{trial.record.cell}, seed {trial.record.seed}"
        name += "" if trial.record.fold is None else f", fold {trial.record.fold}"
        kept = f"{trial.path}" if trial.new else f"{trial.path} (was there)"
        line = "no weights were kept, left out" if trial.path is None else kept
        screen.print(f"{name}: {line}", markup=False, highlight=False, soft_wrap=True)
