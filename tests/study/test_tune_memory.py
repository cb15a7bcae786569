"""What Tune keeps of ended trials, on Tune's own trials."""

from __future__ import annotations

from ray.tune.experiment import Trial

from study.tune_memory import ForgetsEnded


def trial_that_reported(key: str) -> Trial:
    trial = Trial("none", config={"key": key, "study": "a study", "config": {"seed": 1}}, stub=True)
    trial.evaluated_params = {"config/seed": 1}
    for epoch in (1, 2, 3):
        trial.update_last_result({"epoch": epoch, "val_metric": 0.5, "training_iteration": epoch, "time_total_s": 1.0})
    return trial


def test_an_ended_trial_is_emptied_after_the_step_and_keeps_its_key() -> None:
    ended, lost, running = (trial_that_reported(key) for key in ("ended", "lost", "running"))
    trials = [ended, lost, running]
    forgets = ForgetsEnded()
    forgets.on_trial_complete(iteration=1, trials=trials, trial=ended)
    forgets.on_trial_error(iteration=1, trials=trials, trial=lost)
    assert ended.last_result["epoch"] == 3, "Tune has not done with it before the step ends"
    forgets.on_step_end(iteration=1, trials=trials)
    for trial in (ended, lost):
        assert trial.config == {"key": "ended" if trial is ended else "lost"}
        assert not trial.run_metadata.last_result
        assert not trial.metric_analysis
        assert not trial.run_metadata.metric_n_steps
        assert not trial.evaluated_params
    assert running.last_result["epoch"] == 3
    assert running.metric_analysis["val_metric"]["avg"] == 0.5
    assert running.config["study"] == "a study"


def test_a_second_step_empties_nothing_again() -> None:
    trial = trial_that_reported("ended")
    forgets = ForgetsEnded()
    forgets.on_trial_complete(iteration=1, trials=[trial], trial=trial)
    forgets.on_step_end(iteration=1, trials=[trial])
    trial.run_metadata.last_result = {"epoch": 9}
    forgets.on_step_end(iteration=2, trials=[trial])
    assert trial.run_metadata.last_result == {"epoch": 9}
