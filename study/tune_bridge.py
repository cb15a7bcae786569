"""Ray Tune's side of a study: one Tuner whose searcher and scheduler ask the coordinator.

Tune's own snapshots are not used: every start is a fresh Tuner over what records and journal know.
"""

from __future__ import annotations

import logging
import os
import signal
from collections import Counter
from typing import Any

from ray import tune
from ray.tune.experiment import Trial
from ray.tune.progress_reporter import TrialProgressCallback
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher

from study.coordinator import StudyCoordinator
from study.results import ResultsFolder
from study.spec import ResourcesSpec
from study.worker import run_assignment

logger = logging.getLogger(__name__)

LOST_WORKER_RETRIES = 2
"""How often a trial starts again, from its checkpoint, when its worker or node vanishes."""


def tune_study(coordinator: StudyCoordinator, folder: ResultsFolder, resources: ResourcesSpec, slots: int) -> None:
    """Run all that the coordinator has to give, ``slots`` trials side by side; returns early on Ctrl-C."""
    os.environ.update(
        TUNE_MAX_PENDING_TRIALS_PG=str(slots),
        TUNE_DISABLE_AUTO_CALLBACK_LOGGERS="1",
        TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S="0",
        TUNE_FUNCTION_THREAD_TIMEOUT_S="600",
    )
    # Of its snapshot, which nobody reads, it would tell with a traceback that a full disk does not hold it.
    logging.getLogger("ray.tune.execution.experiment_state").setLevel(logging.CRITICAL)
    lost_workers: Counter[str] = Counter()
    coordinator_errors: list[Exception] = []
    trainable = tune.with_resources(run_assignment, {"cpu": resources.cpus_per_trial, "gpu": resources.gpus_per_trial})
    tuner = tune.Tuner(
        trainable,
        tune_config=tune.TuneConfig(
            num_samples=-1,
            search_alg=CoordinatedSearcher(coordinator, slots, lost_workers, coordinator_errors),
            scheduler=CoordinatedScheduler(coordinator, lost_workers),
            reuse_actors=True,
            trial_dirname_creator=lambda trial: str(trial.config["key"]),
        ),
        run_config=tune.RunConfig(
            name="tune",
            storage_path=str(folder.tune.resolve()),
            verbose=0,
            failure_config=tune.FailureConfig(max_failures=LOST_WORKER_RETRIES),
            callbacks=[SilentProgress()],
        ),
    )
    tuner.fit()
    if coordinator_errors:
        raise coordinator_errors[0]


class CoordinatedSearcher(Searcher):
    """Gives Tune the coordinator's trials, at most ``slots`` at a time, and tells it of their ends.

    Args:
        coordinator: knows what runs next.
        slots: how many trials fit side by side.
        lost_workers: counts by key how often a trial's worker vanished; the scheduler keeps it.
        errors: takes what the coordinator raises, as on a full disk. Tune would print it and go on without it; it is
            made to end as by Ctrl-C instead.
    """

    def __init__(
        self, coordinator: StudyCoordinator, slots: int, lost_workers: Counter[str], errors: list[Exception]
    ) -> None:
        super().__init__()
        self._errors = errors
        self._coordinator = coordinator
        self._slots = slots
        self._lost_workers = lost_workers
        self._key_of: dict[str, str] = {}

    # Tune takes the word FINISHED too, which the signature of its base class does not say.
    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:  # type: ignore[override]
        """The next trial, None while all slots are taken or all that is left must wait, or the end for good."""
        if len(self._coordinator.live) >= self._slots:
            return None
        try:
            assignment = self._coordinator.next_trial()
        except Exception as error:  # noqa: BLE001 - raised again by tune_study
            self._stop_because_of(error)
            return None
        if assignment is None:
            return Searcher.FINISHED if self._coordinator.done else None
        self._key_of[trial_id] = assignment.key
        return assignment.to_dict()

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Seal the trial; ``error``: its worker was lost more often than Tune retries."""
        key = self._key_of.pop(trial_id)
        times = self._lost_workers[key]
        lost = f"its worker was lost {'once' if times == 1 else f'{times} times'}" if error else None
        try:
            record = self._coordinator.end(key, lost)
        except Exception as error:  # noqa: BLE001 - raised again by tune_study
            self._stop_because_of(error)
            return
        logger.info("trial %s (%s, %s): %s %s", record.key, record.cell, record.phase, record.status, record.reason)

    def _stop_because_of(self, error: Exception) -> None:
        self._errors.append(error)
        if len(self._errors) == 1:
            signal.raise_signal(signal.SIGINT)

    def __getstate__(self) -> dict[str, Any]:
        # Tune pickles its searcher for a snapshot that is never read; samplers hold locks that cannot be pickled.
        return {}


class CoordinatedScheduler(FIFOScheduler):
    """Lets Tune run trials as they come, and stops one where its cell's halving says so."""

    def __init__(self, coordinator: StudyCoordinator, lost_workers: Counter[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._coordinator = coordinator
        self._lost_workers = lost_workers

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        """CONTINUE or STOP after an epoch; a trial that ended before its first one comes without it."""
        if "epoch" not in result:
            return TrialScheduler.CONTINUE
        keeps = self._coordinator.report(
            trial.config["key"], result["epoch"], result["val_metric"], ended=result["ended"]
        )
        return TrialScheduler.CONTINUE if keeps else TrialScheduler.STOP

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        """Hear that the worker of a trial vanished, before Tune starts the trial again or gives it up."""
        key = trial.config["key"]
        self._lost_workers[key] += 1
        if self._lost_workers[key] <= LOST_WORKER_RETRIES:
            logger.warning(
                "trial %s (%s, %s): its worker was lost; it goes on from its last checkpoint (try %d of %d)",
                key,
                trial.config["cell"],
                trial.config["phase"],
                self._lost_workers[key] + 1,
                LOST_WORKER_RETRIES + 1,
            )

    def __getstate__(self) -> dict[str, Any]:
        return {}


class SilentProgress(TrialProgressCallback):
    """Takes the place of Tune's own lines about trials, some of which it prints even where it is told to be silent."""

    def on_trial_complete(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Print nothing."""

    def log_result(self, trial: Trial, result: dict[str, Any], error: bool = False) -> None:
        """Print nothing."""
