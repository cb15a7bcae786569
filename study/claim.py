"""A results folder becomes a study's, or stays it: what an edited study file may change there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from study.attempts import adopt_nameless_attempts
from study.begun import begun_cells
from study.counted import counted
from study.faults import require_folder
from study.plan import (
    BegunCell,
    CellIdentity,
    StudyChange,
    StudyPlan,
    identities,
    in_short,
    plan_document,
    study_change,
)
from study.results import ResultsFolder, ResultsFolderError
from study.spec import SpecError, StudySpec, load_study
from study.whole_files import found_files, make_folder, write_whole

MOST_NAMES = 6
"""Cells that one line names; the rest is counted."""


def claim(folder: ResultsFolder, study_file: Path, text: str, spec: StudySpec, plan: StudyPlan) -> tuple[str, ...]:
    """Make ``folder`` this study's, or check that it is and take up what has changed in its file.

    The folder keeps the study's ``text`` and its plan. Where cells with trials are dropped, the text that had them is
    kept as well: they may come back later, as they were. ``study_file``, where it was read from, is for messages.

    Returns:
        A sentence for everything of note that the edit changes, for people to read.

    Raises:
        ResultsFolderError: the folder holds another study, or the edit would alter trials that were begun.
        FolderError: it is no folder, and cannot be made one.
        SpecError: the study that it holds cannot be read.
        JournalError, RecordError: what was begun cannot be read.
    """
    require_folder(folder.root, "--results")
    folder.create()
    adopt_nameless_attempts(folder)
    notes: tuple[str, ...] = ()
    if folder.study_file.exists() and folder.study_file.read_bytes() != text.encode():
        notes = _take_up(folder, study_file, spec, plan)
    _keep(folder.study_file, text)
    _keep(folder.plan_file, json.dumps(plan_document(plan), indent=2) + "\n")
    return notes


def _keep(path: Path, text: str) -> None:
    """Write what is not there: the age of the plan tells when the study was given its form."""
    if not path.exists() or path.read_bytes() != text.encode():
        write_whole(path, text.encode())


def _take_up(folder: ResultsFolder, study_file: Path, spec: StudySpec, plan: StudyPlan) -> tuple[str, ...]:
    held = load_study(folder.study_file)
    if held.name != spec.name:
        raise ResultsFolderError(
            f"{folder.root}: holds another study than {study_file} (name: {held.name} -> {spec.name}); "
            "name another folder with --results"
        )
    begun = begun_cells(folder)
    change = study_change(identities(held), identities(spec, plan), begun, _earlier_cells(folder))
    if change.refused:
        raise ResultsFolderError(
            f"{folder.root}: {study_file} would alter trials that were run here: {in_short(change.refused)}; undo "
            "this, or give the changed study a name and a folder of its own with --as NEW_NAME"
        )
    if change.dropped:
        _keep_file(folder)
    return tuple(_notes(change, begun))


def _earlier_cells(folder: ResultsFolder) -> dict[str, CellIdentity]:
    """The cells of every file that was kept, each as the latest one has it."""
    cells: dict[str, CellIdentity] = {}
    for file in found_files(folder.earlier_studies):
        try:
            cells.update(identities(load_study(file.path)))
        except SpecError:  # as where a layer of a user's own is gone: the journal still knows the keys of its trials
            continue
    return cells


def _keep_file(folder: ResultsFolder) -> None:
    make_folder(folder.earlier_studies)
    kept = (file.path.stem for file in found_files(folder.earlier_studies))
    number = 1 + max((int(name) for name in kept if name.isdecimal()), default=0)  # somebody may have removed one
    write_whole(folder.earlier_studies / f"{number:04d}.yaml", folder.study_file.read_bytes())


def _notes(change: StudyChange, begun: Mapping[str, BegunCell]) -> Iterable[str]:
    if change.amounts:
        yield f"taken up: {in_short(change.amounts)}"
    if change.added:
        yield f"taken up: {_cells(change.added, 'new cell')}"
    if change.dropped:
        records = sum(begun[cell].records for cell in change.dropped)
        yield (
            f"no longer in the study: {_cells(change.dropped, 'cell')}; the tables leave out what is on record of "
            f"{'it' if len(change.dropped) == 1 else 'them'} ({counted(records, 'trial')}), and "
            "it stays on disk"
        )


def _cells(names: tuple[str, ...], word: str) -> str:
    """How many there are, and the first of them."""
    told = [*names[:MOST_NAMES], *(["..."] if len(names) > MOST_NAMES else [])]
    return f"{len(names)} {word if len(names) == 1 else f'{word}s'} ({', '.join(told)})"
