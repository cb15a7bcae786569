"""Intervals and tests of a few values, by scipy and statsmodels; where a test cannot speak, its reason in words.

Standard deviations are printed with ddof 0, as in the paper. Everything here is estimated with ddof 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy.stats
from statsmodels.stats.meta_analysis import effectsize_smd
from statsmodels.stats.multitest import multipletests

from reports.summary.summarise import ROUNDING

CONFIDENCE = 0.95
SIGNIFICANCE = 0.05
BOOTSTRAP_FROM = 10
RESAMPLES = 9999
BOOTSTRAP_SEED = 20_000
GRAIN = 1e-14
"""Difference of resampled means, as a share of the largest value, that is the rounding of sums and no difference."""
LARGEST_BATCH = 2_000_000
"""Numbers that one step of a bootstrap holds."""

SMALLEST = 1e-150
"""Spread up to which its square may vanish from arithmetic."""

Sides = tuple[str, str]
"""What ``first`` and ``second`` are called in the reason why there is no test."""

SIDES: Sides = ("first", "second")

ONE_RUN = "one run gives no spread to test the difference against"
MISSING = "a value is missing or is not a number"

IntervalMethod = Literal["Student t", "BCa bootstrap", "equal values"]
TestMethod = Literal["Welch t", "paired t"]
EffectName = Literal["Hedges' g", "d_z"]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A two-sided 95% interval of a mean, or of a difference of means, and how it was made."""

    low: float
    high: float
    method: IntervalMethod


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a two-sided test of ``first - second`` says.

    Attributes:
        difference: of the means; None where it would mean nothing.
        interval: of the difference, by the t distribution of the test; it is not corrected for other comparisons.
        effect: ``Hedges' g`` (difference over the pooled standard deviation, corrected for few values) of a Welch
            test, ``d_z`` (mean over standard deviation of the paired differences, not corrected) of a paired one.
        p_value: before any correction; None: no test, and ``reason`` says why.
        method: None where there was no test.
    """

    difference: float | None = None
    interval: Interval | None = None
    effect: float | None = None
    effect_name: EffectName | None = None
    p_value: float | None = None
    method: TestMethod | None = None
    reason: str | None = None


def interval(values: Sequence[float]) -> Interval | None:
    """The 95% interval of the mean: Student's t, and from ten values up the BCa bootstrap under a fixed seed.

    Equal values give one of no width. None: fewer than two values, or one that is not finite.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))  # so that the bootstrap does not hang on their order
    if ordered.size < 2 or not np.isfinite(ordered).all():
        return None
    mean = float(ordered.mean())
    if not varies(ordered):
        return Interval(low=mean, high=mean, method="equal values")
    if ordered.size < BOOTSTRAP_FROM:
        low, high = scipy.stats.t.interval(CONFIDENCE, ordered.size - 1, mean, scipy.stats.sem(ordered, ddof=1))
        return Interval(low=float(low), high=float(high), method="Student t")
    # BCa counts the resamples below the mean and half of those at it. Accuracies are counts over a number of graphs, so
    # that many have just that mean, and lie at it only without the last bits that their sums leave.
    grain = GRAIN * float(np.max(np.abs(ordered)))
    found = scipy.stats.bootstrap(
        (ordered - mean,),
        lambda resampled, axis: np.round(np.mean(resampled, axis=axis) / grain),
        n_resamples=RESAMPLES,
        batch=max(1, LARGEST_BATCH // ordered.size),
        confidence_level=CONFIDENCE,
        method="BCa",
        rng=np.random.default_rng(BOOTSTRAP_SEED),
    ).confidence_interval
    low, high = (mean + grain * float(end) for end in found)
    return Interval(low=low, high=high, method="BCa bootstrap")


def varies(values: Sequence[float] | np.ndarray, scale: float = 0.0) -> bool:
    """Whether finite values differ by more than rounding; ``scale``: largest of the numbers that they came from."""
    largest = max(float(np.max(np.abs(values))), scale)
    return float(np.ptp(values)) > max(ROUNDING * largest, SMALLEST)


def welch(first: Sequence[float], second: Sequence[float], sides: Sides = SIDES) -> Outcome:
    """Welch's test of independent values, such as runs from different seeds."""
    difference = math.fsum(first) / len(first) - math.fsum(second) / len(second) if first and second else math.nan
    if not math.isfinite(difference):
        return Outcome(reason=MISSING)
    untested = Outcome(difference=difference)
    if min(len(first), len(second)) < 2:
        return replace(untested, reason=ONE_RUN)
    if not (varies(first) and varies(second)):
        return replace(untested, reason=_equal(varies(first), varies(second), sides))
    found = scipy.stats.ttest_ind(first, second, equal_var=False)
    limits = found.confidence_interval(CONFIDENCE)
    return Outcome(
        difference=difference,
        interval=Interval(low=float(limits.low), high=float(limits.high), method="Student t"),
        effect=_hedges(_moments(first), _moments(second)),
        effect_name="Hedges' g",
        p_value=float(found.pvalue),
        method="Welch t",
    )


def paired(first: Sequence[float], second: Sequence[float]) -> Outcome:
    """The paired t-test of values that belong together one by one, such as those of the same fold."""
    differences = [one - other for one, other in zip(first, second, strict=True)]
    if not differences or not all(map(math.isfinite, differences)):
        return Outcome(reason=MISSING)
    untested = Outcome(difference=math.fsum(differences) / len(differences))
    if len(differences) < 2:
        return replace(untested, reason="one fold gives no spread to test the difference against")
    if not varies(differences, scale=max(map(abs, (*first, *second)))):
        return replace(untested, reason="the difference is the same in every pair: no spread to test it against")
    found = scipy.stats.ttest_rel(first, second)
    limits = found.confidence_interval(CONFIDENCE)
    return Outcome(
        difference=untested.difference,
        interval=Interval(low=float(limits.low), high=float(limits.high), method="Student t"),
        effect=float(np.mean(differences) / np.std(differences, ddof=1)),
        effect_name="d_z",
        p_value=float(found.pvalue),
        method="paired t",
    )


def welch_of_printed(
    first: tuple[float, float, int], second: tuple[float, float, int], sides: Sides = SIDES
) -> Outcome:
    """Welch's test from (mean, standard deviation with ddof 0, number of values) of each side; without interval."""
    if not all(math.isfinite(number) for number in (*first, *second)):
        return Outcome(reason=MISSING)
    untested = Outcome(difference=first[0] - second[0])
    if min(first[2], second[2]) < 2:
        return replace(untested, reason=ONE_RUN)
    vary = [std > max(ROUNDING * abs(mean), SMALLEST) for mean, std, _ in (first, second)]
    if not all(vary):
        return replace(untested, reason=_equal(vary[0], vary[1], sides))
    (one, other) = (_with_ddof_1(*first), _with_ddof_1(*second))
    found = scipy.stats.ttest_ind_from_stats(*one, *other, equal_var=False)
    return Outcome(
        difference=untested.difference,
        effect=_hedges(one, other),
        effect_name="Hedges' g",
        p_value=float(found.pvalue),
        method="Welch t",
    )


def holm(outcomes: Sequence[Outcome]) -> tuple[float | None, ...]:
    """The p-values corrected by Holm's method over all of ``outcomes``; None for those that have none.

    One without a test counts as p = 1: a comparison that was planned stays one of so many, so that no run that is lost
    makes another difference significant.
    """
    raw = [1.0 if outcome.p_value is None else outcome.p_value for outcome in outcomes]
    corrected = multipletests(raw, alpha=SIGNIFICANCE, method="holm")[1].tolist() if raw else []
    return tuple(
        None if outcome.p_value is None else float(value) for outcome, value in zip(outcomes, corrected, strict=True)
    )


def _equal(first_varies: bool, second_varies: bool, sides: Sides) -> str:
    equal = [name for name, varies in zip(sides, (first_varies, second_varies), strict=True) if not varies]
    return f"all runs of the {' and of the '.join(equal)} model are equal: no spread to test the difference against"


def _moments(values: Sequence[float]) -> tuple[float, float, int]:
    return float(np.mean(values)), float(np.std(values, ddof=1)), len(values)


def _with_ddof_1(mean: float, std: float, count: int) -> tuple[float, float, int]:
    return mean, std * math.sqrt(count / (count - 1)), count


def _hedges(first: tuple[float, float, int], second: tuple[float, float, int]) -> float:
    return float(effectsize_smd(*first, *second)[0])
