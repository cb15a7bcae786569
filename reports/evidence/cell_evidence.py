"""What lies behind every number of a table: its trials, their configuration, code, data and files, and the choice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from reports.evidence.chosen import ChoiceEvidence, SearchEvidence, choice_of
from reports.evidence.configuration import configuration_of, departures_of
from reports.evidence.study_facts import CellFacts, StudyFacts, gather, run_text
from reports.layout.columns import columns
from reports.published.data_size import amount_text
from reports.records.details import TrialDetails
from reports.records.used_data import UsedData
from reports.summary.marks import Mark
from reports.words.plain_text import plain
from reports.words.prose import METRIC_NAMES, Part

__all__ = ["CellEvidence", "ChoiceEvidence", "SearchEvidence", "TrialEvidence", "code_state", "evidence", "evidence_of"]

TEST_COLUMN = 3
"""Of :func:`reports.layout.columns.columns`."""


DATABASE = "mlflow.db"
"""The mirror of a study, in its results folder."""


@dataclass(frozen=True, kw_only=True)
class TrialEvidence:
    """One confirm trial; metrics as in its record, fractions to full precision.

    Attributes:
        counted: whether it is one of those behind the cell's number.
        epochs: completed ones. status, reason: how it ended.
        code: git commit and whether files differed from it, in words.
        record: its file, relative to the results folder.
        mlflow_filter: finds its run among those of the experiment that is named after the study.
        mlflow_page: the same as a path of MLflow's pages, where the study's own database is served; None
            where the results folder holds none.
    """

    key: str
    counted: bool
    seed: int
    fold: int | None
    test: float | None
    train: float | None
    val: float | None
    epochs: int
    params: int
    status: str
    reason: str | None
    seconds: float
    device: str
    threads: int
    code: str
    data_fingerprint: str
    versions: tuple[tuple[str, str], ...]
    record: str
    chosen_from: str | None
    mlflow_filter: str
    mlflow_page: str | None


@dataclass(frozen=True, kw_only=True)
class CellEvidence:
    """What lies behind one cell of a study's table.

    Attributes:
        study, cell: the study's name (that of its MLflow experiment), and the cell's id.
        dataset, dataset_title, metric: as in a study file; as in the table, both.
        label: the model's name in the table. layers, budget, hidden_dim: of the configuration, where known;
            ``planned_hidden_dim`` only where the plan fixes it.
        placement, gate: as in the record; None where not known yet.
        number: the test metric as the table prints it; a dash without one.
        finished, asked: runs behind the number, and runs that the study asks for.
        missing: why the others give no number, one line each.
        trials: the confirm trials, those behind the number first, in the plan's order.
        semantics: preset of the configuration, and ``departures`` from it: setting and value.
        configuration: every setting that means something for the model, and its value; empty before confirm.
        code_states, data, versions: the different ones of the trials behind the number, in order; of data the
            fingerprint, and what it holds where that is known.
    """

    study: str
    cell: str
    dataset: str
    dataset_title: str
    metric: str
    label: str
    layers: int | None
    budget: int | None
    hidden_dim: int | None
    planned_hidden_dim: int | None
    placement: str | None
    gate: str | None
    number: str
    finished: int
    asked: int
    missing: tuple[str, ...]
    trials: tuple[TrialEvidence, ...]
    semantics: str | None
    departures: tuple[tuple[str, str], ...]
    configuration: tuple[tuple[str, str], ...]
    chosen: ChoiceEvidence
    code_states: tuple[str, ...]
    data: tuple[str, ...]
    versions: tuple[tuple[str, str], ...]


def evidence(results_folder: Path) -> tuple[CellEvidence, ...]:
    """The evidence of every cell of the study in ``results_folder``, in the plan's order.

    Raises:
        ResultsError: not the results folder of a study, or a record's configuration or versions are not readable.
        study.records.RecordError: a record of another project or schema version.
    """
    return evidence_of(gather(results_folder), results_folder)


def evidence_of(facts: StudyFacts, results_folder: Path) -> tuple[CellEvidence, ...]:
    """The same of a study whose ``facts`` are known."""
    has_database = (results_folder / DATABASE).exists()
    return tuple(_cell_evidence(facts, cell, has_database) for cell in facts.cells)


def code_state(commit: str | None, dirty: bool | None) -> str:
    """A commit and whether files differed from it, in words."""
    if commit is None:
        return "unknown code state"
    return f"{commit} ({ {True: 'with changed files', False: 'clean', None: 'changes unknown'}[dirty] })"


class _PlainMarkup:
    dash = "–"  # noqa: RUF001

    def part(self, part: Part) -> str:
        return plain(part)

    def spread(self, mean: str, std: str, mark: Mark) -> str:
        return f"{mean} ± {std}"


def _cell_evidence(study: StudyFacts, facts: CellFacts, has_database: bool) -> CellEvidence:
    summary, cell, chosen, row = facts.summary, facts.cell, facts.summary.chosen, facts.record
    confirm = _confirm_trials(facts, has_database)
    return CellEvidence(
        study=study.study,
        cell=cell.id,
        dataset=cell.dataset,
        dataset_title=cell.dataset_title,
        metric=METRIC_NAMES[cell.metric],
        label=facts.label,
        layers=chosen.layers,
        budget=chosen.budget,
        hidden_dim=chosen.hidden_dim,
        planned_hidden_dim=cell.hidden_dim,
        placement=chosen.placement,
        gate=chosen.gate,
        number=columns(facts.entry, _PlainMarkup())[TEST_COLUMN],
        finished=summary.finished,
        asked=summary.asked,
        missing=tuple(f"{run_text(gap.seed, gap.fold)}: {gap.reason}" for gap in summary.gaps),
        trials=confirm,
        semantics=None if row is None else row["semantics"],
        departures=() if row is None else departures_of(row),
        configuration=() if row is None else configuration_of(row),
        chosen=choice_of(facts.search, row["chosen_from"] if row else None, cell.direction, facts.search_plan),
        code_states=_different(code_state(trial.git_commit, trial.git_dirty) for trial in facts.counted),
        data=_different(_data_line(trial.data_fingerprint, study.data) for trial in facts.counted),
        versions=_different(version for trial in facts.counted for version in trial.versions),
    )


def _data_line(fingerprint: str, data: Mapping[str, UsedData]) -> str:
    used = data.get(fingerprint)
    return fingerprint if used is None else f"{fingerprint}: {amount_text(used)}; {used.origin}"


def _confirm_trials(facts: CellFacts, has_database: bool) -> tuple[TrialEvidence, ...]:
    counted = {trial.key for trial in facts.counted}
    rest = [trial for trial in facts.confirm if trial.key not in counted]
    rest.sort(key=lambda trial: (trial.seed, -1 if trial.fold is None else trial.fold, trial.key))
    return tuple(_trial_evidence(trial, trial.key in counted, has_database) for trial in (*facts.counted, *rest))


def _trial_evidence(trial: TrialDetails, counted: bool, has_database: bool) -> TrialEvidence:
    mlflow_filter = f'tags.trial_key = "{trial.key}"'
    return TrialEvidence(
        key=trial.key,
        counted=counted,
        seed=trial.seed,
        fold=trial.fold,
        test=trial.test_metric,
        train=trial.train_metric,
        val=trial.val_metric,
        epochs=trial.num_epochs,
        params=trial.params,
        status=trial.status,
        reason=trial.reason,
        seconds=trial.seconds,
        device=trial.device,
        threads=trial.threads,
        code=code_state(trial.git_commit, trial.git_dirty),
        data_fingerprint=trial.data_fingerprint,
        versions=trial.versions,
        record=trial.file,
        chosen_from=trial.chosen_from,
        mlflow_filter=mlflow_filter,
        mlflow_page=_mlflow_page(mlflow_filter) if has_database else None,
    )


def _mlflow_page(mlflow_filter: str) -> str:
    # The database in a results folder holds one study, whose experiment is number 1.
    return f"/#/experiments/1/runs?workflowType=machine_learning&searchFilter={quote(mlflow_filter, safe='')}"


def _different(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(sorted(set(values)))
