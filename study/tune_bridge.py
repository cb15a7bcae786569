"""Ray Tune's side of a study: one Tuner whose searcher and scheduler ask the coordinator.

Tune's own snapshots are not used: every start is a fresh Tuner over what records and journal know.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from ray import tune
from ray.tune.experiment import Trial
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
    trainable = tune.with_resources(run_assignment, {"cpu": resources.cpus_per_trial, "gpu": resources.gpus_per_trial})
    tuner = tune.Tuner(
        trainable,
        tune_config=tune.TuneConfig(
            num_samples=-1,
            search_alg=CoordinatedSearcher(coordinator, slots),
            scheduler=CoordinatedScheduler(coordinator),
            reuse_actors=True,
            trial_dirname_creator=lambda trial: str(trial.config["key"]),
        ),
        run_config=tune.RunConfig(
            name="tune",
            storage_path=str(folder.tune.resolve()),
            verbose=0,
            failure_config=tune.FailureConfig(max_failures=LOST_WORKER_RETRIES),
        ),
    )
    tuner.fit()


class CoordinatedSearcher(Searcher):
    """Gives Tune the coordinator's trials, at most ``slots`` at a time, and tells it of their ends."""

    def __init__(self, coordinator: StudyCoordinator, slots: int) -> None:
        super().__init__()
        self._coordinator = coordinator
        self._slots = slots
        self._key_of: dict[str, str] = {}

    # Tune takes the word FINISHED too, which the signature of its base class does not say.
    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:  # type: ignore[override]
        """The next trial, None while all slots are taken or all that is left must wait, or the end for good."""
        if len(self._coordinator.live) >= self._slots:
            return None
        assignment = self._coordinator.next_trial()
        if assignment is None:
            return Searcher.FINISHED if self._coordinator.done else None
        self._key_of[trial_id] = assignment.key
        return assignment.to_dict()

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Seal the trial; ``error``: its worker was lost more often than Tune retries."""
        lost = f"its worker was lost {LOST_WORKER_RETRIES + 1} times" if error else None
        record = self._coordinator.end(self._key_of.pop(trial_id), lost)
        logger.info("trial %s (%s, %s): %s %s", record.key, record.cell, record.phase, record.status, record.reason)

    def __getstate__(self) -> dict[str, Any]:
        # Tune pickles its searcher for a snapshot that is never read; samplers hold locks that cannot be pickled.
        return {}


class CoordinatedScheduler(FIFOScheduler):
    """Lets Tune run trials as they come, and stops one where its cell's halving says so."""

    def __init__(self, coordinator: StudyCoordinator) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._coordinator = coordinator

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        """CONTINUE or STOP after an epoch; a trial that ended before its first one comes without it."""
        if "epoch" not in result:
            return TrialScheduler.CONTINUE
        keeps = self._coordinator.report(
            trial.config["key"], result["epoch"], result["val_metric"], ended=result["ended"]
        )
        return TrialScheduler.CONTINUE if keeps else TrialScheduler.STOP

    def __getstate__(self) -> dict[str, Any]:
        return {}
