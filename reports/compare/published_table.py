"""The table of our cells beside published numbers, and the files of both tables of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reports.compare.against_published import BesidePublished, beside_published
from reports.compare.comparison_table import (
    DASH,
    compare_tables,
    comparison_grid,
    difference_text,
    p_value_text,
    scaled_text,
    spread_text,
    steady,
)
from reports.grid import Column, Grid, Section, write_grid
from reports.layout.result_table import ResultTable, build_table
from reports.published.protocol_flags import flags_text
from reports.published.rows import PaperRow, sources
from reports.records.load import StudyResults
from reports.words.plain_text import plain
from reports.words.prose import METRIC_MEANINGS, METRIC_NAMES, Note, Text

COLUMNS = (
    Column(head="Model"),
    Column(head="L", align="right"),
    Column(head="Test", align="right"),
    Column(head="Published", width=24),
    Column(head="Printed", align="right"),
    Column(head="Run by", width=30),
    Column(head="Difference", align="right"),
    Column(head="Within"),
    Column(head="p", align="right"),
    Column(head="What differs: ours (published)", width=78),
)
CAPTION = (
    "Our models beside published numbers. Mean ± standard deviation of the test metric, ours with ddof 0, the printed "
    "taken so. Difference: ours - printed. Within: whether the two ranges mean ± standard deviation meet, that is, "
    "whether the difference is no larger than the sum of both standard deviations. p: Welch's t-test, two-sided, from "
    "both means, standard deviations and numbers of runs; not corrected. A row called nearest is of another model than "
    "ours. What differs is what is known to: a number is evidence for or against another only where nothing does."
)
OUTSIDE = (
    "Of rows outside the paper, batch size, learning rate and schedule are not listed here, so that a difference in "
    "them is not marked."
)

SEEDS_ON_FOLDS = (
    "Where ours ran from several seeds on each of several folds, p counts the mean of each fold as one run: further "
    "seeds say nothing new about folds."
)

DATA = (
    "Records name their data by a fingerprint. Whether these are the published graphs and splits is not marked above, "
    "and whether they are all of them only where their number is known:"
)


def published_grid(rows: Sequence[BesidePublished]) -> Grid:
    """The table of ``rows``, a section for each dataset in the order in which they come."""
    sections: dict[str, list[tuple[Text, ...]]] = {}
    previous = None
    for row in rows:
        cell = row.summary.cell
        title = f"{cell.dataset_title}, {METRIC_NAMES[cell.metric]}: {METRIC_MEANINGS[cell.metric]}"
        here = (row.study, cell.id)
        sections.setdefault(title, []).append(_row(row, is_first=here != previous))
        previous = here
    return Grid(
        name="published",
        title="Our models beside published numbers",
        caption=(CAPTION,),
        columns=COLUMNS,
        sections=tuple(Section(title=title, rows=tuple(found)) for title, found in sections.items()),
        notes=tuple(_notes(rows)),
        nothing="Nothing is published of these datasets.",
        wide=True,
        record_fields=RECORD_FIELDS,
        records=tuple(_record(row) for row in rows),
    )


def write_comparisons(
    studies: Sequence[StudyResults], out: Path, tables: Sequence[ResultTable] | None = None
) -> tuple[Path, ...]:
    """Write ``comparisons`` and ``published`` into the folder ``out``, each as LaTeX, Markdown, CSV and HTML.

    Args:
        studies: compared together, under one correction, and set beside published numbers.
        out: folder to write to.
        tables: of each of ``studies``, if they are built already; cells that are not in them are left out.

    Raises:
        OSError: ``out`` cannot be written.
    """
    built = [build_table(study) for study in studies] if tables is None else tables
    beside = [row for study, table in zip(studies, built, strict=True) for row in beside_published(study, table)]
    grids = (comparison_grid(compare_tables(built)), published_grid(beside))
    return tuple(path for grid in grids for path in write_grid(grid, out))


def _row(row: BesidePublished, is_first: bool) -> tuple[Text, ...]:
    metric, layers = row.summary.cell.metric, row.summary.chosen.layers
    nearest = "" if row.counterpart or row.kind != "paper" else " (nearest)"
    within = {True: "yes", False: "no", None: DASH}[row.within_spread]
    return (
        (row.label,),
        (DASH if layers is None else str(layers),),
        (spread_text(row.summary),) if is_first else (),
        (row.name + nearest,),
        (_printed(row),),
        (row.origin,),
        (difference_text(row.difference, metric),),
        (within,),
        (p_value_text(row.outcome.p_value),),
        (flags_text(row.flags) or "nothing that is known",),
    )


def _printed(row: BesidePublished) -> str:
    metric = row.published.metric
    mean = scaled_text(row.printed_mean, metric)
    return mean if row.printed_std is None else f"{mean} ± {scaled_text(row.printed_std, metric)}"


def _notes(rows: Sequence[BesidePublished]) -> list[Note]:
    notes = [
        Note(heading=DATA, items=_data(rows)),
        Note(heading="Not compared:", items=_not_compared(rows)),
        Note(heading="Of the published rows:", items=_remarks(rows)),
        Note(heading="Sources:", items=_sources(rows)),
    ]
    outside = [Note(heading=OUTSIDE)] if any(row.kind != "paper" for row in rows) else []
    cells = [row.summary.cell for row in rows]
    averaged = any(cell.folds is not None and min(len(cell.folds), len(cell.seeds)) > 1 for cell in cells)
    return [*outside, *([Note(heading=SEEDS_ON_FOLDS)] if averaged else []), *(note for note in notes if note.items)]


def _not_compared(rows: Sequence[BesidePublished]) -> tuple[Text, ...]:
    reasons = {
        (row.study, row.summary.cell.id): (f"{row.summary.cell.dataset_title}, ", row.label, f": {row.outcome.reason}")
        for row in rows
        if row.difference is None
    }
    return tuple(reasons.values())


def _data(rows: Sequence[BesidePublished]) -> tuple[Text, ...]:
    fingerprints: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.data_fingerprint is not None:
            fingerprints.setdefault(row.summary.cell.dataset_title, {})[row.data_fingerprint] = None
    return tuple((f"{title}: {', '.join(found)}",) for title, found in fingerprints.items())


def _remarks(rows: Sequence[BesidePublished]) -> tuple[Text, ...]:
    noted = {
        row.published.name: row.published.note
        for row in rows
        if isinstance(row.published, PaperRow) and row.published.note
    }
    return tuple((f"{name}: {note}",) for name, note in noted.items())


def _sources(rows: Sequence[BesidePublished]) -> tuple[Text, ...]:
    named = dict.fromkeys(row.published.source for row in rows)
    return tuple((f"{source}: {sources()[source]}",) for source in named)


RECORD_FIELDS = (
    *("study", "cell", "model", "dataset", "metric", "layers", "params", "n", "mean", "std"),
    *("published", "kind", "counterpart", "source", "origin", "published_params"),
    *("printed_mean", "printed_std", "printed_runs"),
    *("difference", "within_spread", "p", "reason", "differs", "data_fingerprint"),
)
"""Columns of the CSV: metrics as fractions, computed numbers to 12 digits;
``differs``: ``setting=ours|theirs``, parted by semicolons."""


def _record(row: BesidePublished) -> dict[str, object]:
    summary, published = row.summary, row.published
    values = (
        *(row.study, summary.cell.id, plain(row.label), summary.cell.dataset, summary.cell.metric),
        *(summary.chosen.layers, summary.chosen.params, summary.finished),
        *((summary.test.mean, summary.test.std) if summary.test else (None, None)),
        *(row.name, row.kind, row.counterpart, published.source, row.origin),
        published.params_true if isinstance(published, PaperRow) else published.params,
        *(row.printed_mean, row.printed_std, row.printed_runs),
        *(steady(row.difference), row.within_spread, steady(row.outcome.p_value), row.outcome.reason),
        "; ".join(f"{flag.setting}={flag.ours}|{flag.theirs}" for flag in row.flags),
        row.data_fingerprint,
    )
    return dict(zip(RECORD_FIELDS, values, strict=True))
