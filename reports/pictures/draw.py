"""Every picture that the records of a study allow, and why the others are not there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from reports.pictures.curves import gate_spread, learning_curves, rungs
from reports.pictures.effort import best_by_effort
from reports.pictures.importance import LEAST_TRIALS, importances
from reports.pictures.material import Material, load_material
from reports.pictures.oversmoothing import DEFAULT_MEASURE, oversmoothing
from reports.pictures.response import responses
from reports.pictures.style import Picture, styled

Kind = tuple[str, Callable[[Material], Iterable[Picture]], str]
KINDS: tuple[Kind, ...] = (
    ("response", responses, "no cell has finished trials or runs at two values of sigma_m, K, placement or budget"),
    (
        "importance",
        importances,
        f"no cell has {LEAST_TRIALS} finished search trials over two searched hyperparameters",
    ),
    ("best value against trials", best_by_effort, "no search trial was trained to its end"),
    ("rungs", rungs, "no cell was searched with pruning, or the plan is of an older version: start the study again"),
    ("learning curves", learning_curves, "no confirm run has finished"),
    ("spread of the gate", gate_spread, "no confirm run of a bilateral gate has finished"),
)
"""What there is to draw, and why it may be missing."""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """The pictures of a study, and a line for each kind that its records do not allow."""

    pictures: tuple[Picture, ...]
    skipped: tuple[str, ...]


def draw_pictures(results: Path, measure: str = DEFAULT_MEASURE) -> Drawn:
    """Every picture of the study in the folder ``results``; ``measure`` is that of over-smoothing.

    Raises:
        ResultsError: not the results folder of a study, or no such measure.
        study.records.RecordError: a record cannot be read.
    """
    material = load_material(results)
    pictures: list[Picture] = []
    skipped: list[str] = []
    with styled():
        for name, draw, why_not in KINDS:
            found = tuple(draw(material))
            pictures += found
            skipped += [] if found else [f"{name}: {why_not}"]
        found = oversmoothing(results, measure)
    pictures += found
    skipped += [] if found else ["over-smoothing: not measured; `run_study.py smoothing RESULTS` does"]
    return Drawn(pictures=tuple(pictures), skipped=tuple(skipped))


def write_pictures(
    results: Path, out: Path, measure: str = DEFAULT_MEASURE
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Write every picture into the folder ``out``: the files, and what was skipped and why.

    Raises:
        ResultsError, study.records.RecordError: as :func:`draw_pictures`. OSError: ``out`` cannot be written.
    """
    drawn = draw_pictures(results, measure)
    return tuple(path for picture in drawn.pictures for path in picture.write(out)), drawn.skipped
