"""Ray Tune's side of a study: one Tuner whose searcher and scheduler ask the dispatch, which asks the coordinator.

Tune's own snapshots and retries are not used: every start is a fresh Tuner over what records and journal know, and a
trial that is tried again is a new one to Tune.
"""

from __future__ import annotations

import logging
import os
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ray
from ray import tune
from ray.tune.experiment import Trial
from ray.tune.progress_reporter import TrialProgressCallback
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher

from study.cluster_watch import ClusterLostError, ClusterWatch, Watched, leave_at_once
from study.coordinator import StudyCoordinator
from study.dispatch import Dispatch
from study.interruption import Interruption
from study.lease import Lease
from study.lost_workers import forgiving_tune
from study.pool import Pool
from study.results import ResultsFolder
from study.store import PatientStore, StoreNews
from study.tune_memory import NO_SNAPSHOTS, ForgetsEnded
from study.worker import run_assignment

logger = logging.getLogger(__name__)

MORE_THAN_SLOTS = str(10**6)
"""So many trials may wait in Tune: the dispatch hands out no more than there are slots, whose number changes."""

_KILLED_FOR_MEMORY = ("OutOfMemoryError", "running low on memory")
"""By these words Ray's error tells a worker that its memory monitor killed from one that vanished otherwise."""


def tune_study(
    coordinator: StudyCoordinator,
    folder: ResultsFolder,
    pool: Pool,
    lease: Lease,
    interruption: Interruption,
    cluster: Watched,
) -> None:
    """Run all that the coordinator has to give, as many trials side by side as the ``pool`` has slots.

    Where ``interruption`` asks for it, it ends early, each trial after its epoch; and at once where the ``cluster`` is
    gone. The whole program ends then where a call to Ray hangs.

    Raises:
        KeyboardInterrupt: it is to end at once.
        LeaseLostError: another run has taken the folder.
        ClusterLostError: Ray is gone, and was left; the coordinator's trials are still live.
    """
    os.environ.update(
        TUNE_MAX_PENDING_TRIALS_PG=MORE_THAN_SLOTS,
        TUNE_DISABLE_AUTO_CALLBACK_LOGGERS="1",
        TUNE_DISABLE_SIGINT_HANDLER="1",
        TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S="0",
        TUNE_FUNCTION_THREAD_TIMEOUT_S="600",
        **NO_SNAPSHOTS,
    )
    # Of its snapshot it would tell with a traceback that a full disk does not hold it.
    logging.getLogger("ray.tune.execution.experiment_state").setLevel(logging.CRITICAL)
    # At its end it lists, by ids of its own, trials that lost a worker; to it each try is a trial.
    logging.getLogger("ray.tune.tune").setLevel(logging.CRITICAL)
    news = StoreNews(folder)
    watch = ClusterWatch(cluster, partial(leave_at_once, folder.root, interruption))
    with interruption.heeding(), forgiving_tune(), watch:
        dispatch = Dispatch(coordinator, pool.slots, news, interruption)
        lease.on_loss = dispatch.errors.append
        coordinator.write_through(PatientStore(folder, news, interruption.pause, lease.require))
        # Nobody reads what Tune writes. In the results folder it would need room there, and make the folder anew where
        # its disk is gone. Workers write nothing through Tune, so the folder may be this machine's.
        with TemporaryDirectory(prefix="bimp-tune-", ignore_cleanup_errors=True) as scratch:
            try:
                follow = FollowsCluster(watch, pool, dispatch, lease)
                _tuner(dispatch, scratch, pool, interruption, follow).fit()
            except _LeftTune as left:
                if not (interruption.requested or dispatch.errors):
                    raise ClusterLostError(str(left)) from None
    if dispatch.errors:
        raise dispatch.errors[0]


def _tuner(
    dispatch: Dispatch, scratch: str, pool: Pool, interruption: Interruption, follow: FollowsCluster
) -> tune.Tuner:
    def resources(config: dict[str, Any]) -> tune.PlacementGroupFactory:
        asked = [pool.slots.asked_by(config["alone"])]
        if not config["avoided"]:
            return tune.PlacementGroupFactory(asked)
        elsewhere = {"ray.io/node-id": f"!in({','.join(config['avoided'])})"}
        return tune.PlacementGroupFactory(asked, bundle_label_selector=[elsewhere])

    return tune.Tuner(
        tune.with_resources(run_assignment, resources),
        tune_config=tune.TuneConfig(
            num_samples=-1,
            search_alg=CoordinatedSearcher(dispatch),
            scheduler=CoordinatedScheduler(dispatch),
            reuse_actors=True,
            # A trial that is tried again has a folder of its own.
            trial_dirname_creator=lambda trial: f"{trial.config['key']}-{trial.trial_id}",
        ),
        run_config=tune.RunConfig(
            name="tune",
            storage_path=scratch,
            verbose=0,
            failure_config=tune.FailureConfig(max_failures=0),
            stop=StopsAtOnce(dispatch),
            callbacks=[
                SilentProgress(),
                TrialsUnderWay(dispatch, interruption),
                ForgetsEnded(),
                follow,
            ],
        ),
    )


class _KeptFromSnapshots:
    """Tune pickles what it is given, for a snapshot that is never read; samplers hold locks that cannot be pickled."""

    def __getstate__(self) -> dict[str, Any]:
        return {}


class CoordinatedSearcher(_KeptFromSnapshots, Searcher):
    """Gives Tune the dispatch's trials, and tells it of their ends.

    What it raises, as for a record that cannot be read, Tune would print and go on without; it is kept in
    ``dispatch.errors`` instead, and ends the study.
    """

    def __init__(self, dispatch: Dispatch) -> None:
        super().__init__()
        self._dispatch = dispatch
        self._key_of: dict[str, str] = {}

    # Tune takes the word FINISHED too, which the signature of its base class does not say.
    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:  # type: ignore[override]
        """The next trial, None while all slots are taken or all that is left must wait, or the end for good."""
        try:
            assignment = self._dispatch.next_trial()
        except Exception as error:  # noqa: BLE001 - raised again by tune_study
            self._dispatch.errors.append(error)
            return None
        if assignment is None:
            return Searcher.FINISHED if self._dispatch.finished else None
        self._key_of[trial_id] = assignment.key
        return assignment.to_dict()

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Hear that no worker has the trial any more; ``error``: it was not the trial that ended."""
        try:
            self._dispatch.ended(self._key_of.pop(trial_id), lost=error)
        except Exception as raised:  # noqa: BLE001 - raised again by tune_study
            self._dispatch.errors.append(raised)


class CoordinatedScheduler(_KeptFromSnapshots, FIFOScheduler):
    """Lets Tune run trials as they come, and stops one where the dispatch says so."""

    def __init__(self, dispatch: Dispatch) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._dispatch = dispatch

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        """CONTINUE or STOP after a report; what it raises is kept in ``dispatch.errors``, as the searcher does."""
        try:
            keeps = self._dispatch.reported(trial.config["key"], result)
        except Exception as error:  # noqa: BLE001 - raised again by tune_study
            self._dispatch.errors.append(error)
            keeps = True  # the end comes with the next step
        return TrialScheduler.CONTINUE if keeps else TrialScheduler.STOP

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        """The trial that waits for a slot, if there is one; the searcher's order is by trial id."""
        # Tune's own way looks at every trial that ever was, at every step.
        waiting = (trial for trial in tune_controller.get_live_trials() if trial.status == Trial.PENDING)
        return min(waiting, key=lambda trial: trial.trial_id, default=None)

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        """Hear why the worker of a trial is gone, before the searcher hears that it is."""
        lines = (line for line in _cause(trial) if any(words in line for words in _KILLED_FOR_MEMORY))
        cause = next(lines, None)
        if cause is not None:
            self._dispatch.lost_to_memory(trial.config["key"], cause)


class StopsAtOnce(_KeptFromSnapshots, tune.Stopper):
    """Ends the experiment, without waiting for trials, when the dispatch says so."""

    def __init__(self, dispatch: Dispatch) -> None:
        self._dispatch = dispatch

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Never a single trial."""
        return False

    def stop_all(self) -> bool:
        """Asked at every step."""
        return self._dispatch.stops_at_once


class TrialsUnderWay(_KeptFromSnapshots, tune.Callback):
    """Tells the dispatch of trials that a worker has, and the user that an end was asked for."""

    def __init__(self, dispatch: Dispatch, interruption: Interruption) -> None:
        self._dispatch = dispatch
        self._interruption = interruption
        self._told = False

    def on_trial_start(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """A worker has it."""
        self._dispatch.started(trial.config["key"])

    def on_step_end(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        """Not in the signal's handler, which may interrupt a line that is being written."""
        if self._interruption.requested and not self._told and not self._dispatch.stops_at_once:
            self._told = True
            logger.warning("stopping: trials under way end with this epoch and its checkpoint; Ctrl-C again stops now")


class _LeftTune(BaseException):
    """Tune was left without its cleaning up, which it does for errors: that calls a Ray which is gone, and hangs."""


class FollowsCluster(_KeptFromSnapshots, tune.Callback):
    """Tells of nodes that come and go; leaves Tune, and Ray, once the watch says that Ray is gone."""

    def __init__(self, watch: ClusterWatch, pool: Pool, dispatch: Dispatch, lease: Lease) -> None:
        self._watch = watch
        self._pool = pool
        self._dispatch = dispatch
        self._lease = lease
        self._heard: object = None

    def on_step_end(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        """Look at what the watch has seen since the last step."""
        if self._watch.lost is not None:
            # Ray first: what Tune holds of it asks it for nothing, as it goes, once this program has left it.
            ray.shutdown()
            raise _LeftTune(self._watch.lost)
        self._dispatch.note_waiting()
        nodes = self._watch.nodes
        if nodes is not None and nodes is not self._heard:
            self._heard = nodes
            self._pool.hear(nodes, self._dispatch.avoided)
            self._dispatch.resize(self._pool.slots)
            self._lease.waits = self._pool.waits or self._dispatch.waits


class SilentProgress(TrialProgressCallback):
    """Takes the place of Tune's own lines about trials, some of which it prints even where it is told to be silent."""

    def on_trial_complete(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Print nothing."""

    def log_result(self, trial: Trial, result: dict[str, Any], error: bool = False) -> None:
        """Print nothing."""


def _cause(trial: Trial) -> list[str]:
    """The lines in which Ray says why the worker is gone; Tune hands them on in a file alone."""
    try:
        return Path(trial.error_file).read_text(errors="replace").splitlines() if trial.error_file else []
    except OSError:
        return []
