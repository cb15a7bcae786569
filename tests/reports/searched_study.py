"""A study with a search, in which nothing is wrong: two facing cells, whose tests then break one thing each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from made_studies import SEEDS, Cell, gated, trial, vanilla, write_study

from study.records import EpochRecord, Status, TrialRecord

LEARNING_RATES = (0.001, 0.0011, 0.0012, 0.0013, 0.0014, 0.0015)
"""Of the search trials that finish; the later, the better, so the last is chosen."""
BEST = 0.0015
VERSIONS = '{"torch": "2.9.0", "python": "3.11.7"}'
RUNG = 2
SEARCH: dict[str, Any] = {
    "searched": {"learning_rate": {"log_uniform": [1e-4, 1e-2]}},
    "rungs": [RUNG],
    "trials": 8,
    "confirm_trials": 4,
    "max_epochs": 1000,
}

VANILLA: Cell = vanilla("zinc", "gcn", **SEARCH)
GATED: Cell = gated("zinc", "gcn", **SEARCH)
TESTS = {"none": (0.45, 0.47, 0.46, 0.48), "boosting": (0.40, 0.42, 0.41, 0.43)}


def curve(values: Sequence[float], gate_std: float | None = None) -> tuple[EpochRecord, ...]:
    """Epochs with these validation metrics."""
    template = trial(VANILLA, 0, num_epochs=1).epochs[0]
    return tuple(
        replace(template, epoch=epoch, val_metric=value, gate_std=gate_std)
        for epoch, value in enumerate(values, start=1)
    )


def search_trial(cell: Cell, number: int, rate: float, values: Sequence[float], status: Status) -> TrialRecord:
    made = trial(cell, 41, phase="search", learning_rate=rate, status=status, reason="min_lr")
    return replace(_from_one_place(made), number=number, val_metric=values[-1], test_loss=None, epochs=curve(values))


def confirm_trial(cell: Cell, seed: int, test: float, best: TrialRecord) -> TrialRecord:
    made = trial(cell, seed, test, learning_rate=BEST, reason="min_lr")
    gate_std = 0.02 if cell["gate"] == "bilateral" else None
    epochs = curve([0.5, 0.4, 0.3], gate_std)
    return replace(_from_one_place(made), chosen_from=best.key, epochs=epochs)


def trials_of(cell: Cell) -> list[TrialRecord]:
    """Six search trials that finish after 6 epochs, two pruned after 2, and four confirm trials of the best."""
    finished = [
        # At the rung and at the end alike, each is better than the one before.
        search_trial(cell, number, rate, [0.9, 0.8 - number / 100, 0.7, 0.7, 0.7, 0.5 - number / 100], "finished")
        for number, rate in enumerate(LEARNING_RATES)
    ]
    pruned = [search_trial(cell, 6 + place, rate, [0.95, 0.9], "pruned") for place, rate in enumerate((0.0002, 0.0003))]
    tests = TESTS[cell["placement"]]
    confirm = [confirm_trial(cell, seed, test, finished[-1]) for seed, test in zip(SEEDS, tests, strict=True)]
    return [*finished, *pruned, *confirm]


def clean_study(
    folder: Path,
    change: Callable[[list[TrialRecord]], list[TrialRecord]] = lambda trials: trials,
    cells: Sequence[Cell] = (VANILLA, GATED),
) -> Path:
    """The study, its trials as ``change`` makes them."""
    return write_study(folder, cells, change([*trials_of(VANILLA), *trials_of(GATED)]))


def changed(which: Callable[[TrialRecord], bool], **values: Any) -> Callable[[list[TrialRecord]], list[TrialRecord]]:
    """A change of the trials for which ``which`` holds."""
    return lambda trials: [replace(trial, **values) if which(trial) else trial for trial in trials]


def _from_one_place(record: TrialRecord) -> TrialRecord:
    return replace(record, git_commit="aa11", git_dirty=False, versions_json=VERSIONS)
