"""A study from its file to its tables: what ``run_study.py run`` does, in order."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from bimp.data import load_or_prepare, open_prepared
from reports import TableFiles, write_tables
from study.assignments import Assignments
from study.claim import claim
from study.cluster import Slots
from study.cluster_address import answering_cluster
from study.cluster_watch import ClusterLostError
from study.coordinator import StudyCoordinator
from study.counted import counted
from study.faults import StudyInterruptedError, goes_on_in, require_folder
from study.interruption import Interruption
from study.kept_log import kept_log
from study.lease import Lease
from study.live_view import LiveView
from study.location import absolute, is_remote
from study.outcome import failures_line
from study.plan import StudyPlan
from study.plan import plan as plan_study
from study.provenance import git_state
from study.results import ResultsFolder
from study.run_options import RunOptions
from study.spec import StudySpec, read_study, study_text
from study.store_access import refused_by_store
from study.study_ray import Tell, ray_of_study
from study.tracking import MirrorThread, default_tracking_uri, own_database, require_tracking_uri
from study.used_data import keep_used_data

logger = logging.getLogger(__name__)

UNWINDING_S = 20.0
"""How long a run that is to stop may take to leave Ray, MLflow and its folder in order."""


@dataclass(frozen=True)
class StudyEnd:
    """What a run leaves: the tables, and how many trials failed (the next run tries them again)."""

    tables: TableFiles
    failed: int


def run_study(
    study_file: Path, options: RunOptions, console: Console, interruption: Interruption | None = None
) -> StudyEnd:
    """Run, or take up again, the study in ``study_file`` and write its tables; ``interruption`` can end it early.

    Raises:
        SpecError: the file is no study that can run. ResultsFolderError: the results folder holds another study, or
            another run works in it.
        DataError: a dataset cannot be prepared. ClusterError: no trial fits on the cluster.
        ClusterAddressError: no cluster answers at the address. MirrorError: the tracking URI can be none.
        FolderError: no results or data can be written where they should be.
        NodeError: a node is not fit for the study. CodeError: the study's layers cannot be sent to the nodes.
        StoreAccessError: the object store of the results does not answer as it should.
        JournalError, RecordError: what the results folder holds cannot be read. LeaseLostError: another run took it.
        StudyInterruptedError: it was ended early; what ended is on record.
        ClusterLostError: the cluster is gone, or the local Ray and each that was started in its place.
    """
    folder = ResultsFolder(absolute(options.results))
    interruption = interruption or Interruption()
    interruption.last_words = f"stopped; {goes_on_in(folder.root)}"
    try:
        end = _run_to_its_end(study_file, folder, options, console, interruption)
        if end is not None:
            return end
    except KeyboardInterrupt:
        pass  # before training, or a second time while the first was being heeded
    except ClusterLostError as error:
        raise ClusterLostError(f"{error}; {goes_on_in(folder.root)}") from error
    except Exception as error:
        refused = refused_by_store(folder.root, error)
        if refused is None:
            raise
        raise refused from error
    raise StudyInterruptedError(interruption.last_words)


def _run_to_its_end(
    study_file: Path, folder: ResultsFolder, options: RunOptions, console: Console, interruption: Interruption
) -> StudyEnd | None:
    """Run what is left of the study and write its tables; None if it was interrupted."""
    text = study_text(study_file, options.name)
    spec = read_study(text, str(study_file))
    plan = plan_study(spec)
    if options.mlflow is not None:
        require_tracking_uri(options.mlflow)
    if options.address is not None:
        options = replace(options, address=answering_cluster(options.address))
    require_folder(folder.root, "--results")
    tell = _teller(console)
    with Lease(folder, tell=tell) as lease:
        interruption.last_acts.append(lease.give_back)
        interruption.patience_s = UNWINDING_S
        for note in claim(folder, study_file, text, spec, plan):
            tell(note)
        fingerprints = _checked_data(plan, options.data, folder, tell)
        assign = Assignments(spec, folder, options, fingerprints)
        coordinator = StudyCoordinator(spec, plan, folder, fingerprints, assign, lease.attempt)
        for reason, number in coordinator.retired.items():
            tell(f"superseded, on record but in no table from now on: {counted(number, 'confirm trial')} ({reason})")
        if not coordinator.done:
            with kept_log(folder, lease.attempt), _logged(coordinator, spec):
                tables = _train(coordinator, assign, plan, folder, lease, console, interruption)
        else:
            tables = write_tables(folder.root, folder.tables)
            if options.mlflow is not None or own_database(folder.root).exists():
                with MirrorThread(options.mlflow, folder.root, tell=tell):
                    pass  # nothing to train, but MLflow may lack it: another server, a run that was killed, an edit
    return StudyEnd(tables, _tell_of_failures(coordinator, folder, tell)) if tables is not None else None


@contextmanager
def _logged(coordinator: StudyCoordinator, spec: StudySpec) -> Iterator[None]:
    """Say in the log when the run began, and how it ended; the screen is told by others."""
    code = git_state()
    commit = f"commit {code.commit}{' with changes' if code.dirty else ''}" if code.commit else "no known commit"
    logger.info("%s: %s; %s", spec.name, _amount(coordinator), commit, extra={"event": "run_began"})
    try:
        yield
    except KeyboardInterrupt:
        logger.info("the run was stopped at once", extra={"event": "run_stopped"})
        raise
    except BaseException as error:
        logger.info("the run ends with %s: %s", type(error).__name__, error, extra={"event": "run_broke"})
        raise
    told = "the run ends, and all is done" if coordinator.done else "the run was stopped"
    logger.info("%s", told, extra={"event": "run_ended" if coordinator.done else "run_stopped"})


def _tell_of_failures(coordinator: StudyCoordinator, folder: ResultsFolder, tell: Tell) -> int:
    tallies = [run.tally for run in coordinator.cells.values()]
    failed = sum(tally.search["failed"] + tally.confirm["failed"] for tally in tallies)
    if failed:
        tell(failures_line(failed, folder))
    return failed


def _train(
    coordinator: StudyCoordinator,
    assign: Assignments,
    plan: StudyPlan,
    folder: ResultsFolder,
    lease: Lease,
    console: Console,
    interruption: Interruption,
) -> TableFiles | None:
    """Train what is left; the tables, or None if it was interrupted."""
    options, tell = assign.options, _teller(console)
    with ray_of_study(assign, plan, folder, interruption, tell) as ray:
        _tell_what_runs(coordinator, assign, ray.pool.slots, folder, tell)
        with MirrorThread(
            options.mlflow,
            folder.root,
            done=lambda: coordinator.done,
            ended_cells=lambda: coordinator.ended_cells,
            tell=tell,
        ):
            with LiveView(lambda: coordinator.view(ray.pool.slots.total), console):
                ray.train(coordinator, folder, lease)
            # Within the mirror's block, whose end takes the tables to MLflow.
            return write_tables(folder.root, folder.tables) if coordinator.done else None


def _tell_what_runs(
    coordinator: StudyCoordinator, assign: Assignments, slots: Slots, folder: ResultsFolder, tell: Tell
) -> None:
    options = assign.options
    if options.address is not None:
        tell(f"joined the Ray cluster at {options.address}")
    beside = "one at a time" if slots.total == 1 else f"{slots.total} side by side"
    tell(f"{assign.spec.name}: {_amount(coordinator)}, {beside}; results in {folder.root}")
    if is_remote(folder.root) and options.mlflow is None:
        tell(f"no database lies in an object store: MLflow's is {default_tracking_uri(folder.root)}")


def _teller(console: Console) -> Tell:
    """Prints lines as they are."""
    return partial(console.print, markup=False, highlight=False, soft_wrap=True)


def _amount(coordinator: StudyCoordinator) -> str:
    goals = [run.goal for run in coordinator.cells.values()]
    search, confirm = sum(goal.trials for goal in goals), sum(goal.confirm_trials for goal in goals)
    amounts = ((len(goals), "cell"), (search, "search trial"), (confirm, "confirm trial"))
    return ", ".join(counted(number, noun) for number, noun in amounts)


def _checked_data(plan: StudyPlan, root: Path, folder: ResultsFolder, tell: Tell) -> dict[str, str]:
    """The fingerprint of every dataset of the plan, prepared where it is missing and checked where it is there."""
    require_folder(root, "--data")
    datasets = []
    encodings: dict[str, int] = {}
    for cell in plan.cells:
        encodings[cell.dataset] = max(encodings.get(cell.dataset, 0), cell.setting("pos_enc_dim") or 0)
    for name, count in encodings.items():
        load_or_prepare(name, root, positional_encodings=count)
        dataset = open_prepared(name, root, verify=True)
        tell(dataset.describe())
        datasets.append(dataset)
    keep_used_data(folder, datasets)
    return {dataset.name: dataset.fingerprint for dataset in datasets}
