"""A model's side of a row as six texts, the same in every format but for the markup."""

from __future__ import annotations

from typing import Protocol

from reports.layout.result_table import Block, Entry
from reports.summary.marks import Mark
from reports.summary.summarise import CellSummary, Spread
from reports.words.prose import METRIC_NAMES, Part, Text
from reports.words.units import scale_of

COLUMNS = 6


class Markup(Protocol):
    """How a format writes the parts of a table."""

    dash: str

    def part(self, part: Part) -> str:
        """A piece of text, escaped."""

    def spread(self, mean: str, std: str, mark: Mark) -> str:
        """``mean`` ± ``std`` under its mark."""


def headings(block: Block) -> tuple[str, ...]:
    """Heads of the columns of one side."""
    metric = METRIC_NAMES[block.metric]
    return ("Model", "L", "Params", f"Test {metric}", f"Train {metric}", "Epochs")


def columns(entry: Entry | None, markup: Markup) -> tuple[str, ...]:
    """The columns of one side: blank where there is no cell, a dash where a cell has no number yet."""
    if entry is None:
        return ("",) * COLUMNS
    summary = entry.summary
    metric = summary.cell.metric
    test = _spread(summary.test, metric, entry.mark, markup)
    if summary.test:
        test += runs_text(summary)
    return (
        markup.part(entry.label),
        _whole(summary.chosen.layers, markup),
        _whole(summary.chosen.params, markup),
        test,
        _spread(summary.train, metric, Mark.PLAIN, markup),
        markup.dash if summary.last_epoch is None else shortest(summary.last_epoch),
    )


def runs_text(summary: CellSummary) -> str:
    """What follows a number of fewer runs than it takes: how many are missing, or that there is one alone."""
    if not summary.complete:
        return f" ({summary.finished}/{summary.asked})"
    return " (1 run)" if summary.finished == 1 else ""


def text(parts: Text, markup: Markup) -> str:
    """The parts of a caption or note, one after the other."""
    return "".join(markup.part(part) for part in parts)


def shortest(number: float) -> str:
    """At most two decimals, without trailing zeros."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _spread(spread: Spread | None, metric: str, mark: Mark, markup: Markup) -> str:
    if spread is None:
        return markup.dash
    scale = scale_of(metric)
    mean = f"{scale * spread.mean:.3f}"
    return mean if spread.std is None else markup.spread(mean, f"{scale * spread.std:.3f}", mark)


def _whole(number: int | None, markup: Markup) -> str:
    return markup.dash if number is None else str(number)
