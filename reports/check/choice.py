"""How configurations were chosen: from the best search trial, within the range, and blind to the test split."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from reports.check.finding import Finding, Kind
from reports.evidence.chosen import RANKING_RULE, ranked
from reports.evidence.study_facts import StudyFacts
from study.counted import counted

EDGE = 0.05
"""A chosen value within this part of its range from an end lies at the edge; by logarithms where sampled so."""

EDGE_OF_RANGE = Kind(
    name="edge-of-range",
    severity="warns",
    effect="a better value may lie beyond the range, so the cell may stand below what it can reach",
    mend="widen the range at that end and search again, unless the end is a natural limit",
)
NOT_THE_BEST = Kind(
    name="not-the-best",
    severity="forbids",
    effect="the number is of another configuration than the rule chooses, or of one that no search trial had",
    mend="start the study again: it confirms the best; move records of other origin out of the folder",
)
TEST_IN_SEARCH = Kind(
    name="test-in-search",
    severity="forbids",
    effect="the configuration may have been chosen by the test split, so the number is no estimate of unseen data",
    mend="search again without the test split, in a new results folder",
)


def edges(facts: StudyFacts) -> Iterator[Finding]:
    """Chosen values at an end of what was searched: within :data:`EDGE` of a range, or first or last of numbers."""
    for cell in facts.cells:
        if cell.record is None or not cell.search:
            continue
        for searched in cell.search_plan.sampled(cell.record):
            value = cell.record.get(searched.name)
            place = searched.place(value)
            if place is not None and not EDGE < place < 1 - EDGE:
                found = f"{searched.name} = {value!r} was chosen at the edge of {searched}"
                yield EDGE_OF_RANGE.in_cell(facts, cell, found, cell.current)


def choices(facts: StudyFacts) -> Iterator[Finding]:
    """Confirm trials that do not repeat the configuration of their cell's best search trial."""
    for cell in facts.cells:
        if not cell.search or cell.record is None:
            continue
        order = ranked(cell.search, cell.cell.direction, cell.search_plan.rungs)
        best = order[0].key if order else None
        wrong = [trial for trial in cell.current if trial.chosen_from != best]
        if wrong:
            origin = wrong[0].chosen_from or "no search trial"
            found = (
                f"{counted(len(wrong), 'confirm trial')} repeat{'s' * (len(wrong) == 1)} {origin}, "
                f"expected {best or 'none'} ({RANKING_RULE})"
            )
            yield NOT_THE_BEST.in_cell(facts, cell, found, wrong)
        elif best is not None and not _same_configuration(cell.record, facts.details.rows([best])[best]):
            found = f"the confirm trials differ from the configuration of {best}, from which they are said to come"
            yield NOT_THE_BEST.in_cell(facts, cell, found, cell.current)


def tests_in_search(facts: StudyFacts) -> Iterator[Finding]:
    """Search trials that hold a test metric or a test loss."""
    for cell in facts.cells:
        read = [trial for trial in cell.search if trial.test_metric is not None or trial.test_loss is not None]
        if read:
            found = f"{len(read)} of {counted(len(cell.search), 'search trial')} read the test split"
            yield TEST_IN_SEARCH.in_cell(facts, cell, found, read)


def _same_configuration(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return _without_run(left) == _without_run(right)


def _without_run(record: Mapping[str, Any]) -> dict[str, Any]:
    return {**json.loads(record["config_json"]), "seed": None, "fold": None}
