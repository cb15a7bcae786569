"""What the curves tell: whether rungs ranked trials as their ends did, and whether gates moved."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from reports.check.finding import Finding, Kind
from reports.evidence.study_facts import CellFacts, StudyFacts
from study.counted import counted

FEWEST_TRIALS = 5
"""Of fewer trials that reached the end, a rank correlation says nothing."""
LEAST_CORRELATION = 0.5
"""Spearman's, between the metric at a rung and at the end; below it the rung did not rank as the end does."""
STILL_GATE = 1e-4
"""Standard deviation of deg * beta_hat over the edges, 0 for a uniform gate; a trained one is near 1e-2."""

RUNG_ORDER = Kind(
    name="rung-order",
    severity="warns",
    effect="pruning at that epoch may have stopped configurations that would have won",
    mend="raise grace_epochs or lower reduction_factor and search again, or say so",
)
RUNG_ORDER_UNKNOWN = Kind(
    name="rung-order-unknown",
    severity="warns",
    effect="nobody can tell from the records whether pruning stopped the better configurations",
    mend="search some trials without asha, or say that it was not looked at",
)
STILL = Kind(
    name="still-gate",
    severity="warns",
    effect="the bilateral gate is a uniform one, so a difference to the vanilla model has another cause than the gate",
    mend="try other values of sigma_m (far too large or small, all edges weigh the same), or call the gate uniform",
)


def rung_orders(facts: StudyFacts) -> Iterator[Finding]:
    """Rungs whose order of the trials that reached the end is unlike their order there.

    Of survivors only: the pruned ones have no end. Trials that a rung would have spared anyhow are more alike than
    all, which lowers the correlation.
    """
    for cell in facts.cells:
        # At the rung of the last epoch there is nothing left to prune.
        last_epoch = max((trial.max_epochs for trial in cell.search), default=0)
        rungs = [rung for rung in cell.search_plan.rungs if rung < last_epoch]
        finished = [trial.key for trial in cell.search if trial.status == "finished"]
        curves = [curve for _, curve in facts.details.curves(finished, "val_metric")] if rungs else []
        unlike, unknown = [], []
        for rung in rungs:
            pairs = _pairs(curves, rung)
            correlation = _spearman(pairs)
            if correlation is None:
                unknown.append(f"epoch {rung} ({counted(len(pairs), 'trial')})")
            elif correlation < LEAST_CORRELATION:
                unlike.append(f"{correlation:.2f} at epoch {rung} ({counted(len(pairs), 'trial')})")
        yield from _rung_findings(facts, cell, unlike, unknown)


def still_gates(facts: StudyFacts) -> Iterator[Finding]:
    """Bilateral cells with runs whose gate was uniform in every epoch."""
    for cell in facts.cells:
        bilateral = {trial.key: trial for trial in cell.counted if trial.gate == "bilateral"}
        if not bilateral:
            continue
        largest = {
            key: max(spreads)
            for key, curve in facts.details.curves(bilateral, "gate_std")
            if (spreads := [value for _, value in curve if value is not None])
        }
        still = [bilateral[key] for key, value in largest.items() if value < STILL_GATE]
        if still:
            found = (
                f"in {len(still)} of {counted(len(cell.counted), 'run')} the gate's spread over the edges stayed "
                f"below {STILL_GATE:g} in every epoch (at most {max(largest[trial.key] for trial in still):.1e})"
            )
            yield STILL.in_cell(facts, cell, found, still)


def _rung_findings(facts: StudyFacts, cell: CellFacts, unlike: list[str], unknown: list[str]) -> Iterator[Finding]:
    finished = [trial for trial in cell.search if trial.status == "finished"]
    if unlike:
        found = f"rank correlation of the validation metric with that at the end: {', '.join(unlike)}"
        yield RUNG_ORDER.in_cell(facts, cell, found, finished)
    if unknown:
        found = (
            f"too few trials reached the end to compare its order with that at {', '.join(unknown)}; "
            f"expected {FEWEST_TRIALS} of different values"
        )
        yield RUNG_ORDER_UNKNOWN.in_cell(facts, cell, found, finished)


def _pairs(curves: Sequence[tuple[tuple[int, float | None], ...]], rung: int) -> list[tuple[float, float]]:
    """(value after epoch ``rung``, last value) of every trial that went on after it."""
    pairs = []
    for curve in curves:
        at_rung = next((value for epoch, value in curve if epoch == rung), None)
        last_epoch, last = curve[-1] if curve else (0, None)
        if at_rung is not None and last is not None and last_epoch > rung:
            pairs.append((at_rung, last))
    return [pair for pair in pairs if all(map(math.isfinite, pair))]


def _spearman(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's rank correlation; None for too few pairs, or where one side has a single value."""
    if len(pairs) < FEWEST_TRIALS or any(len(set(side)) < 2 for side in zip(*pairs, strict=True)):
        return None
    from scipy.stats import spearmanr

    at_rung, last = zip(*pairs, strict=True)
    return float(spearmanr(at_rung, last).statistic)
