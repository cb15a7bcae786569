"""Several studies as one, so that a table may span them: where two hold the same cell, the one named last wins."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from reports.records.load import StudyResults, Trial
from reports.records.plan import Plan, PlanCell
from reports.words.prose import Note, Text

SAME = (
    *("dataset", "backbone", "placement", "gate", "layers", "budget", "hidden_dim"),
    *("num_clusters", "sigma_m", "unsupervised_weight", "pos_enc_dim", "semantics", "departures"),
)
"""Cells that agree in these, and in their other settings, are one row of a table, whichever studies they are of."""


GIVEN_WAY = "In several of the studies; shown is the one named last:"
"""Heading of the note on the cells that gave way."""


def merge_studies(studies: Sequence[StudyResults], folders: Sequence[str]) -> tuple[StudyResults, tuple[Note, ...]]:
    """One study of all cells of ``studies``, in their order, and a note on every cell that gave way.

    A cell keeps its id unless an earlier study has another cell of that id, which puts the study's name before it.
    A single study is returned as it is. ``folders`` are the places of the studies, as they were given.
    """
    if len(studies) == 1:
        return studies[0], ()
    names = _study_names(studies, folders)
    # Of a plan of an older version the other settings are not known: then nobody is told apart by them.
    same = SAME if _lacks_settings(studies) else (*SAME, "other_settings")
    last = {_identity(cell, same): number for number, study in enumerate(studies) for cell in study.plan.cells}
    cells: list[PlanCell] = []
    trials: list[Trial] = []
    given_way: list[Text] = []
    gave_way: list[tuple[object, ...]] = []
    shown: dict[tuple[object, ...], str] = {}
    taken: set[str] = set()
    for number, study in enumerate(studies):
        by_cell: defaultdict[str, list[Trial]] = defaultdict(list)
        for trial in study.trials:
            by_cell[trial.cell].append(trial)
        for cell in study.plan.cells:
            found = by_cell.pop(cell.id, [])
            identity = _identity(cell, same)
            if last[identity] != number:
                given_way.append((f"{cell.id}: of {names[last[identity]]}, not of {names[number]}",))
                gave_way.append(identity)
                continue
            unique = _unique_id(cell.id, names[number], taken)
            cells.append(replace(cell, id=unique))
            shown[identity] = unique
            trials += _of_cell(unique, found)
        # What no cell of the plan owns stays so, and is counted below the table.
        for outside, found in by_cell.items():
            trials += _of_cell(_unique_id(outside, names[number], taken), found)
    note = Note(heading=GIVEN_WAY, items=tuple(given_way), about=tuple(shown[cell] for cell in gave_way))
    plan = Plan(study="+".join(study.plan.study for study in studies), caption=_caption(studies), cells=tuple(cells))
    data = {fingerprint: used for study in studies for fingerprint, used in study.data.items()}
    return StudyResults(plan=plan, trials=tuple(trials), data=data), (note,) if given_way else ()


def _identity(cell: PlanCell, same: Sequence[str]) -> tuple[object, ...]:
    return tuple(getattr(cell, name) for name in same)


def _lacks_settings(studies: Sequence[StudyResults]) -> bool:
    return any(cell.other_settings is None for study in studies for cell in study.plan.cells)


def _study_names(studies: Sequence[StudyResults], folders: Sequence[str]) -> list[str]:
    """The names of the studies, told apart by their folders where two have the same."""
    count = Counter(study.plan.study for study in studies)
    return [
        study.plan.study if count[study.plan.study] == 1 else f"{study.plan.study} in {folder}"
        for study, folder in zip(studies, folders, strict=True)
    ]


def _of_cell(cell: str, trials: Sequence[Trial]) -> list[Trial]:
    return [trial if trial.cell == cell else replace(trial, cell=cell) for trial in trials]


def _unique_id(name: str, study: str, taken: set[str]) -> str:
    while name in taken:
        name = f"{study}:{name}"
    taken.add(name)
    return name


def _caption(studies: Sequence[StudyResults]) -> str | None:
    captions = dict.fromkeys((study.plan.caption or "").strip() for study in studies)
    return " ".join(words if words[-1] in ".!?" else f"{words}." for words in captions if words) or None
