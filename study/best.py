"""The best configuration of a cell, from the records alone: which one a finished search confirms, or would so far."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from bimp.config import TrialConfig
from study.choice import Outcome, best_outcome
from study.found_study import require_study
from study.journal import Journal
from study.plan import Cell, StudyPlan, plan, resolve
from study.recorded_configuration import recorded_configuration
from study.records import TrialRecord, read_columns, read_records
from study.results import ResultsFolder
from study.spec import StudySpec, load_study

_COLUMNS = ("key", "cell", "phase", "status", "val_metric", "epochs.list.element.epoch")


class BestError(ValueError):
    """A cell that is not there or has no configuration to give yet; says which there are."""


class NoSuchCellError(BestError):
    """The study has no cell of that id."""


@dataclass(frozen=True, kw_only=True)
class BestConfiguration:
    """What a cell would be confirmed with.

    Attributes:
        cell: from the plan.
        config: the whole configuration, with seed and fold of the cell's first confirm trial.
        budget: parameters asked for; None where the width was.
        trial: record of the search trial that it comes from. Where nothing is searched: of a confirm trial, or None.
        candidates: how many trials it was chosen from: those that went all the way.
        ended: search trials that ended, by status, repeated configurations left out.
        search_is_over: whether no search trial can change the choice.
    """

    cell: Cell
    config: TrialConfig
    budget: int | None
    trial: TrialRecord | None
    candidates: int
    ended: Mapping[str, int]
    search_is_over: bool


@dataclass(frozen=True, kw_only=True)
class BestOfStudy:
    """The best configurations of a study's cells.

    Attributes:
        spec: the study, as its results folder keeps it.
        cells: those that have one, in the plan's order.
        without: ids of the cells asked for that have none yet.
    """

    spec: StudySpec
    cells: tuple[BestConfiguration, ...]
    without: tuple[str, ...]


def best_of_study(results: Path, cell: str | None = None) -> BestOfStudy:
    """The best configuration of ``cell``, or of every cell of the study in ``results``.

    A layer of the user's own that the study names is imported.

    Raises:
        NoStudyError, StoreAccessError: there is no study in ``results``.
        NoSuchCellError: there is no such cell. BestError: no cell asked for has a trial that went all the way.
        SpecError, JournalError, RecordError: the study, its journal or a record cannot be read.
    """
    folder = ResultsFolder(results)
    require_study(results, folder.study_file.name)
    spec = load_study(folder.study_file)
    planned = plan(spec)
    asked = _cells(planned, results, cell)
    found = dict(_found(folder, spec, asked))
    if not found:
        raise BestError(
            f"{results}: no search trial {f'of cell {cell}' if cell else 'of any cell'} has gone all the way yet, so "
            "that there is none to choose; run_study.py status shows how far it is"
        )
    return BestOfStudy(
        spec=spec,
        cells=tuple(found.values()),
        without=tuple(one.id for one in asked if one.id not in found),
    )


def _cells(planned: StudyPlan, results: Path, wanted: str | None) -> Sequence[Cell]:
    if wanted is None:
        return planned.cells
    chosen = [cell for cell in planned.cells if cell.id == wanted]
    if not chosen:
        names = ", ".join(cell.id for cell in planned.cells)
        raise NoSuchCellError(f"{results}: study {planned.name} has no cell {wanted}; it has {names}")
    return chosen


def _found(folder: ResultsFolder, spec: StudySpec, cells: Sequence[Cell]) -> Iterator[tuple[str, BestConfiguration]]:
    outcomes: defaultdict[str, list[Outcome]] = defaultdict(list)
    confirmed: dict[str, str] = {}
    for row in read_columns(folder.records, _COLUMNS).to_pylist():
        if row["phase"] == "search":
            outcome = Outcome.told(row["key"], row["status"], len(row["epochs"]), row["val_metric"])
            outcomes[row["cell"]].append(outcome)
        elif row["status"] != "superseded":
            confirmed.setdefault(row["cell"], row["key"])
    chosen = {cell.id: _chosen(cell, outcomes[cell.id]) for cell in cells if cell.trials}
    keys = [outcome.key for outcome in chosen.values() if outcome is not None]
    records = _records(folder, {*keys, *(confirmed[cell.id] for cell in cells if cell.id in confirmed)})
    asked: defaultdict[str, list[str]] = defaultdict(list)
    for entry in Journal(folder.journal).entries():
        asked[entry.cell].append(entry.key)
    for cell in cells:
        best = chosen.get(cell.id)
        if not cell.trials:
            yield cell.id, _given(cell, spec, records.get(confirmed.get(cell.id, "")))
        elif best is not None:
            yield cell.id, _searched(cell, records[best.key], outcomes[cell.id], asked[cell.id])


def _last_rung(cell: Cell) -> int | None:
    return cell.rungs[-1] if cell.rungs else None


def _chosen(cell: Cell, outcomes: Sequence[Outcome]) -> Outcome | None:
    return best_outcome(outcomes, cell.direction, _last_rung(cell))


def _searched(cell: Cell, trial: TrialRecord, outcomes: Sequence[Outcome], asked: Sequence[str]) -> BestConfiguration:
    seed, fold = cell.confirm_runs[0]
    # The next start tries a failed one again, and may choose it.
    ended = {outcome.key for outcome in outcomes if outcome.status != "failed"}
    return BestConfiguration(
        cell=cell,
        config=replace(recorded_configuration(trial), seed=seed, fold=fold),
        budget=trial.budget,
        trial=trial,
        candidates=sum(outcome.may_be_chosen(_last_rung(cell)) for outcome in outcomes),
        ended=Counter(outcome.status for outcome in outcomes),
        search_is_over=len(asked) >= cell.trials and ended.issuperset(asked),
    )


def _given(cell: Cell, spec: StudySpec, trial: TrialRecord | None) -> BestConfiguration:
    seed, fold = cell.confirm_runs[0]
    return BestConfiguration(
        cell=cell,
        config=resolve(cell, {}, spec, seed=seed, fold=fold),
        budget=cell.setting("budget"),
        trial=trial,
        candidates=0,
        ended={},
        search_is_over=True,
    )


def _records(folder: ResultsFolder, keys: Set[str]) -> dict[str, TrialRecord]:
    """The records of ``keys``, by key; whole ones are read of these alone."""
    return {record.key: record for record in read_records(folder.records, keys=keys)}
