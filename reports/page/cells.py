"""The cells of a study as flat tables: one row a cell, with its numbers, and one with what was planned and run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup

from reports.layout.columns import shortest
from reports.layout.result_table import Entry
from reports.page.facts import Facts
from reports.page.markup import NOTHING, written
from reports.page.sortable import Column, Row, SortableTable, Value, flat_table, number, words
from reports.records.plan import PlanCell
from reports.records.search_plan import SearchPlan
from reports.summary.marks import Mark
from reports.summary.summarise import Gap, Spread
from reports.words.prose import METRIC_NAMES
from reports.words.units import scale_of

_MARKS = {Mark.PLAIN: None, Mark.BETTER: "better", Mark.BEST: "best"}
_SHORT = {"layers": "L", "num_clusters": "K"}
_RESULT_COLUMNS = (
    Column(head="Dataset"),
    Column(head="Model"),
    Column(head="L", kind="number"),
    Column(head="Metric"),
    Column(head="Test mean", kind="number"),
    Column(head="Test std", kind="number"),
    Column(head="Train mean", kind="number"),
    Column(head="Runs", kind="number"),
    Column(head="Mark"),
    Column(head="Epochs", kind="number"),
    Column(head="Params", kind="number"),
    Column(head="Budget", kind="number"),
    Column(head="Placement"),
    Column(head="Gate"),
    Column(head="K", kind="number"),
    Column(head="sigma_m", kind="number"),
)
_PLAN_COLUMNS = (
    Column(head="Dataset"),
    Column(head="Model"),
    Column(head="Search: planned", kind="number"),
    Column(head="Search: on record", kind="number"),
    Column(head="Search: finished", kind="number"),
    Column(head="Search: pruned", kind="number"),
    Column(head="Search: failed or diverged", kind="number"),
    Column(head="Confirm: planned", kind="number"),
    Column(head="Confirm: finished", kind="number"),
    Column(head="Confirm: missing", kind="number"),
    Column(head="What is missing, and why", width="wide"),
    Column(head="Planned settings", width="wide"),
)


def result_rows(entries: Sequence[Entry], anchor: Callable[[str], str]) -> SortableTable:
    """One row a cell; numbers as the table of the paper prints them, sorted by all of their digits.

    ``anchor`` gives the id of a cell's evidence.
    """
    rows = [_result_row(entry, anchor(entry.summary.cell.id)) for entry in entries]
    return flat_table("Every cell with its numbers", _RESULT_COLUMNS, rows, kept=("Test mean",))


def plan_rows(
    entries: Sequence[Entry], facts: Facts, searches: Mapping[str, SearchPlan], anchor: Callable[[str], str]
) -> SortableTable:
    """What was planned for each cell beside what is on record; ``searches``: that of each cell."""
    rows = [_plan_row(entry, facts, searches, anchor(entry.summary.cell.id)) for entry in entries]
    return flat_table("What was planned for each cell, and what was run", _PLAN_COLUMNS, rows)


def _result_row(entry: Entry, evidence: str) -> Row:
    summary = entry.summary
    chosen = summary.chosen
    scale = scale_of(summary.cell.metric)

    def linked(value: float | None) -> Value:
        return number(value, shown=_link(NOTHING if value is None else f"{value:.3f}", evidence, entry.mark))

    def scaled(spread: Spread | None) -> float | None:
        return None if spread is None else scale * spread.mean

    return (
        words(summary.cell.dataset_title),
        _model(entry),
        number(chosen.layers),
        words(METRIC_NAMES[summary.cell.metric]),
        linked(scaled(summary.test)),
        number(None if summary.test is None or summary.test.std is None else scale * summary.test.std, ".3f"),
        number(scaled(summary.train), ".3f"),
        number(summary.finished, shown=f"{summary.finished}/{summary.asked}"),
        words(_MARKS[entry.mark]),
        number(summary.last_epoch, shown=NOTHING if summary.last_epoch is None else shortest(summary.last_epoch)),
        number(chosen.params, ","),
        number(chosen.budget, ","),
        words(chosen.placement),
        words(chosen.gate),
        number(chosen.num_clusters),
        number(chosen.sigma_m, ".3g"),
    )


def _plan_row(entry: Entry, facts: Facts, searches: Mapping[str, SearchPlan], evidence: str) -> Row:
    summary = entry.summary
    cell = summary.cell

    def search(*statuses: str) -> Value:
        return number(facts.count_in_cell(cell.id, "search", *statuses))

    missing = summary.asked - summary.finished
    return (
        words(cell.dataset_title),
        _model(entry),
        number(searches[cell.id].trials),
        search(),
        search("finished"),
        search("pruned"),
        search("failed", "diverged"),
        number(summary.asked),
        number(summary.finished, shown=_link(str(summary.finished), evidence)),
        number(missing, shown=Markup("<b>{}</b>").format(missing) if missing else "0"),
        words("; ".join(_gap(gap) for gap in summary.gaps) or None),
        words(_settings(cell, searches[cell.id])),
    )


def _model(entry: Entry) -> Value:
    return Value(shown=written((entry.label,)))


def _settings(cell: PlanCell, search: SearchPlan) -> str:
    """What the plan fixes, and what it leaves to the search."""
    settings: dict[str, object] = {"L": cell.layers, "budget": cell.budget}
    if cell.budget is None and cell.hidden_dim is not None:
        settings = {"L": cell.layers, "hidden_dim": cell.hidden_dim}
    if cell.placement != "none":
        settings |= {"placement": cell.placement, "gate": cell.gate, "K": cell.num_clusters, "sigma_m": cell.sigma_m}
    ranges = None if search.ranges is None else {_SHORT.get(found.name, found.name) for found in search.ranges}
    # A plan of an older version does not say what is searched; a uniform gate has no sigma_m to search.
    open_settings = {name for name in settings if name != "sigma_m" or cell.gate != "uniform"}
    named = [
        f"{name} {'searched' if value is None else value}"
        for name, value in settings.items()
        if value is not None or name in (open_settings if ranges is None else ranges)
    ]
    return ", ".join([*named, *(f"{name} {value}" for name, value in cell.departures)])


def _gap(gap: Gap) -> str:
    return f"seed {gap.seed}{'' if gap.fold is None else f' fold {gap.fold}'}: {gap.reason}"


def _link(shown: str, evidence: str, mark: Mark = Mark.PLAIN) -> Markup:
    words = Markup('<b class="{}">{}</b>').format(mark.value, shown) if mark is not Mark.PLAIN else shown
    return Markup('<a class="number" href="#{}">{}</a>').format(evidence, words)
