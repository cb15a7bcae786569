"""Cells by the thousand: what tells them apart is found without setting each against each, which takes minutes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from made_studies import Cell, gated, vanilla, write_study

from reports.evidence.cell_evidence import evidence
from reports.evidence.find_cell import find_cell
from reports.layout.facing import vanilla_of
from reports.records.load import load_results
from reports.records.plan import ResultsError
from reports.summary.labels import Detail, label_cells
from reports.summary.summarise import CellSummary, summarise

MANY = 10_000
EQUAL = 40_000


def summary_of(folder: Path, cell: Cell) -> CellSummary:
    (summary,) = summarise(load_results(write_study(folder, [cell], [])))
    return summary


def copies(summary: CellSummary) -> Iterator[CellSummary]:
    """Cells that differ in one setting, each from all others."""
    for number in range(MANY):
        settings = (("batch_size", "32"), ("learning_rate", str(number)), ("readout", "mean"))
        cell = replace(summary.cell, id=f"cell-{number}", other_settings=settings, semantics="paper")
        yield replace(summary, cell=cell)


def test_each_of_many_equal_names_has_what_tells_it_apart(tmp_path: Path) -> None:
    labels = label_cells(tuple(copies(summary_of(tmp_path, gated("zinc", "gcn")))))
    assert [label.details for label in labels] == [(Detail(key="learning_rate", value=str(n)),) for n in range(MANY)]


def test_of_many_vanilla_cells_the_one_that_agrees_in_most_is_faced(tmp_path: Path) -> None:
    ours = summary_of(tmp_path / "gated", gated("zinc", "gcn"))
    near = summary_of(tmp_path / "near", vanilla("zinc", "gcn"))
    far = summary_of(tmp_path / "far", vanilla("zinc", "gcn", departures={"head": "linear"}))
    assert vanilla_of(ours, [*[far] * EQUAL, near]) is near
    assert vanilla_of(ours, [far] * EQUAL) is None


@pytest.mark.parametrize(
    ("words", "told"), [("ZINC bi-GCN", f"found {EQUAL} such cells"), ("cifar", "found no such cell")]
)
def test_words_that_name_none_of_many_cells_are_told_with_a_few(words: str, told: str, tmp_path: Path) -> None:
    (one,) = evidence(write_study(tmp_path, [gated("zinc", "gcn")], []))
    with pytest.raises(ResultsError, match=f"{told}.* and {EQUAL - 8} more"):
        find_cell([one] * EQUAL, words)
