"""Marks by significance in the place of those by the larger mean: ``--bold significant``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reports.compare.against_vanilla import compare_cells, facing_pairs
from reports.layout.result_table import Block, Entry, ResultTable, Row
from reports.summary.marks import SIZES, Mark, rules
from reports.words.prose import Part


def mark_significant(tables: Sequence[ResultTable]) -> tuple[ResultTable, ...]:
    """``tables`` with only those cells bold whose better mean survives Holm's correction over all of them together.

    What is red stays so where it is bold; the captions state the rule.
    """
    pairs = [(place, gated, vanilla) for place, table in enumerate(tables) for gated, vanilla in facing_pairs(table)]
    compared = compare_cells([(gated, vanilla) for _, gated, vanilla in pairs])
    better = {
        (place, gated.cell.id)
        for (place, gated, _), comparison in zip(pairs, compared, strict=True)
        if comparison.significant and comparison.favours_gated
    }
    return tuple(
        _marked(table, frozenset(cell for of, cell in better if of == place)) for place, table in enumerate(tables)
    )


def _marked(table: ResultTable, better: frozenset[str]) -> ResultTable:
    return replace(
        table,
        caption=tuple(_rule(part) for part in table.caption),
        blocks=tuple(
            Block(
                title=block.title,
                metric=block.metric,
                sections=tuple(tuple(_row(row, better) for row in section) for section in block.sections),
            )
            for block in table.blocks
        ),
    )


def _rule(part: Part) -> Part:
    if isinstance(part, str):
        for size in SIZES:
            for rule, other in zip(rules("paper", size), rules("significant", size), strict=True):
                part = part.replace(rule, other)
    return part


def _row(row: Row, better: frozenset[str]) -> Row:
    return Row(vanilla=_entry(row.vanilla, better), gated=_entry(row.gated, better))


def _entry(entry: Entry | None, better: frozenset[str]) -> Entry | None:
    if entry is None:
        return None
    if entry.summary.cell.id not in better:
        return replace(entry, mark=Mark.PLAIN)
    return replace(entry, mark=Mark.BEST if entry.mark is Mark.BEST else Mark.BETTER)
