"""Which cell of a study somebody means: by words of its label, dataset, budget, layers or id."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from reports.evidence.cell_evidence import CellEvidence
from reports.evidence.study_facts import budget_text, cell_name
from reports.records.plan import ResultsError

MAX_NAMED = 8
"""Cells that an error names."""


def find_cell(cells: Sequence[CellEvidence], words: str) -> CellEvidence:
    """The cell that ``words`` name, as in ``ZINC bi-GCN 500k``; case does not count.

    Every word must be one of the cell's: of its label in the table, its dataset, its budget (``500k``), its layers
    (``L16``), its width (``h145``), its placement or gate. Of several that differ in
    their labels alone, the one is meant whose label ``words`` hold whole. A cell's id alone names it too.

    Raises:
        ResultsError: no cell is meant, or more than one.
    """
    asked = set(_split(words))
    by_id = [cell for cell in cells if cell.cell.casefold() == " ".join(words.split()).casefold()]
    if by_id:
        return by_id[0]
    if not asked:
        raise ResultsError(f"found no word, expected some of a cell's name; cells: {_named(cells)}")
    meant = [cell for cell in cells if asked <= _vocabulary(cell)]
    if not meant:
        raise ResultsError(f"{words!r}: found no such cell; nearest: {_named(_nearest(cells, asked))}")
    if len(meant) == 1:
        return meant[0]
    # "GCN" is meant before "GCN (gcn normalisation symmetric)", where they stand side by side.
    whole = [cell for cell in meant if set(_split(cell.label)) <= asked]
    if len(whole) != 1 or len({(cell.dataset, cell.budget, cell.layers) for cell in meant}) > 1:
        raise ResultsError(f"{words!r}: found {len(meant)} such cells; add a word to mean one: {_named(meant)}")
    return whole[0]


def name_of(cell: CellEvidence) -> str:
    """A cell as people name it, which :func:`find_cell` finds: dataset, label, budget or width, layers."""
    return " ".join(
        cell_name(cell.dataset_title, cell.label, cell.budget, cell.planned_hidden_dim, cell.layers).split()
    )


def _vocabulary(cell: CellEvidence) -> set[str]:
    texts = [cell.dataset, cell.dataset_title, cell.label, cell.cell, cell.placement or "", cell.gate or ""]
    if cell.placement == "none":
        texts.append("vanilla")
    if cell.budget is not None:
        texts += [str(cell.budget), budget_text(cell.budget)]
    if cell.layers is not None:
        texts += [f"L{cell.layers}", f"L={cell.layers}"]
    if cell.hidden_dim is not None:
        texts.append(f"h{cell.hidden_dim}")
    return {word for text in texts for word in _split(text)}


def _split(text: str) -> list[str]:
    words = (word.strip("(),;:") for word in re.split(r"\s+", text.casefold()))
    return [word for word in words if word]


def _nearest(cells: Sequence[CellEvidence], asked: set[str]) -> list[CellEvidence]:
    """The cells with the most of the words, also misspelt ones; in the plan's order."""
    scores = [_score(_vocabulary(cell), asked) for cell in cells]
    highest = max(scores, default=0.0)
    return [cell for cell, score in zip(cells, scores, strict=True) if score == highest]


def _score(vocabulary: set[str], asked: set[str]) -> float:
    exact = asked & vocabulary
    close = [word for word in asked - exact if get_close_matches(word, vocabulary, n=1, cutoff=0.7)]
    return len(exact) + 0.5 * len(close)


def _named(cells: Iterable[CellEvidence]) -> str:
    named = [(name_of(cell), cell.cell) for cell in cells]
    count = Counter(name for name, _ in named)
    # Equal names do not help to choose; ids differ.
    shown = [name if count[name] == 1 else cell_id for name, cell_id in named]
    more = f" and {len(shown) - MAX_NAMED} more" if len(shown) > MAX_NAMED else ""
    return "; ".join(shown[:MAX_NAMED]) + more
