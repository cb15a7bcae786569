"""What can stand in a place of a layout: a cell of ours, or a printed row of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.layout.layout_file import Selector
from reports.layout.result_table import Entry, ResultTable
from reports.published.protocol_flags import RELEASED
from reports.published.rows import PaperRow
from reports.summary.labels import Label, model_label
from reports.summary.marks import Mark
from reports.summary.summarise import CellSummary, Spread

SELECTED_BY = tuple(Selector.model_fields)
"""What a layout may ask of a cell."""

_EXACT = 9
"""Decimals to which a printed per cent is a fraction without the noise of the division."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Placed:
    """A cell of ours or a row of the paper, as a layout sees it.

    Attributes:
        name: the cell's id, or the row's name.
        values: what a selector asks for, by name; departures as text.
        summary: the cell; None of a row of the paper. faces: name of the vanilla cell that it is marked by.
        mark: how its test metric is set.
        params: as it is to be printed. finished, asked: its runs.
    """

    name: str
    label: Label
    values: Mapping[str, Any]
    dataset_title: str
    metric: str
    mark: Mark
    params: int | None
    finished: int
    asked: int
    test: Spread | None
    train: Spread | None
    last_epoch: float | None
    summary: CellSummary | None = None
    faces: str | None = None

    def fits(self, *selectors: Selector) -> bool:
        """Whether it is all that the selectors ask for."""
        return all(
            _same(self.values.get(name), wanted) for selector in selectors for name, wanted in selector.wanted.items()
        )


def placed_entries(table: ResultTable) -> tuple[Placed, ...]:
    """The cells of a study's table."""
    return tuple(map(_placed_entry, table.entries))


def placed_rows(rows: Sequence[PaperRow], bold: frozenset[PaperRow] | None = None) -> tuple[Placed, ...]:
    """Rows of the paper, marked as printed, or, of those that are in ``bold``, red as printed and else bold."""
    return tuple(_placed_row(row, bold) for row in rows)


def expected_label(*selectors: Selector) -> Label | None:
    """What the model is called that the selectors ask for; None where they name no backbone."""
    wanted = {name: value for selector in selectors for name, value in selector.wanted.items()}
    if "backbone" not in wanted:
        return None
    return model_label(wanted["backbone"], wanted.get("placement"), wanted.get("gate"))


def _same(value: object, wanted: object) -> bool:
    if isinstance(wanted, Mapping):
        return value == {name: str(of) for name, of in wanted.items()}
    return str(value).casefold() == wanted.casefold() if isinstance(wanted, str) else value == wanted


def _placed_entry(entry: Entry) -> Placed:
    summary, cell = entry.summary, entry.summary.cell
    given = {
        "dataset": cell.dataset,
        "backbone": cell.backbone,
        "metric": cell.metric,
        "pos_enc_dim": cell.pos_enc_dim,
        "departures": dict(summary.chosen.departures),
    }
    return Placed(
        name=cell.id,
        label=entry.label,
        values={name: given[name] if name in given else getattr(summary.chosen, name) for name in SELECTED_BY},
        dataset_title=cell.dataset_title,
        metric=cell.metric,
        mark=entry.mark,
        params=summary.chosen.params,
        finished=summary.finished,
        asked=summary.asked,
        test=summary.test,
        train=summary.train,
        last_epoch=summary.last_epoch,
        summary=summary,
        faces=entry.faces,
    )


def _placed_row(row: PaperRow, bold: frozenset[PaperRow] | None) -> Placed:
    prefix, _, name = row.row.rpartition("-")
    given: dict[str, Any] = {
        "gate": None if row.placement == "none" else "bilateral",
        "unsupervised_weight": None,
        "semantics": RELEASED,
        "departures": {},
    }
    printed = Mark.BEST if row.red else Mark.BETTER if row.bold else Mark.PLAIN
    tested = printed if row.bold else Mark.BETTER
    return Placed(
        name=row.name,
        label=Label(prefix=prefix or None, name=name),
        values={field: given[field] if field in given else getattr(row, field) for field in SELECTED_BY},
        dataset_title=row.dataset,
        metric=row.metric,
        mark=printed if bold is None else tested if row in bold else Mark.PLAIN,
        params=row.params_printed,
        finished=row.runs,
        asked=row.runs,
        test=_exact(row.test),
        train=_exact(row.train),
        last_epoch=row.epochs,
    )


def _exact(spread: Spread) -> Spread:
    return Spread(mean=round(spread.mean, _EXACT), std=None if spread.std is None else round(spread.std, _EXACT))
