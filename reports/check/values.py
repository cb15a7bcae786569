"""Whether the numbers on record can be what they are said to be: within the metric's range, of the cell's metric."""

from __future__ import annotations

import math
from collections.abc import Iterator

from reports.check.finding import Finding, Kind
from reports.evidence.study_facts import StudyFacts
from reports.records.details import TrialDetails

RANGES = {
    "mae": (0.0, math.inf),
    "accuracy": (0.0, 1.0),
    "balanced_accuracy": (0.0, 1.0),
    "f1": (0.0, 1.0),
}
"""Least and greatest value of each metric; records hold fractions."""
SPLITS = ("train_metric", "val_metric", "test_metric")

IMPOSSIBLE_VALUE = Kind(
    name="impossible-value",
    severity="forbids",
    effect="no run can have measured this, so the record was altered or is of another metric or unit",
    mend="move the record out of the folder and start the study again, which runs the trial anew",
)
OTHER_METRIC = Kind(
    name="other-metric",
    severity="forbids",
    effect="numbers of two metrics enter one mean or one ranking",
    mend="move the records out of the folder and start the study again, which runs the trials anew",
)


def impossible_values(facts: StudyFacts) -> Iterator[Finding]:
    """Metrics outside the range of their cell's metric, in a run or in a search trial."""
    for cell in facts.cells:
        trials = [trial for trial in (*cell.confirm, *cell.search) if _impossible(trial, cell.cell.metric)]
        if trials:
            split, value = _impossible(trials[0], cell.cell.metric)[0]
            low, high = RANGES[cell.cell.metric]
            expected = f"{low:g} to {high:g}" if math.isfinite(high) else f"{low:g} or more"
            rest = f" and {len(trials) - 1} more" if len(trials) > 1 else ""
            found = f"{trials[0].file}{rest}: {split} {value!r}, expected {expected} of {cell.cell.metric}"
            yield IMPOSSIBLE_VALUE.in_cell(facts, cell, found, trials)


def other_metrics(facts: StudyFacts) -> Iterator[Finding]:
    """Records whose metric is not that of their cell."""
    for cell in facts.cells:
        trials = [trial for trial in (*cell.confirm, *cell.search) if trial.metric != cell.cell.metric]
        if trials:
            rest = f" and {len(trials) - 1} more" if len(trials) > 1 else ""
            found = f"{trials[0].file}{rest}: metric {trials[0].metric}, expected {cell.cell.metric}"
            yield OTHER_METRIC.in_cell(facts, cell, found, trials)


def _impossible(trial: TrialDetails, metric: str) -> list[tuple[str, float]]:
    # NaN and infinities are told as runs without a number.
    low, high = RANGES[metric]
    values = ((split, getattr(trial, split)) for split in SPLITS)
    return [
        (split, value)
        for split, value in values
        if value is not None and math.isfinite(value) and not low <= value <= high
    ]
