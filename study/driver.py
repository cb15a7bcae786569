"""A study from its file to its tables: what ``run_study.py run`` does, in order."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bimp.data import load_or_prepare, open_prepared
from reports import TableFiles, write_tables
from study.cell_run import PlannedTrial
from study.cluster import start_ray, stop_on_sigterm, stop_ray
from study.coordinator import MakeAssignment, StudyCoordinator
from study.faults import StudyInterruptedError, require_folder
from study.live_view import LiveView
from study.plan import StudyPlan, identity_differences, plan_document
from study.plan import plan as plan_study
from study.provenance import git_state
from study.records import replacing
from study.results import ResultsFolder, ResultsFolderError
from study.spec import StudySpec, load_study
from study.tracking import MirrorThread, require_known_scheme
from study.trial import TrialAssignment
from study.tune_bridge import tune_study


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where a study runs and where things lie; nothing in it changes a number.

    Attributes:
        results: the results folder. data: folder of the prepared datasets.
        address: of a running Ray cluster; None starts a local one.
        mlflow: tracking URI; None for a database in the results folder.
    """

    results: Path
    data: Path
    address: str | None
    mlflow: str | None


@dataclass(frozen=True)
class StudyEnd:
    """What a run leaves: the tables, and how many trials failed (the next run tries them again)."""

    tables: TableFiles
    failed: int


def run_study(study_file: Path, options: RunOptions, console: Console) -> StudyEnd:
    """Run, or take up again, the study in ``study_file`` and write its tables.

    Raises:
        SpecError: the file is no study that can run. ResultsFolderError: the results folder holds another study, or
            another run works in it.
        DataError: a dataset cannot be prepared. ClusterError: no trial fits on the cluster.
        FolderError: no results or data can be written where they should be.
        StudyInterruptedError: Ctrl-C or SIGTERM; what ended is on record.
    """
    folder = ResultsFolder(options.results.resolve())
    try:
        failed = _run_to_its_end(study_file, folder, options, console)
        if failed is not None:
            return StudyEnd(write_tables(folder.root, folder.tables), failed)
    except KeyboardInterrupt:
        pass  # before training, or a second time while the first was being heeded
    raise StudyInterruptedError(f"stopped; nothing that ended is lost; the same command goes on in {folder.root}")


def _run_to_its_end(study_file: Path, folder: ResultsFolder, options: RunOptions, console: Console) -> int | None:
    """Run what is left of the study; the number of failed trials, or None if it was interrupted."""
    if options.mlflow is not None:
        require_known_scheme(options.mlflow)
    spec = load_study(study_file)
    plan = plan_study(spec)
    require_folder(folder.root, "--results")
    with folder.for_one_run():
        claim(folder, study_file, spec, plan)
        fingerprints = _checked_data(plan, options.data, console)
        assign = _assignments(spec, folder, options, fingerprints)
        coordinator = StudyCoordinator(spec, plan, folder, fingerprints, assign)
        if not coordinator.done:
            _train(coordinator, spec, folder, options, console)
        elif options.mlflow is not None:
            with MirrorThread(options.mlflow, folder.root):
                pass  # nothing to train, but this server may not have it yet
    return _tell_of_failures(coordinator, folder, console) if coordinator.done else None


def _tell_of_failures(coordinator: StudyCoordinator, folder: ResultsFolder, console: Console) -> int:
    tallies = [run.tally for run in coordinator.cells.values()]
    failed = sum(tally.search["failed"] + tally.confirm["failed"] for tally in tallies)
    if failed:
        console.print(
            f"{failed} {'trial' if failed == 1 else 'trials'} failed (run_study.py status {folder.root} names the "
            f"causes, {folder.errors} has the tracebacks); the same command tries again",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    return failed


def _train(
    coordinator: StudyCoordinator, spec: StudySpec, folder: ResultsFolder, options: RunOptions, console: Console
) -> None:
    slots = start_ray(options.address, spec.resources)
    stop_on_sigterm()
    beside = "one at a time" if slots == 1 else f"{slots} side by side"
    console.print(
        f"{spec.name}: {_amount(coordinator)}, {beside}; results in {folder.root}", markup=False, soft_wrap=True
    )
    try:
        with (
            MirrorThread(options.mlflow, folder.root, done=lambda: coordinator.done),
            LiveView(lambda: coordinator.view(slots), console),
        ):
            tune_study(coordinator, folder, spec.resources, slots)
    finally:
        stop_ray()
        shutil.rmtree(folder.tune, ignore_errors=True)


def claim(folder: ResultsFolder, study_file: Path, spec: StudySpec, plan: StudyPlan) -> None:
    """Make ``folder`` this study's, or check that it is.

    Raises:
        ResultsFolderError: it holds a study with other cells, spaces, seeds or training.
        FolderError: it is no folder, and cannot be made one.
    """
    require_folder(folder.root, "--results")
    folder.create()
    if folder.study_file.exists():
        differences = identity_differences(load_study(folder.study_file), spec)
        if differences:
            raise ResultsFolderError(
                f"{folder.root}: holds another study than {study_file} ({'; '.join(differences)}); "
                "name another folder with --results"
            )
    with replacing(folder.study_file) as temporary:
        temporary.write_bytes(study_file.read_bytes())
    with replacing(folder.plan_file) as temporary:
        temporary.write_text(json.dumps(plan_document(plan), indent=2) + "\n")


def _amount(coordinator: StudyCoordinator) -> str:
    goals = [run.goal for run in coordinator.cells.values()]
    search, confirm = sum(goal.trials for goal in goals), sum(goal.confirm_trials for goal in goals)
    counted = ((len(goals), "cell"), (search, "search trial"), (confirm, "confirm trial"))
    return ", ".join(f"{count} {name if count == 1 else f'{name}s'}" for count, name in counted)


def _checked_data(plan: StudyPlan, root: Path, console: Console) -> dict[str, str]:
    """The fingerprint of every dataset of the plan, prepared where it is missing and checked where it is there."""
    require_folder(root, "--data")
    fingerprints = {}
    encodings: dict[str, int] = {}
    for cell in plan.cells:
        encodings[cell.dataset] = max(encodings.get(cell.dataset, 0), cell.setting("pos_enc_dim") or 0)
    for name, count in encodings.items():
        load_or_prepare(name, root, positional_encodings=count)
        dataset = open_prepared(name, root, verify=True)
        console.print(dataset.describe(), markup=False, highlight=False, soft_wrap=True)
        fingerprints[name] = dataset.fingerprint
    return fingerprints


def _assignments(
    spec: StudySpec, folder: ResultsFolder, options: RunOptions, fingerprints: dict[str, str]
) -> MakeAssignment:
    code = git_state(Path(__file__).parent)

    def complete(trial: PlannedTrial) -> TrialAssignment:
        return TrialAssignment(
            key=trial.key,
            study=spec.name,
            cell=trial.cell,
            phase=trial.phase,
            number=trial.number,
            chosen_from=trial.chosen_from,
            budget=trial.budget,
            config=trial.config,
            data_fingerprint=fingerprints[trial.config.dataset],
            data_root=str(options.data.resolve()),
            results=str(folder.root),
            threads=max(1, int(spec.resources.cpus_per_trial)),
            use_gpu=spec.resources.gpus_per_trial > 0,
            git_commit=code.commit,
            git_dirty=code.dirty,
        )

    return complete
