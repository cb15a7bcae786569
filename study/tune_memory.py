"""What Ray Tune would keep of trials that have ended, and write of them, and what no study reads: let go."""

from __future__ import annotations

from typing import Any

from ray import tune
from ray.tune.experiment import Trial

NO_SNAPSHOTS = {"TUNE_GLOBAL_CHECKPOINT_S": str(10 * 365 * 24 * 3600)}
"""Seconds between Tune's snapshots of all trials, which a study does not go on from (``study.tune_bridge``); the one at
its end cannot be left out."""


class ForgetsEnded(tune.Callback):
    """Empties the trials that have ended: they would hold 50 KiB each, of every metric its last ten values.

    Tune goes on to hold the trial itself, with its id and status, which is all that it looks at; we keep its key.
    """

    def __init__(self) -> None:
        self._ended: list[Trial] = []

    def __getstate__(self) -> dict[str, Any]:
        """Nothing, for a snapshot that is never read."""
        return {}

    def on_trial_complete(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """To be emptied when the step is over: Tune has not done with it yet."""
        self._ended.append(trial)

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Likewise of one that lost its worker."""
        self._ended.append(trial)

    def on_step_end(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        """Empty those that have ended in this step."""
        for trial in self._ended:
            trial.config, trial.evaluated_params = {"key": trial.config["key"]}, {}
            trial.run_metadata.last_result = {}
            trial.run_metadata.metric_analysis, trial.run_metadata.metric_n_steps = {}, {}
        self._ended.clear()
