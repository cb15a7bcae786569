"""Several studies as one, so that a table may span them: where two hold the same cell, the one named last wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reports.load import StudyResults, Trial
from reports.plan import Plan, PlanCell
from reports.prose import Note

_IDENTITY = (
    *("dataset", "backbone", "placement", "gate", "layers", "budget", "hidden_dim"),
    *("num_clusters", "sigma_m", "unsupervised_weight", "departures"),
)


def merge_studies(studies: Sequence[StudyResults]) -> tuple[StudyResults, tuple[Note, ...]]:
    """One study of all cells of ``studies``, in their order, and a note on every cell that gave way.

    A single study is returned as it is.
    """
    if len(studies) == 1:
        return studies[0], ()
    owners: dict[tuple[object, ...], StudyResults] = {}
    given_way = []
    for study in studies:
        for cell in study.plan.cells:
            before = owners.get(_identity(cell))
            if before is not None and before is not study:
                given_way.append((f"{cell.id}: of {study.plan.study}, not of {before.plan.study}",))
            owners[_identity(cell)] = study
    cells: list[PlanCell] = []
    trials: list[Trial] = []
    for study in studies:
        for cell in study.plan.cells:
            if owners[_identity(cell)] is study:
                unique = _unique_id(cell.id, study.plan.study, {other.id for other in cells})
                cells.append(replace(cell, id=unique))
                trials += [replace(trial, cell=unique) for trial in study.trials if trial.cell == cell.id]
    names = [study.plan.study for study in studies]
    captions = [study.plan.caption.strip() for study in studies if study.plan.caption and study.plan.caption.strip()]
    plan = Plan(study="+".join(names), caption=" ".join(map(_sentence, captions)) or None, cells=tuple(cells))
    note = Note(heading="In several of the studies; shown is the one named last:", items=tuple(given_way))
    return StudyResults(plan=plan, trials=tuple(trials)), (note,) if given_way else ()


def _identity(cell: PlanCell) -> tuple[object, ...]:
    return tuple(getattr(cell, name) for name in _IDENTITY)


def _unique_id(name: str, study: str, taken: set[str]) -> str:
    while name in taken:
        name = f"{study}:{name}"
    return name


def _sentence(words: str) -> str:
    return words if words[-1] in ".!?" else f"{words}."
