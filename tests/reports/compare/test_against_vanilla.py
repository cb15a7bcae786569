"""Tests and intervals against formulas written out here, against worked numbers, and on the paper's own tables."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from made_studies import Cell, gated, runs, trial, vanilla, worked_study, write_study
from scipy.stats import norm, t

from reports.compare.against_vanilla import (
    Comparison,
    compare_cells,
    compare_published,
    facing_pairs,
    independent_values,
    interval,
    published_pairs,
)
from reports.compare.comparison_table import interval_of
from reports.compare.inference import Interval, Outcome, holm, paired, welch, welch_of_printed
from reports.layout.result_table import build_table
from reports.published.rows import PaperRow
from reports.records.load import load_results
from reports.summary.summarise import CellSummary, summarise
from study.records import TrialRecord


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


VALUES = st.lists(st.floats(0.001, 1.0), min_size=2, max_size=9)


def compared(folder: Path, cells: Sequence[Cell], trials: Sequence[TrialRecord]) -> tuple[Comparison[CellSummary], ...]:
    return compare_cells(facing_pairs(build_table(load_results(write_study(folder, cells, trials)))))


class TestInterval:
    def test_of_four_values_is_students(self) -> None:
        # Mean 2.5; squares of the deviations sum to 5, over 3; t(0.975, 3) = 3.18245 (any table of t).
        half = 3.18245 * math.sqrt(5 / 3 / 4)
        found = interval([1.0, 4.0, 2.0, 3.0])
        assert found is not None
        assert (found.low, found.high) == pytest.approx((2.5 - half, 2.5 + half), abs=1e-5)
        assert found.method == "Student t"

    def test_from_ten_values_up_it_is_a_bootstrap(self) -> None:
        values = [0.1 * place**2 for place in range(10)]
        nine, ten = interval(values[:9]), interval(values)
        assert nine is not None
        assert ten is not None
        assert (nine.method, ten.method) == ("Student t", "BCa bootstrap")
        low, high = bca(np.asarray(values))
        assert (ten.low, ten.high) == pytest.approx((low, high), abs=0.03 * (high - low))
        # The values lean to the right, and so does the interval; Student's is even.
        assert ten.high - np.mean(values) > 1.1 * (np.mean(values) - ten.low)

    def test_the_bootstrap_is_the_same_for_every_order_and_every_time(self) -> None:
        values = [0.31, 0.35, 0.32, 0.39, 0.30, 0.36, 0.33, 0.34, 0.38, 0.37, 0.40]
        assert interval(values) == interval(values) == interval(values[::-1])

    @pytest.mark.parametrize(
        "right",
        [
            [44, 40, 45, 39, 42, 47, 41, 43, 38, 46],
            [33, 42, 44, 41, 48, 38, 45, 40, 43, 44],
            [40, 43, 41, 52, 44, 45, 43, 47, 40, 49],
        ],
    )
    def test_resamples_of_equal_mean_tie_whatever_the_unit(self, right: list[int]) -> None:
        # Ten folds of 60 graphs: their number that is right is exact, the share of them is not.
        counts, shares = interval([float(count) for count in right]), interval([count / 60 for count in right])
        assert counts is not None
        assert shares is not None
        assert (60 * shares.low, 60 * shares.high) == pytest.approx((counts.low, counts.high), rel=1e-12)
        assert (counts.low, counts.high) == pytest.approx(bca_of_counts(np.asarray(right)), abs=0.15)

    @pytest.mark.parametrize("values", [[], [0.5], [0.5, math.nan], [math.inf, 0.5, 0.6]])
    def test_none_without_two_numbers(self, values: list[float]) -> None:
        assert interval(values) is None

    @pytest.mark.parametrize("count", [2, 4, 10, 40])
    def test_equal_values_have_no_width(self, count: int) -> None:
        assert interval([0.25] * count) == Interval(low=0.25, high=0.25, method="equal values")

    def test_values_equal_but_for_rounding_have_no_width(self) -> None:
        found = interval([0.1 + 0.2, 0.3, 0.3])
        assert found is not None
        assert found.low == found.high == pytest.approx(0.3)

    @settings(max_examples=30, deadline=None)
    @example([0.0, 2e-311])
    @given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=14))
    def test_it_holds_the_mean(self, values: list[float]) -> None:
        found = interval(values)
        assert found is not None
        mean = sum(values) / len(values)
        assert found.low - 1e-12 <= mean <= found.high + 1e-12


def bca(values: np.ndarray) -> tuple[float, float]:
    """Efron's BCa interval of the mean, written out from its definition, with many resamples."""
    generator = np.random.default_rng(1)
    means = values[generator.integers(0, len(values), (200_000, len(values)))].mean(axis=1)
    bias = norm.ppf(np.mean(means < values.mean()))
    left_out = np.array([np.delete(values, place).mean() for place in range(len(values))])
    lean = left_out.mean() - left_out
    acceleration = (lean**3).sum() / (6 * (lean**2).sum() ** 1.5)
    shifted = bias + norm.ppf([0.025, 0.975])
    ends = norm.cdf(bias + shifted / (1 - acceleration * shifted))
    low, high = np.quantile(means, ends)
    return float(low), float(high)


def bca_of_counts(right: np.ndarray) -> tuple[float, float]:
    """Efron's BCa interval of the mean of whole numbers, in whole numbers: equal means are equal."""
    generator = np.random.default_rng(1)
    sums = right[generator.integers(0, len(right), (200_000, len(right)))].sum(axis=1)
    bias = norm.ppf((np.mean(sums < right.sum()) + np.mean(sums <= right.sum())) / 2)
    lean = right - right.mean()
    acceleration = (lean**3).sum() / (6 * (lean**2).sum() ** 1.5)
    shifted = bias + norm.ppf([0.025, 0.975])
    low, high = np.quantile(sums, norm.cdf(bias + shifted / (1 - acceleration * shifted))) / len(right)
    return float(low), float(high)


class TestWelch:
    def test_worked_by_hand(self) -> None:
        found = welch([1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0])
        # Variances 5/3 and 20/3 over four values each: error sqrt(25/12), t = -2.5 / 1.4434 = -sqrt(3).
        error, freedom = math.sqrt(25 / 12), (25 / 12) ** 2 / (((5 / 12) ** 2 + (20 / 12) ** 2) / 3)
        assert freedom == pytest.approx(4.41176, abs=1e-5)
        assert found.difference == -2.5
        assert found.p_value == pytest.approx(2 * t.sf(math.sqrt(3), freedom))
        half = t.ppf(0.975, freedom) * error
        assert found.interval == Interval(
            low=pytest.approx(-2.5 - half), high=pytest.approx(-2.5 + half), method="Student t"
        )
        # Pooled variance 25/6, so d = -1.22474; times 1 - 3 / (4 * 6 - 1).
        assert found.effect == pytest.approx(-2.5 / math.sqrt(25 / 6) * (1 - 3 / 23))
        assert (found.effect_name, found.method, found.reason) == ("Hedges' g", "Welch t", None)

    @given(VALUES, VALUES)
    def test_sides_may_change_places(self, first: list[float], second: list[float]) -> None:
        one, other = welch(first, second), welch(second, first)
        assert one.difference == pytest.approx(-other.difference)  # type: ignore[operator]
        assert one.reason == other.reason or "all runs" in (one.reason or "")
        if one.p_value is not None:
            assert other.p_value == pytest.approx(one.p_value, rel=1e-6)
            assert 0 <= one.p_value <= 1

    @given(VALUES, VALUES)
    def test_printed_numbers_say_the_same_as_the_values(self, first: list[float], second: list[float]) -> None:
        sides = [(float(np.mean(values)), float(np.std(values)), len(values)) for values in (first, second)]
        from_values, from_printed = welch(first, second), welch_of_printed(sides[0], sides[1])
        if from_values.p_value is not None and from_printed.p_value is not None:
            assert from_printed.p_value == pytest.approx(from_values.p_value, rel=1e-4, abs=1e-9)
            assert from_printed.effect == pytest.approx(from_values.effect, rel=1e-4)

    @pytest.mark.parametrize(
        ("first", "second", "reason"),
        [
            ([0.5], [0.4, 0.6], "one run gives no spread"),
            ([0.4, 0.6], [0.5], "one run gives no spread"),
            ([0.4, 0.4, 0.4], [0.5, 0.6, 0.7], "all runs of the first model are equal"),
            ([0.4, 0.5], [0.5, 0.5], "all runs of the second model are equal"),
            ([0.1 + 0.2, 0.3], [0.7, 0.7], "all runs of the first and of the second model are equal"),
        ],
    )
    def test_no_test_without_spread(self, first: list[float], second: list[float], reason: str) -> None:
        found = welch(first, second)
        assert found.p_value is found.effect is found.interval is found.method is None
        assert found.difference == pytest.approx(np.mean(first) - np.mean(second))
        assert found.reason is not None
        assert found.reason.startswith(reason)

    @pytest.mark.parametrize("values", [[], [math.nan, 0.5], [math.inf, 0.5]])
    def test_no_number_without_numbers(self, values: list[float]) -> None:
        assert welch(values, [0.4, 0.5]) == Outcome(reason="a value is missing or is not a number")

    def test_a_printed_spread_of_nothing(self) -> None:
        found = welch_of_printed((0.4, 0.0, 4), (0.5, 0.1, 4), ("own", "published"))
        assert (found.p_value, found.difference) == (None, pytest.approx(-0.1))
        assert found.reason == "all runs of the own model are equal: no spread to test the difference against"
        assert welch_of_printed((0.4, math.nan, 4), (0.5, 0.1, 4)).difference is None
        assert welch_of_printed((0.4, 0.1, 1), (0.5, 0.1, 4)).p_value is None


class TestPaired:
    def test_worked_by_hand(self) -> None:
        found = paired([0.6, 0.7, 0.8], [0.5, 0.65, 0.7])
        # Differences 0.1, 0.05, 0.1: mean 1/12, variance 1/1200, so t = (1/12) / sqrt(1/3600) = 5 with 2 degrees.
        assert found.difference == pytest.approx(1 / 12)
        assert found.p_value == pytest.approx(
            1 - 5 / math.sqrt(27)
        )  # the t distribution with 2 degrees, in closed form
        assert found.effect == pytest.approx(5 / math.sqrt(3))
        half = 4.302653 / 60
        assert found.interval == Interval(
            low=pytest.approx(1 / 12 - half), high=pytest.approx(1 / 12 + half), method="Student t"
        )
        assert (found.effect_name, found.method) == ("d_z", "paired t")

    def test_a_difference_that_is_the_same_but_for_rounding(self) -> None:
        assert 0.6 - 0.5 != 0.4 - 0.3
        found = paired([0.6, 0.4, 0.7], [0.5, 0.3, 0.6])
        assert found.p_value is None
        assert found.reason == "the difference is the same in every pair: no spread to test it against"

    def test_one_pair(self) -> None:
        assert paired([0.6], [0.5]).p_value is None

    def test_not_a_number(self) -> None:
        assert paired([0.6, math.nan], [0.5, 0.4]) == Outcome(reason="a value is missing or is not a number")


class TestHolm:
    def test_worked_by_hand(self) -> None:
        outcomes = [Outcome(p_value=p) for p in (0.04, None, 0.01, 0.03)]
        # Four comparisons, that without a test as p = 1: 4 x 0.01, 3 x 0.03, and 2 x 0.04 is not below the one before.
        assert holm(outcomes) == pytest.approx((0.09, None, 0.04, 0.09))

    def test_a_comparison_that_is_lost_makes_no_other_significant(self) -> None:
        whole = holm([Outcome(p_value=0.03), Outcome(p_value=0.06)])
        assert whole == pytest.approx((0.06, 0.06))
        assert holm([Outcome(p_value=0.03), Outcome(reason="incomplete")]) == pytest.approx((0.06, None))

    def test_nothing_to_correct(self) -> None:
        assert holm([]) == ()
        assert holm([Outcome(reason="why")]) == (None,)


class TestCells:
    def test_seeds_are_compared_by_welch(self, tmp_path: Path) -> None:
        found = {
            c.gated.cell.id: c for c in compare_cells(facing_pairs(build_table(load_results(worked_study(tmp_path)))))
        }
        deep = found["zinc-gcn-boosting-bilateral-L16-500000"]
        # 0.27 0.28 0.28 0.29 against 0.36 0.37 0.37 0.38: variances 2e-4 / 3 each, over four.
        error = math.sqrt(2 * 2e-4 / 3 / 4)
        assert deep.outcome.method == "Welch t"
        assert deep.outcome.difference == pytest.approx(-0.09)
        assert deep.outcome.p_value == pytest.approx(2 * t.sf(0.09 / error, 6), rel=1e-6)
        uniform = found["zinc-gcn-boosting-uniform-L4-100000"]
        interleaved = found["zinc-gcn-interleaved-bilateral-L4-100000"]
        # Of nine pairs three have a p-value; the smallest is taken nine times, the next eight.
        assert len(found) == 9
        assert [c.p_holm is not None for c in found.values()].count(True) == 3
        assert deep.p_holm == pytest.approx(9 * deep.outcome.p_value)
        assert uniform.p_holm == pytest.approx(8 * uniform.outcome.p_value)  # type: ignore[operator]
        assert (interleaved.outcome.p_value, interleaved.p_holm) == (1.0, 1.0)
        assert [(c.significant, c.favours_gated) for c in (deep, uniform, interleaved)] == [
            *((True, True), (False, True), (False, False))
        ]

    def test_what_cannot_be_tested_says_why(self, tmp_path: Path) -> None:
        found = {
            c.gated.cell.id: c for c in compare_cells(facing_pairs(build_table(load_results(worked_study(tmp_path)))))
        }
        reasons = {
            "zinc-gcn-boosting-bilateral-L4-100000": "all runs of the bilateral model are equal",
            "zinc-gat-boosting-bilateral-L4-100000": "incomplete: bilateral lacks 1 run",
            "digits-bi-8": "one run gives no spread",
            "enzymes-gat-dense-bilateral-L4-100000": "incomplete: bilateral lacks 3 runs, vanilla lacks 1 run",
        }
        for cell, reason in reasons.items():
            assert found[cell].outcome.p_value is found[cell].p_holm is None
            assert not found[cell].significant
            assert (found[cell].outcome.reason or "").startswith(reason)
        assert found["zinc-gat-boosting-bilateral-L4-100000"].outcome.difference is None
        assert not found["zinc-gat-boosting-bilateral-L4-100000"].favours_gated

    def test_folds_are_paired_in_whatever_order_they_were_run(self, tmp_path: Path) -> None:
        folds = {"seeds": [41], "folds": [0, 1, 2]}
        base, bi = vanilla("enzymes", "gcn", **folds), gated("enzymes", "gcn", **folds)
        trials = [
            *(trial(base, 41, test, fold=fold) for fold, test in [(2, 0.7), (0, 0.5), (1, 0.65)]),
            *(trial(bi, 41, test, fold=fold) for fold, test in [(1, 0.7), (2, 0.8), (0, 0.6)]),
        ]
        (found,) = compared(tmp_path, [base, bi], trials)
        assert found.outcome.method == "paired t"
        assert found.outcome.p_value == pytest.approx(1 - 5 / math.sqrt(27))
        assert found.favours_gated

    def test_seeds_of_a_fold_count_once(self, tmp_path: Path) -> None:
        folds = {"seeds": [41, 95], "folds": [0, 1, 2]}
        base, bi = vanilla("enzymes", "gcn", **folds), gated("enzymes", "gcn", **folds)
        ours = {(41, 0): 0.5, (95, 0): 0.7, (41, 1): 0.7, (95, 1): 0.7, (41, 2): 0.9, (95, 2): 0.7}
        theirs = {(41, 0): 0.5, (95, 0): 0.5, (41, 1): 0.6, (95, 1): 0.7, (41, 2): 0.7, (95, 2): 0.7}
        trials = [
            *(trial(bi, seed, test, fold=fold) for (seed, fold), test in ours.items()),
            *(trial(base, seed, test, fold=fold) for (seed, fold), test in theirs.items()),
        ]
        (found,) = compared(tmp_path, [base, bi], trials)
        # Means of the folds are 0.6 0.7 0.8 and 0.5 0.65 0.7: the example above, and not one of six pairs.
        assert found.outcome.p_value == pytest.approx(1 - 5 / math.sqrt(27))

    def test_the_interval_of_a_mean_is_over_folds_and_not_over_all_their_seeds(self, tmp_path: Path) -> None:
        cell = vanilla("enzymes", "gcn", seeds=[41, 95], folds=[0, 1])
        tests = {(41, 0): 0.5, (95, 0): 0.7, (41, 1): 0.9, (95, 1): 0.7}
        trials = [trial(cell, seed, test, fold=fold) for (seed, fold), test in tests.items()]
        (summary,) = summarise(load_results(write_study(tmp_path, [cell], trials)))
        # Means of the two folds: 0.6 and 0.8, whose standard deviation (ddof 1) is 0.2 / sqrt(2).
        half = t.ppf(0.975, 1) * 0.1
        found = interval_of(summary)
        assert found is not None
        assert (found.low, found.high) == (pytest.approx(0.7 - half), pytest.approx(0.7 + half))

    def test_two_folds_are_paired(self, tmp_path: Path) -> None:
        folds = {"seeds": [41], "folds": [0, 1]}
        base, bi = vanilla("enzymes", "gcn", **folds), gated("enzymes", "gcn", **folds)
        tests = {base["id"]: (0.5, 0.6), bi["id"]: (0.6, 0.9)}
        trials = [trial(cell, 41, tests[cell["id"]][fold], fold=fold) for cell in (base, bi) for fold in (0, 1)]
        (found,) = compared(tmp_path, [base, bi], trials)
        # Differences 0.1 and 0.3: mean 0.2, error 0.1, so t = 2 with 1 degree: Cauchy's distribution.
        assert found.outcome.method == "paired t"
        assert found.outcome.p_value == pytest.approx(1 - 2 / math.pi * math.atan(2))

    def test_one_fold_is_no_fold(self, tmp_path: Path) -> None:
        one = {"seeds": [1, 2, 3, 4], "folds": [7]}
        base, bi = vanilla("enzymes", "gcn", **one), gated("enzymes", "gcn", **one)
        trials = [
            *(trial(base, seed, 2.0 * seed, fold=7) for seed in (1, 2, 3, 4)),
            *(trial(bi, seed, float(seed), fold=7) for seed in (1, 2, 3, 4)),
        ]
        (found,) = compared(tmp_path, [base, bi], trials)
        assert (found.outcome.method, found.outcome.difference) == ("Welch t", -2.5)
        assert independent_values(found.gated) == [1.0, 2.0, 3.0, 4.0]

    def test_without_folds_other_seeds_are_compared(self, tmp_path: Path) -> None:
        base, bi = vanilla("digits", "gcn", seeds=[41, 95]), gated("digits", "gcn", seeds=[1, 2])
        tests = {41: 0.2, 95: 0.4, 1: 0.6, 2: 0.8}
        trials = [trial(cell, seed, tests[seed]) for cell in (base, bi) for seed in cell["seeds"]]
        (found,) = compared(tmp_path, [base, bi], trials)
        # Variances 0.02 over two, so t = 0.4 / sqrt(0.02) = sqrt(8) with 2 degrees: p = 1 - t / sqrt(t^2 + 2).
        assert found.outcome.method == "Welch t"
        assert found.outcome.p_value == pytest.approx(1 - 2 / math.sqrt(5))

    def test_other_folds_or_seeds_are_not_compared(self, tmp_path: Path) -> None:
        base = vanilla("enzymes", "gcn", seeds=[41], folds=[0, 1])
        bi = gated("enzymes", "gcn", seeds=[41], folds=[1, 2])
        trials = [trial(cell, 41, 0.1 * fold, fold=fold) for cell in (base, bi) for fold in cell["folds"]]
        (found,) = compared(tmp_path, [base, bi], trials)
        assert found.outcome == Outcome(reason="the two were not run from the same seeds on the same folds")

    def test_folds_of_other_data_are_not_paired(self, tmp_path: Path) -> None:
        base, bi = (make("enzymes", "gcn", seeds=[41], folds=[0, 1, 2]) for make in (vanilla, gated))
        trials = [trial(base, 41, test, fold=fold) for fold, test in enumerate((0.5, 0.6, 0.55))]
        others = [trial(bi, 41, test, fold=fold) for fold, test in enumerate((0.6, 0.7, 0.66))]
        (found,) = compared(tmp_path / "same", [base, bi], [*trials, *others])
        assert found.outcome.method == "paired t"
        (found,) = compared(
            tmp_path / "other", [base, bi], [*trials, *(replace(one, data_fingerprint="ee") for one in others)]
        )
        assert found.outcome == Outcome(reason="not the same data: ee and 0f")

    def test_nan_is_no_number(self, tmp_path: Path) -> None:
        base, bi = vanilla("zinc", "gcn"), gated("zinc", "gcn")
        (found,) = compared(tmp_path, [base, bi], [*runs(base, [1, 2, 3, 4]), *runs(bi, [1, 2, 3, math.nan])])
        assert found.outcome == Outcome(reason="incomplete: bilateral lacks 1 run")
        broken = replace(found.vanilla, runs=(replace(found.vanilla.runs[0], test=math.nan), *found.vanilla.runs[1:]))
        (found,) = compare_cells([(broken, found.vanilla)])
        assert found.outcome == Outcome(reason="a value is missing or is not a number")

    def test_not_the_same_dataset(self, tmp_path: Path) -> None:
        cells = [vanilla("zinc", "gcn"), gated("digits", "gcn")]
        summaries = summarise(load_results(write_study(tmp_path, cells, [])))
        (found,) = compare_cells([(summaries[1], summaries[0])])
        assert found.outcome == Outcome(reason="not the same dataset: digits and zinc")

    @pytest.mark.parametrize(("dataset", "favours"), [("zinc", False), ("digits", True)])
    def test_direction(self, tmp_path: Path, dataset: str, favours: bool) -> None:
        base, bi = vanilla(dataset, "gcn"), gated(dataset, "gcn")
        trials = [*runs(base, [0.1, 0.2, 0.1, 0.2]), *runs(bi, [0.7, 0.8, 0.7, 0.8])]
        (found,) = compared(tmp_path, [base, bi], trials)
        assert (found.significant, found.favours_gated) == (True, favours)

    def test_significant_is_strictly_below_the_level(self, tmp_path: Path) -> None:
        base, bi = vanilla("zinc", "gcn"), gated("zinc", "gcn")
        (found,) = compared(tmp_path, [base, bi], [])
        assert not replace(found, p_holm=0.05).significant
        assert replace(found, p_holm=math.nextafter(0.05, 0)).significant

    @pytest.mark.parametrize("dataset", ["zinc", "digits"])
    def test_equal_means_differ_by_nothing(self, tmp_path: Path, dataset: str) -> None:
        base, bi = vanilla(dataset, "gcn"), gated(dataset, "gcn")
        trials = [*runs(base, [0.1, 0.2, 0.3, 0.7]), *runs(bi, [0.7, 0.1, 0.3, 0.2])]
        (found,) = compared(tmp_path, [base, bi], trials)
        assert found.outcome.difference == 0.0
        assert not found.favours_gated

    def test_a_searched_gate_stands_with_what_it_faces(self, tmp_path: Path) -> None:
        cells = [vanilla("zinc", "gcn"), gated("zinc", "gcn"), gated("zinc", "gat")]
        table = build_table(load_results(write_study(tmp_path, cells, [])))
        assert [(one.cell.id, other.cell.id) for one, other in facing_pairs(table)] == [
            ("zinc-gcn-boosting-bilateral-L4-100000", "zinc-gcn-none-L4-100000")
        ]


class TestPaper:
    """Tables 2 and 3: 24 comparisons of printed numbers, of which 21 are printed in bold."""

    @pytest.fixture
    def found(self) -> tuple[Comparison[PaperRow], ...]:
        return compare_published(published_pairs())

    def test_eight_of_the_bold_cells_survive(self, found: tuple[Comparison[PaperRow], ...]) -> None:
        assert len(found) == 24
        assert sum(c.gated.bold for c in found) == 21
        assert all(c.gated.bold == c.favours_gated for c in found)
        assert sum(c.gated.bold and c.significant for c in found) == 8
        assert sum(c.significant for c in found) == 8  # the two that are worse than what they face do not

    def test_before_the_correction(self, found: tuple[Comparison[PaperRow], ...]) -> None:
        small = [c for c in found if c.outcome.p_value is not None and c.outcome.p_value < 0.05]
        assert sum(c.gated.bold for c in small) == 10
        assert [c.gated.name for c in small if not c.favours_gated] == ["CIFAR10 bi-GCN L4", "CIFAR10 bi-GraphSAGE L4"]

    def test_one_of_them_by_hand(self, found: tuple[Comparison[PaperRow], ...]) -> None:
        (gcn,) = [c for c in found if c.gated.name == "ZINC bi-GCN L4"]
        # 0.394 and 0.459, both +- 0.006 with ddof 0: with ddof 1 the variances are 0.006^2 * 4 / 3, over four runs.
        statistic = 0.065 / math.sqrt(2 * 0.006**2 / 3)
        assert gcn.outcome.difference == pytest.approx(-0.065)
        assert gcn.outcome.p_value == pytest.approx(2 * t.sf(statistic, 6), rel=1e-6)

    def test_accuracies_are_fractions(self, found: tuple[Comparison[PaperRow], ...]) -> None:
        (gcn,) = [c for c in found if c.gated.name == "SMNIST bi-GCN L4"]
        assert gcn.outcome.difference == pytest.approx(0.001)

    def test_placements_and_small_datasets_have_pairs_too(self) -> None:
        assert len(published_pairs(("placement",))) == 6
        assert len(published_pairs(("small",))) == 12
