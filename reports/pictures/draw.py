"""Every picture that the records of a study allow, and why the others are not there."""

from __future__ import annotations

from pathlib import Path

from reports.pictures.between import between_cells
from reports.pictures.curves import gate_spread, learning_curves
from reports.pictures.effort import best_by_effort
from reports.pictures.importance import importances
from reports.pictures.material import load_material
from reports.pictures.oversmoothing import DEFAULT_MEASURE, oversmoothing
from reports.pictures.picture import Drawn
from reports.pictures.response import responses
from reports.pictures.rungs import rungs
from reports.pictures.style import styled

KINDS = (responses, between_cells, importances, best_by_effort, rungs, learning_curves, gate_spread)
"""What there is to draw of a study's trials, in the order of the pictures."""


def draw_pictures(results: Path, measure: str = DEFAULT_MEASURE) -> Drawn:
    """Every picture of the study in the folder ``results``; ``measure`` is that of over-smoothing.

    Raises:
        ResultsError: not the results folder of a study, or no such measure.
        study.records.RecordError: a record cannot be read.
    """
    material = load_material(results)
    with styled():
        smoothing = oversmoothing(results, measure)  # first: there may be no such measure
        drawn = [draw(material) for draw in KINDS]
    none = f"over-smoothing: no value of {measure} on record; `run_study.py smoothing RESULTS` measures what there is"
    return Drawn.together([*drawn, Drawn(pictures=smoothing, skipped=() if smoothing else (none,))])


def write_pictures(
    results: Path, out: Path, measure: str = DEFAULT_MEASURE
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Write every picture into the folder ``out``: the files, and what was skipped and why.

    Raises:
        ResultsError, study.records.RecordError: as :func:`draw_pictures`. OSError: ``out`` cannot be written.
    """
    drawn = draw_pictures(results, measure)
    return tuple(path for picture in drawn.pictures for path in picture.write(out)), drawn.skipped
