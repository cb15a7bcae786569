"""The table of comparisons: one row for each gated model and the vanilla one that it faces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.compare.against_vanilla import Comparison, compare_cells, independent_values
from reports.compare.inference import BOOTSTRAP_FROM, RESAMPLES, SIGNIFICANCE, Interval, interval
from reports.grid import Column, Grid, Section
from reports.layout.columns import runs_text
from reports.layout.result_table import Entry, ResultTable
from reports.summary.marks import Mark
from reports.summary.summarise import CellSummary
from reports.words.plain_text import plain
from reports.words.prose import METRIC_MEANINGS, METRIC_NAMES, Marked, Note, Text
from reports.words.units import scale_of
from study.counted import counted

DASH = "–"  # noqa: RUF001
COLUMNS = (
    Column(head="Gated model"),
    Column(head="L", align="right"),
    Column(head="Test", align="right"),
    Column(head="95% interval", align="right"),
    Column(head="Vanilla model"),
    Column(head="L", align="right"),
    Column(head="Test", align="right"),
    Column(head="95% interval", align="right"),
    Column(head="Difference", align="right"),
    Column(head="95% interval", align="right"),
    Column(head="Effect", align="right"),
    Column(head="p", align="right"),
    Column(head="p (Holm)", align="right"),
    Column(head="Outcome", width=44),
)
RULES = (
    "Mean ± population standard deviation (ddof 0) of the test metric, and 95% interval of the mean (ddof 1): "
    f"Student's t, from {BOOTSTRAP_FROM} values up a BCa bootstrap of {RESAMPLES:,} resamples under a fixed seed. "
    "Difference: gated - vanilla. Tests are two-sided: the paired t-test over folds where models are run on folds, "
    "Welch's t-test over seeds elsewhere; the interval of the difference is the test's own and is not corrected. "
    "Effect: d_z (paired; not corrected) or Hedges' g (Welch; pooled standard deviation, corrected for few values). "
)
FOLDS = (
    "Folds share most of their training graphs, so that differences between them are not independent: read p-values "
    "over folds as too small rather than too large."
)


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """A comparison and the names of its models in the table that they stand in."""

    study: str
    gated: Entry
    vanilla: Entry
    comparison: Comparison[CellSummary]


def compare_tables(tables: Sequence[ResultTable]) -> tuple[Pairing, ...]:
    """Every gated cell of ``tables`` against the vanilla cell that it faces, corrected over all of them together."""
    facing = [
        (table.study, entry, vanillas[entry.faces])
        for table in tables
        for vanillas in [{entry.summary.cell.id: entry for entry in table.entries}]
        for entry in table.entries
        if entry.faces is not None
    ]
    compared = compare_cells([(gated.summary, vanilla.summary) for _, gated, vanilla in facing])
    return tuple(
        Pairing(study=study, gated=gated, vanilla=vanilla, comparison=comparison)
        for (study, gated, vanilla), comparison in zip(facing, compared, strict=True)
    )


def comparison_grid(pairings: Sequence[Pairing]) -> Grid:
    """The table of ``pairings``, a section for each dataset in the order in which they come."""
    untested = sum(pairing.comparison.p_holm is None for pairing in pairings)
    over = f"over the {counted(len(pairings), 'comparison')} of this table"
    over += f", of which {untested} without a test count{'s' * (untested == 1)} as p = 1" if untested else ""
    sections: dict[str, list[tuple[Text, ...]]] = {}
    for pairing in pairings:
        cell = pairing.gated.summary.cell
        title = f"{cell.dataset_title}, {METRIC_NAMES[cell.metric]}: {METRIC_MEANINGS[cell.metric]}"
        sections.setdefault(title, []).append(_row(pairing))
    records = tuple(_record(pairing) for pairing in pairings)
    return Grid(
        name="comparisons",
        title="Gated models against vanilla ones",
        caption=(
            f"Gated models against the vanilla ones that they face. {RULES}p (Holm): corrected {over}. ",
            Marked(words="Bold", mark=Mark.BETTER),
            ": below 0.05 after the correction.",
        ),
        columns=COLUMNS,
        sections=tuple(Section(title=title, rows=tuple(rows)) for title, rows in sections.items()),
        notes=(Note(heading=FOLDS),)
        if any(pairing.comparison.outcome.method == "paired t" for pairing in pairings)
        else (),
        nothing="No gated model faces a vanilla one.",
        wide=True,
        record_fields=RECORD_FIELDS,
        records=records,
    )


def verdict(comparison: Comparison[CellSummary]) -> Text:
    """What a comparison shows, in words."""
    if comparison.p_holm is None:
        return (f"not tested: {comparison.outcome.reason}",)
    if not comparison.significant:
        return ("no difference shown",)
    return (Marked(words="better" if comparison.favours_gated else "worse", mark=Mark.BETTER),)


def p_value_text(value: float | None) -> str:
    """Three decimals; a dash where there is none. What is below the level is never printed as the level."""
    if value is None:
        return DASH
    level = f"{SIGNIFICANCE:.3f}"
    if value < SIGNIFICANCE and f"{value:.3f}" == level:
        return f"< {level}"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def difference_text(value: float | None, metric: str) -> str:
    """A difference of fractions as the tables print the metric, with its sign; without one where it rounds to zero."""
    if value is None:
        return DASH
    return _signed(value * scale_of(metric), 3)


def scaled_text(value: float | None, metric: str, sign: str = "") -> str:
    """A fraction as the tables print the metric; ``sign`` ``+``: also of what is above 0."""
    return DASH if value is None else format(value * scale_of(metric), f"{sign}.3f")


def _signed(value: float, decimals: int) -> str:
    shown = f"{value:+.{decimals}f}"
    return shown if float(shown) else shown[1:]


def spread_text(summary: CellSummary) -> str:
    """Mean ± standard deviation as the tables print it, with the number of runs where some are missing."""
    if summary.test is None:
        return DASH
    metric = summary.cell.metric
    mean, std = (scaled_text(value, metric) for value in (summary.test.mean, summary.test.std))
    number = mean if summary.test.std is None else f"{mean} ± {std}"
    return f"{number}{runs_text(summary)}"


def steady(value: float | None) -> float | None:
    """A computed number to 12 significant digits: the last of them may hang on the machine's arithmetic."""
    return None if value is None else float(f"{value:.12g}")


def interval_of(summary: CellSummary) -> Interval | None:
    """The 95% interval of a cell's mean test metric; None where a run is missing or there is only one.

    Several seeds on a fold are one value of it, as in the test: they say nothing new about folds.
    """
    return interval(independent_values(summary)) if summary.complete else None


def _row(pairing: Pairing) -> tuple[Text, ...]:
    comparison, metric = pairing.comparison, pairing.gated.summary.cell.metric
    outcome = comparison.outcome
    holm = p_value_text(comparison.p_holm)
    cells: tuple[Text, ...] = (
        *_side(pairing.gated),
        *_side(pairing.vanilla),
        (difference_text(outcome.difference, metric),),
        (_interval_text(outcome.interval, metric, "+"),),
        (DASH if outcome.effect is None else _signed(outcome.effect, 2),),
        (p_value_text(outcome.p_value),),
        (Marked(words=holm, mark=Mark.BETTER) if comparison.significant else holm,),
        verdict(comparison),
    )
    return cells


def _side(entry: Entry) -> tuple[Text, ...]:
    summary = entry.summary
    layers = summary.chosen.layers
    return (
        (entry.label,),
        (DASH if layers is None else str(layers),),
        (spread_text(summary),),
        (_interval_text(interval_of(summary), summary.cell.metric),),
    )


def _interval_text(found: Interval | None, metric: str, sign: str = "") -> str:
    if found is None:
        return DASH
    return f"[{scaled_text(found.low, metric, sign)}, {scaled_text(found.high, metric, sign)}]"


_SIDE_FIELDS = ("cell", "model", "layers", "n", "mean", "std", "interval_low", "interval_high", "interval_method")
RECORD_FIELDS = (
    *("study", "dataset", "metric", "direction"),
    *(f"{side}_{name}" for side in ("gated", "vanilla") for name in _SIDE_FIELDS),
    *("difference", "difference_low", "difference_high", "effect", "effect_name"),
    *("test", "p", "p_holm", "significant", "favours_gated", "reason"),
)
"""Columns of the CSV: metrics as fractions, computed ones to 12 digits;
``std`` with ddof 0; ``test`` is empty where there was none."""


def _record(pairing: Pairing) -> dict[str, object]:
    comparison, outcome = pairing.comparison, pairing.comparison.outcome
    cell = pairing.gated.summary.cell
    return {
        "study": pairing.study,
        "dataset": cell.dataset,
        "metric": cell.metric,
        "direction": cell.direction,
        **_side_record("gated", pairing.gated),
        **_side_record("vanilla", pairing.vanilla),
        "difference": steady(outcome.difference),
        "difference_low": steady(outcome.interval.low) if outcome.interval else None,
        "difference_high": steady(outcome.interval.high) if outcome.interval else None,
        "effect": steady(outcome.effect),
        "effect_name": outcome.effect_name,
        "test": outcome.method,
        "p": steady(outcome.p_value),
        "p_holm": steady(comparison.p_holm),
        "significant": comparison.significant if comparison.p_holm is not None else None,
        "favours_gated": comparison.favours_gated if outcome.difference is not None else None,
        "reason": outcome.reason,
    }


def _side_record(side: str, entry: Entry) -> dict[str, object]:
    summary, found = entry.summary, interval_of(entry.summary)
    values = (
        *(summary.cell.id, plain(entry.label), summary.chosen.layers, summary.finished),
        *((summary.test.mean, summary.test.std) if summary.test else (None, None)),
        *((steady(found.low), steady(found.high), found.method) if found else (None, None, None)),
    )
    return {f"{side}_{name}": value for name, value in zip(_SIDE_FIELDS, values, strict=True)}
